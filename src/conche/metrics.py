"""How well an estimate does on all tasks, and how much it forgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from .common.arrays import Array
from .common.extras import need
from .common.scores import error_rate, mean_squared
from .common.words import counted
from .errors import DataError, ParameterError
from .tasks import Task, toeplitz_norm


def generalization_error(coef: Any, tasks: Sequence[Task]) -> float:
    """g_T: the expected squared error on a new sample, averaged over all tasks.

    (1/T) sum_t |w - w*_t|^2 + sigma_t^2 (the paper's definition), with the norm weighted by the
    features' covariance where they are correlated. Needs the tasks' true weights.

    Parameters
    ----------
    coef : an estimate, shaped like ``coef_``.
    tasks : synthetic tasks, which know their ``weights`` and ``noise_var``.

    Returns
    -------
    The error, the tasks' noise included.

    Examples
    --------
    >>> import conche
    >>> tasks = conche.gaussian_tasks(2, 50, 8, n_shared=8, noise_var=0.01)
    >>> round(conche.generalization_error(tasks[0].weights, tasks), 4)  # the truth: noise alone
    0.01
    """
    coef = np.asarray(coef, dtype=np.float64)
    errors = []
    for t, task in enumerate(_some(tasks), start=1):
        if task.weights is None or task.noise_var is None:
            raise DataError(
                f"task {task.name or t} has no true weights or noise_var: the generalization error "
                f"is defined for synthetic tasks; use training_error or error_matrix"
            )
        if coef.shape != np.shape(task.weights):
            raise DataError(
                f"coef has shape {coef.shape}, but task {task.name or t} has "
                f"{np.shape(task.weights)[0]} weights"
            )
        errors.append(float(toeplitz_norm(coef - task.weights, task.correlation)) + task.noise_var)
    return float(np.mean(errors))


def training_error(coef: Any, tasks: Sequence[Task]) -> float:
    """f_tau: the mean of |A_t w - y_t|^2 / (2 n_t) over the given tasks (the paper's forgetting).

    ``coef`` has the shape of ``coef_``; several outputs are summed.

    Parameters
    ----------
    coef : an estimate, shaped like ``coef_``; several outputs are summed.
    tasks : what it was trained on, or a part of that.

    Returns
    -------
    The mean over the tasks.

    Examples
    --------
    >>> import conche
    >>> import numpy as np
    >>> task = conche.Task(np.eye(2), [3.0, 4.0])
    >>> conche.training_error([0.0, 0.0], [task])  # (9 + 16) / (2 * 2)
    6.25
    """
    coef = np.asarray(coef)
    errors = []
    for t, task in enumerate(_some(tasks), start=1):
        if coef.shape[-1] != task.n_features:
            raise DataError(
                f"coef is for {coef.shape[-1]} columns, but task {task.name or t} has "
                f"{task.n_features}"
            )
        off = _matched(np.asarray(task.X @ coef.T), task) - task.y
        errors.append(np.sum(off**2) / (2 * task.n_samples))
    return float(np.mean(errors))


@dataclass(frozen=True, eq=False)
class ErrorMatrix:
    """R[i, j]: the test error on task j after training task i; ``numpy.asarray`` gives R.

    Attributes
    ----------
    values : R, an array of as many rows and columns as there are tasks.
    model : the trained copy.
    names : of the tasks, where they have any.
    untrained : the errors with nothing learnt, which `forward_transfer` compares with.

    Examples
    --------
    >>> import conche
    >>> tasks = conche.gaussian_tasks(n_tasks=3, n_samples=400, n_features=8, seed=0)
    >>> train = [conche.Task(task.X[:200], task.y[:200]) for task in tasks]
    >>> test = [conche.Task(task.X[200:], task.y[200:]) for task in tasks]

    >>> found = conche.error_matrix(conche.CoCoARegressor(), train, test)
    >>> found.values.round(1)  # one node of Algorithm 1 knows the last task and no other
    array([[0. , 2.1, 1.8],
           [3.1, 0. , 3.2],
           [1.8, 2.2, 0. ]])
    >>> round(found.average, 1), round(found.forgetting, 1)
    (1.3, 2.0)
    """

    values: Array
    model: Any = None  # the trained copy
    names: tuple[str, ...] = ()  # of the tasks
    untrained: Array | None = None  # errors of a model that has learnt nothing

    @property
    def average(self) -> float:
        """The mean error over all tasks after the last one: (1/T) sum_j R[T-1, j]."""
        return float(self.values[-1].mean())

    @property
    def forgetting(self) -> float:
        """How much worse old tasks are at the end than when they had just been learnt:
        the mean over j < T-1 of R[T-1, j] - R[j, j]."""
        return float((self.values[-1] - np.diag(self.values))[:-1].mean()) if len(self) > 1 else 0.0

    @property
    def forgetting_from_best(self) -> float:
        """The same against the best error on the task since it was learnt:
        the mean over j < T-1 of R[T-1, j] - min over i >= j of R[i, j]."""
        if len(self) == 1:
            return 0.0
        last = len(self) - 1
        return float(np.mean([self[last, j] - self.values[j:, j].min() for j in range(last)]))

    @property
    def seen(self) -> Array:
        """The mean error over the tasks seen so far, after each task."""
        return np.array([row[: i + 1].mean() for i, row in enumerate(self.values)])

    @property
    def backward_transfer(self) -> float:
        """How much *better* old tasks are at the end than when they had just been learnt; minus
        `forgetting`."""
        return -self.forgetting

    @property
    def forward_transfer(self) -> float:
        """How much better tasks are before they are learnt than with nothing learnt at all: the
        mean over j > 0 of (error untrained)[j] - R[j-1, j]."""
        if self.untrained is None:
            raise ParameterError("forward transfer needs the errors of an untrained model")
        before = [self.untrained[j] - self[j - 1, j] for j in range(1, len(self))]
        return float(np.mean(before)) if before else 0.0

    def to_frame(self) -> Any:
        """R as a pandas DataFrame: a row after each task, a column for each test task."""
        pd = need("pandas", "dev", "a data frame")
        names = self._labels()
        rows = pd.Index(names[: len(self)], name="after")
        return pd.DataFrame(self.values, index=rows, columns=pd.Index(names, name="task"))

    def plot(self, ax: Any = None) -> Any:
        """The errors as a picture: a row after each task, a column for each test task; and their
        mean over the tasks seen so far. Answers matplotlib's axes."""
        plt = need("matplotlib.pyplot", "cli", "a plot")
        if ax is None:
            _, ax = plt.subplots(figsize=(0.6 * len(self) + 3, 0.5 * len(self) + 1.8))
        names, T = self._labels(), len(self)
        picture = ax.imshow(self.values, cmap="viridis_r", aspect="auto")
        ax.figure.colorbar(picture, ax=ax, label="test error")
        ax.set_xticks(range(len(names)), names, rotation=0 if max(map(len, names)) < 4 else 60)
        ax.set_yticks(range(T), [f"{n}  ({m:.3g})" for n, m in zip(names, self.seen, strict=True)])
        ax.set(xlabel="test task", ylabel="after task  (mean of those seen)")
        ax.set_title(f"average {self.average:.3g}, forgetting {self.forgetting:.3g}", fontsize=10)
        return ax

    def _labels(self) -> list[str]:
        columns = self.values.shape[1]
        return list(self.names) or [str(j + 1) for j in range(columns)]

    def __repr__(self) -> str:
        said = f"average {self.average:.3g}, forgetting {self.forgetting:.3g}"
        return f"ErrorMatrix({counted(len(self), 'task')}, {said})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __getitem__(self, key: Any) -> Any:
        return self.values[key]

    def __len__(self) -> int:
        return len(self.values)


def error_matrix(
    model: Any,
    train: Sequence[Task],
    test: Sequence[Task],
    error: Callable[[Any, Task], float] | None = None,
) -> ErrorMatrix:
    """Train a fresh copy of the model task by task, and test it on every task each time.

    Errors are mean squared errors for regressors and error rates for classifiers, unless ``error``
    says otherwise. ``model`` itself is left as it is; the trained copy is the result's ``model``.

    Parameters
    ----------
    model : an estimator with ``partial_fit``, Conche's or another.
    train, test : tasks, as many of one as of the other.
    error : of a trained model on a task.

    Returns
    -------
    An `ErrorMatrix`.

    Examples
    --------
    >>> import conche
    >>> tasks = conche.gaussian_tasks(n_tasks=3, n_samples=400, n_features=8, seed=0)
    >>> train = [conche.Task(task.X[:200], task.y[:200]) for task in tasks]
    >>> test = [conche.Task(task.X[200:], task.y[200:]) for task in tasks]

    >>> forgets = conche.error_matrix(conche.CoCoARegressor(), train, test)
    >>> remembers = conche.error_matrix(conche.ConcheRegressor(), train, test)
    >>> remembers.average < forgets.average
    True
    """
    if len(_some(train)) != len(test):
        raise DataError(f"{len(train)} training tasks but {len(test)} test tasks")
    model = clone(model)
    labels = {}
    if is_classifier(model):
        labels = {"classes": np.unique(np.concatenate([task.y for task in train]))}
    rows = []
    for task in train:
        model.partial_fit(task.X, task.y, **labels)
        rows.append([(error or task_error)(model, other) for other in test])
    names = tuple(str(task.name or j) for j, task in enumerate(test, start=1))
    nothing = None if error is not None else np.array([_untrained(model, task) for task in test])
    return ErrorMatrix(np.array(rows), model, names, nothing)


def _untrained(model: Any, task: Task) -> float:
    """The error of a model that predicts zero, or one of all classes by chance."""
    if is_classifier(model):
        return 1 - 1 / len(model.classes_)
    return mean_squared(np.zeros(np.shape(task.y)), task.y)


def task_error(model: Any, task: Task) -> float:
    """The error rate of a classifier, the mean squared error of a regressor."""
    predicted = _matched(np.asarray(model.predict(task.X)), task)
    return (error_rate if is_classifier(model) else mean_squared)(predicted, task.y)


def _matched(predicted: Array, task: Task) -> Array:
    """Predictions in the shape of y, so that a column never meets a row."""
    if predicted.size != task.y.size:
        raise DataError(f"{task}: y has shape {task.y.shape}, predictions {predicted.shape}")
    return predicted.reshape(task.y.shape)


def _some(tasks: Sequence[Task]) -> Sequence[Task]:
    if len(tasks) == 0:
        raise ParameterError("there are no tasks")
    return tasks
