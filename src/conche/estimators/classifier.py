"""Classification, one against the rest, one ``partial_fit`` a task."""

from __future__ import annotations

from typing import Any, Literal, Self

from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from ..common.arrays import Array, as_host, here, is_here, put_by
from ..common.scores import chosen, error_rate, probabilities, winners
from ..network import Network
from ..nodes.solvers import SolverOption
from ..rounds.losses import LOSSES, get_loss
from ..tasks.masks import unmasked
from .base import PLAIN, Asked, LinearModel, Targets
from .defaults import with_defaults
from .inputs import check_task, check_weights
from .labels import Labels, histogram


class CoCoAClassifier(ClassifierMixin, LinearModel):  # type: ignore[misc]  # an untyped mixin
    """Distributed continual linear classification with CoCoA, one against the rest.

    As `CoCoARegressor`, with targets in {-1, 1}: one output for two classes, else one per class.

    Parameters
    ----------
    loss : ``"squared"`` or ``"logistic"``.
    class_weight : what samples of a class count for: None, a dict, or ``"balanced"``: inversely to
        how often the class has come in the stream so far, this task included.
    n_nodes, partition, solver, n_rounds, steps, tol, network : as in `CoCoARegressor`.
    fit_intercept, scaling, missing, device, seed : as in `CoCoARegressor`.

    Attributes
    ----------
    classes_ : the labels so far, and those that ``classes`` lists.
    coef_ : (1, n_features) for up to two classes, else (n_classes, n_features).
    ridge_, noise_std_ : as in `CoCoARegressor`; with the squared loss. All classes share one ridge.

    Examples
    --------
    >>> import conche
    >>> train, test = conche.tasks.embedded_digits(n_features=100)
    >>> model = conche.CoCoAClassifier(n_nodes=2, loss="logistic")
    >>> for task in train:
    ...     _ = model.partial_fit(task.X, task.y)
    >>> model.classes_
    array([-1.,  1.])
    """

    def __init__(
        self,
        n_nodes: int | None = None,
        *,
        loss: str = "squared",
        partition: Any = None,
        solver: str | SolverOption = "exact",
        n_rounds: int = 1,
        steps: Literal["safe", "adaptive", "cg"] = "safe",
        tol: float | None = None,
        network: str | Network = "local",
        fit_intercept: bool = False,
        scaling: str | None = None,
        missing: str = "refuse",
        class_weight: Any = None,
        device: str | None = None,
        seed: int = 0,
    ):
        super().__init__(
            n_nodes,
            partition=partition,
            solver=solver,
            n_rounds=n_rounds,
            steps=steps,
            tol=tol,
            network=network,
            fit_intercept=fit_intercept,
            scaling=scaling,
            missing=missing,
            device=device,
            seed=seed,
        )
        self.loss = loss
        self.class_weight = class_weight

    @property
    def classes_(self) -> Array:
        """The labels, in order."""
        classes = self.state_.classes
        assert classes is not None
        return classes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Start over and learn (X, y) as the first task.

        Parameters
        ----------
        X : n_samples x n_features: an array, a DataFrame or a ``scipy.sparse`` matrix.
        y : n_samples labels: numbers or texts.
        sample_weight : what each sample counts for; 3 is as much as three of it. Unequal weights
            count as fewer rows when memory chooses its ridge.
        """
        return self._fit(X, y, None, sample_weight, reset=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn one more task; X and y are those of `fit`.

        Labels may appear in any task. ``classes`` lists those that are known to come; with the
        squared loss that changes nothing but `classes_`.
        """
        return self._fit(X, y, classes, sample_weight, reset=not hasattr(self, "state_"))

    def learn(
        self, X: Any, y: Any, asked: Asked, sample_weight: Any = None, classes: Any = None
    ) -> Self:
        """`partial_fit`, and what else is asked of the task."""
        return self._fit(X, y, classes, sample_weight, not hasattr(self, "state_"), asked)

    def _fit(
        self,
        X: Any,
        y: Any,
        classes: Any,
        sample_weight: Any,
        reset: bool,
        asked: Asked = PLAIN,
    ) -> Self:
        self.check_parameters()
        self._connect(reset)
        loss = get_loss(self.loss)
        schema = None if reset else self.state_.schema
        inputs = check_task(type(self).__name__, X, y, schema, self.missing == "mean")
        labels = Labels.of(inputs.y, classes, None if reset else self.state_.labels)
        weights = check_weights(sample_weight, len(inputs.y))
        labels, by_class = labels.counted(inputs.y, weights, self.class_weight)
        weights = weights if by_class is None else by_class * (1 if weights is None else weights)
        Y = labels.targets(inputs.y, inputs.schema.dtype)
        targets = Targets(Y, loss, False, labels, weights, histogram(inputs.y))
        self._learn(inputs, targets, reset, asked)
        return self

    def _error(self, predictions: Array, Y: Array) -> float:
        return error_rate(winners(predictions), winners(Y))

    def decision_function(self, X: Any) -> Array:
        """Scores of the rows of X: one number each for two classes, else one per class."""
        scores = self._decide(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The label that scores highest, for every row of X."""
        scores = self._decide(X)
        labels = chosen(self.classes_, here(scores))
        return (
            labels if is_here(scores) or labels.dtype.kind not in "biuf" else put_by(scores, labels)
        )

    @available_if(lambda self: self.loss in LOSSES and LOSSES[self.loss].probabilistic)
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, n_samples x n_classes; for the logistic loss only."""
        scores = self._decide(X)
        found = probabilities(here(scores), len(self.classes_))
        return found if is_here(scores) else put_by(scores, found)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of `predict` for the rows of X."""
        y, sample_weight = unmasked(y, "y"), unmasked(sample_weight, "sample_weight")
        return float(super().score(as_host(X), as_host(y), sample_weight))


@with_defaults(
    solver="memory", steps="cg", n_rounds=30, tol=1e-6, fit_intercept=True, scaling="standard"
)
class ConcheClassifier(CoCoAClassifier):
    """`CoCoAClassifier` with the defaults we recommend, as in `ConcheRegressor`.

    Examples
    --------
    >>> import conche
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(4, 10))
    >>> model = conche.ConcheClassifier(n_nodes=2)
    >>> for new in ([0, 1], [2, 3]):  # two new classes a task
    ...     y = rng.choice(new, 200)
    ...     _ = model.partial_fit(centres[y] + rng.normal(size=(200, 10)), y)
    >>> model.classes_, model.predict(centres)
    (array([0, 1, 2, 3]), array([0, 1, 2, 3]))
    """
