"""Regression, one ``partial_fit`` a task."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import MultiOutputMixin, RegressorMixin

from ..common.arrays import Array, as_host
from ..common.scores import mean_squared
from ..errors import DataError
from ..rounds import get_loss
from ..tasks.masks import unmasked
from .base import PLAIN, Asked, LinearModel, Targets
from .defaults import with_defaults
from .inputs import check_task, check_weights


class CoCoARegressor(MultiOutputMixin, RegressorMixin, LinearModel):  # type: ignore[misc]  # untyped
    """Distributed continual linear regression with CoCoA.

    The columns of X live on ``n_nodes`` nodes that exchange vectors as long as the task has
    samples, never features. Each ``partial_fit`` learns one task in ``n_rounds`` communication
    rounds, starting from the last estimate. The defaults are the paper's Algorithm 1.

    Parameters
    ----------
    n_nodes : number of nodes K; columns are split evenly. Default 1.
    partition : instead of an even split, the block sizes ``[5, 12, 9]`` or lists of columns.
    solver : what a node does with its block: ``"exact"`` (Algorithm 1, minimum norm), ``"damped"``
        (the same with a brake, for real data), ``"memory"`` (the Conche method: up to 10,000
        columns the ridge solution of all rows, with the ridge that evidence chose from all rows,
        unless one is given), or an object that says more: `Exact`, `Damped`, `Memory`,
        `ElasticNet`.
    n_rounds : communication rounds per task (the paper's T_c).
    steps : of rounds (memory that loses nothing needs none). ``"safe"``: all nodes move by 1/K of
        their proposals, as in the paper. ``"adaptive"``: by the largest step that the data allow.
        ``"cg"``: conjugate gradients. All on the same messages.
    tol : end a task's rounds once the certificate (``bound`` in ``history_``) is at most ``tol``
        times the objective that the task began with; where rounds can certify nothing (several
        nodes and no penalty), also once what the nodes propose would move the predictions by at
        most ``tol`` times the residual that the task began with.
    network : ``"local"``, ``"mpi"`` (a node a rank), ``"ray"`` (a node an actor), a `conche.Graph`
        (nodes that talk to neighbours alone), or a `conche.network.Network`.
    fit_intercept : learn a constant, which no ridge shrinks. Off by default, as in the paper.
    scaling : None; ``"standard"``: columns are standardised by all rows so far where memory loses
        nothing, elsewhere as with ``"first"``; ``"first"``: each node scales its columns by the
        first task in which they vary (the first tasks, until ten samples have been seen);
        ``"running"``: by all tasks so far. With an intercept they are centred too. Where memory
        loses nothing it says which columns a ridge that is given speaks of, and changes nothing
        else. Sparse columns are left as they are. ``coef_`` and ``predict`` are for columns as they
        come.
    missing : ``"refuse"``, or ``"mean"``: NaN is filled with the column's mean so far.
    device : ``"cpu"``, or ``"cuda"``: columns go to the GPU once a task, memory and factors stay
        there between tasks. None: where X is. Coefficients and files are NumPy's; sparse columns
        and elastic nets stay on the processor.
    seed : of what the nodes of ``"memory"`` draw.

    Attributes
    ----------
    coef_ : the estimate, (n_features,) or (n_outputs, n_features).
    intercept_ : 0 unless ``fit_intercept``.
    n_tasks_seen_ : tasks learnt so far.
    partition_ : which node holds which columns.
    history_ : one record per round: task, round, residual, loss, bound (how far the task is from
        its optimum at most), bytes, seconds, accuracy (of inexact nodes), disagreement (of nodes
        without a centre). Memory that loses nothing has one a task, with bytes and seconds.
    tasks_ : one record per task: samples, bytes, seconds; and, where they are asked for
        (`conche.train` and the command line ask), its error before and after it was learnt, and the
        gap.
    ridge_ : memory that loses nothing: the ridge, shaped like ``coef_``, in the columns' own units.
        The weights minimise the squared errors of all rows plus ``ridge_ * coef_**2``, summed.
    noise_std_ : the same: the standard deviation of targets around the model, one per target.
    offline_gap_ : memory and elastic nets: how far the objective of all rows is above its minimum,
        as a share of it.
    damping_ : the damping in force in the last task (``"damped"``; of ``"memory"`` beyond its rank
        and with the logistic loss, the mean scale that the columns' ridges come from).
    node_predictions_ : on a `Graph`, every node's own predictions of the last task.
    state_ : all of it, as one frozen value.

    Examples
    --------
    >>> import conche
    >>> tasks = conche.gaussian_tasks(n_tasks=3, n_samples=60, n_features=20, n_shared=20, seed=0)
    >>> model = conche.CoCoARegressor(n_nodes=4)
    >>> for task in tasks:
    ...     _ = model.partial_fit(task.X, task.y)
    >>> model.n_tasks_seen_, model.coef_.shape
    (3, (20,))
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Start over and learn (X, y) as the first task.

        Parameters
        ----------
        X : n_samples x n_features: an array, a DataFrame or a ``scipy.sparse`` matrix.
        y : n_samples targets, or n_samples x n_outputs.
        sample_weight : what each sample counts for; 3 is as much as three of it. Unequal weights
            count as fewer rows when memory chooses its ridge.
        """
        return self._fit(X, y, sample_weight, reset=True)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn one more task; the arguments are those of `fit`."""
        return self._fit(X, y, sample_weight, reset=not hasattr(self, "state_"))

    def learn(self, X: Any, y: Any, asked: Asked, sample_weight: Any = None) -> Self:
        """`partial_fit`, and what else is asked of the task."""
        return self._fit(X, y, sample_weight, not hasattr(self, "state_"), asked)

    def _fit(self, X: Any, y: Any, sample_weight: Any, reset: bool, asked: Asked = PLAIN) -> Self:
        self.check_parameters()
        self._connect(reset)
        schema = None if reset else self.state_.schema
        gaps = self.missing == "mean"
        name = type(self).__name__
        inputs = check_task(name, X, y, schema, gaps, multi_output=True, y_numeric=True)
        if inputs.y.dtype.kind not in "biuf":
            raise DataError("the target is text: these are labels, classify them")
        flat = inputs.y.ndim == 1
        Y = inputs.y[:, None] if flat else inputs.y
        if not reset and (Y.shape[1] != self.state_.judge.n_outputs or flat != self.state_.flat):
            outputs = self.state_.judge.n_outputs
            raise DataError(
                f"y has shape {inputs.y.shape}, but the stream began with {outputs} output(s)"
            )
        weights = check_weights(sample_weight, len(Y))
        self._learn(inputs, Targets(Y, get_loss("squared"), flat, weights=weights), reset, asked)
        return self

    def _error(self, predictions: Array, Y: Array) -> float:
        return mean_squared(predictions, Y)

    def predict(self, X: Any) -> Array:
        """The predictions for the rows of X: one number each, or one row where y had several."""
        scores = self._decide(X)
        return scores[:, 0] if self.state_.flat else scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination of `predict` for the rows of X."""
        y, sample_weight = unmasked(y, "y"), unmasked(sample_weight, "sample_weight")
        return float(super().score(as_host(X), as_host(y), sample_weight))


@with_defaults(
    solver="memory", steps="cg", n_rounds=30, tol=1e-6, fit_intercept=True, scaling="standard"
)
class ConcheRegressor(CoCoARegressor):
    """`CoCoARegressor` with the defaults we recommend: it learns a stream in one pass, keeps no
    sample, and is, for any number of nodes, the ridge solution on all rows, with the strength that
    evidence chose from all rows (up to 10,000 columns; beyond it comes close).

    ``solver="memory"``, an intercept, ``scaling="standard"``, and where rounds are needed as many
    of ``steps="cg"`` as the certificate asks for; all parameters are those of `CoCoARegressor`.

    Examples
    --------
    >>> import conche
    >>> tasks = conche.gaussian_tasks(n_tasks=8, n_samples=60, n_features=20, n_shared=15, seed=0)
    >>> model = conche.ConcheRegressor(n_nodes=4)
    >>> for task in tasks:
    ...     _ = model.partial_fit(task.X, task.y)
    >>> offline = conche.generalization_error(conche.offline_solution(tasks), tasks)
    >>> conche.generalization_error(model.coef_, tasks) < 1.02 * offline
    True
    >>> model.ridge_.shape
    (20,)
    """
