"""From a model and files to errors and predictions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from .common.arrays import Array
from .errors import DataError, ParameterError, StreamError
from .estimators.base import LinearModel
from .estimators.elsewhere import own_scores, path_scores
from .measures import Guess, Metric, metric_named
from .metrics import ErrorMatrix
from .model_file import Run
from .node_stream import NodeStream
from .offline import offline_solution
from .tasks import Task
from .tasks.chosen import warn_of_absent
from .tasks.columns import Aligned
from .tasks.files import FileColumns
from .tasks.node_columns import NodeColumns
from .tasks.tables import PLAIN, Reading, Table, open_table, read_stdin, task_name
from .training import Stream, target_of, with_outputs

RIDGE, LEAST_SQUARES = "ridge", "least squares"


class Evaluation(NamedTuple):
    """``values`` [i, j]: on test task j after training task i; one row where no path was kept."""

    tasks: list[str]
    learnt: list[str]  # names of the rows
    values: Array
    metric: Metric
    offline: list[float] | None = None  #: ridge on all training tasks, with the model's own ridge
    least_squares: list[float] | None = None

    @property
    def yardsticks(self) -> dict[str, list[float]]:
        """What all training tasks at once give on each test task, by the name of the method."""
        beside = {RIDGE: self.offline, LEAST_SQUARES: self.least_squares}
        return {name: values for name, values in beside.items() if values is not None}

    @property
    def average(self) -> float:
        """The mean over all test tasks, after the last task that was learnt."""
        return mean_of(self.values[-1])

    @property
    def forgetting(self) -> float | None:
        """How much worse old tasks are at the end than when they had just been learnt. None where
        there is not one test task for each that was learnt, or a value is not defined."""
        if self.values.shape[0] != self.values.shape[1] or np.isnan(self.values).any():
            return None
        return ErrorMatrix(-self.metric.better * self.values, None).forgetting


def mean_of(values: Array | list[float]) -> float:
    """Over the tasks where there is a value; NaN where there is none at all."""
    there = np.asarray(values)[~np.isnan(values)]
    return float(there.mean()) if len(there) else float("nan")


def evaluate(
    model: LinearModel,
    run: Run | None,
    stream: Stream,
    offline: Stream | None = None,
    metric: str | None = None,
) -> Evaluation:
    """Test a model, and what it was after each task, on every task of a stream.

    Parameters
    ----------
    model, run : as `conche.model_file.load_run` gives them.
    stream : the test tasks.
    offline : the training tasks: beside the model, least squares on all of them at once, and ridge
        with the model's own ridge, if it has one.
    metric : what is measured, by name (`conche.measures`); None: error rate or mean squared error.
    """
    measure = metric_named(metric, is_classifier(model), hasattr(model, "predict_proba"))
    if measure.probabilistic and offline is not None:
        raise ParameterError(f"metric={metric!r} cannot be had of least squares beside the model")
    if len(stream.columns) != model.n_features_in_:
        raise StreamError(
            f"{stream.stream}: {len(stream.columns)} columns for the model's {model.n_features_in_}"
        )
    path, learnt = _path(model, run, isinstance(stream, NodeStream))
    best = {} if offline is None else _offline(model, offline)
    names = _in_order(learnt, stream)
    columns: list[list[float]] = []
    beside: dict[str, list[float]] = {method: [] for method in best}
    for name in names:
        task = stream.task(stream.names.index(name))
        y = target_of(task, model)
        _check_labels(model, task)
        classes = model.state_.classes
        columns.append([measure.of(Guess(s, y, classes)) for s in _scores(model, path, task.X)])
        for method, (coef, intercept) in best.items():
            scores = model.state_.filled(task.X.read()) @ coef.T + intercept
            beside[method].append(measure.of(Guess(scores, y, classes)))
    count = len(columns[0])
    rows = learnt if len(learnt) == count else [""] * count
    values = np.array(columns).T
    return Evaluation(names, rows, values, measure, beside.get(RIDGE), beside.get(LEAST_SQUARES))


def _path(
    model: LinearModel, run: Run | None, there: bool
) -> tuple[Mapping[str, Array], list[str]]:
    """The estimates to test, and the names of the tasks that were learnt, as far as known. There
    are none here where weights stay with the nodes, which ``there`` predict by themselves."""
    learnt = [] if run is None else list(run.tasks)
    if model.state_.setup.homes and there:
        return {}, learnt
    path = model.state_.snapshot() if run is None or run.path is None else run.path
    return with_outputs(path, model.state_.shown), learnt


def _scores(model: LinearModel, path: Mapping[str, Array], X: Any) -> Iterable[Array]:
    """After each task that was learnt, as far as known: rows x outputs."""
    if isinstance(X, NodeColumns) and path:
        return path_scores(X, model.state_, path)
    if isinstance(X, NodeColumns):
        return [own_scores(X, model.state_, model.node_states())]
    return (raw @ c.T + i for raw, c, i in _estimates(path, X.read()))


def _in_order(learnt: list[str], stream: Stream) -> list[str]:
    """The test tasks, in the order in which tasks of these names were learnt."""
    return learnt if sorted(learnt) == sorted(stream.names) else list(stream.names)


def _estimates(path: Mapping[str, Array], raw: Array) -> Iterator[tuple[Array, Array, Array]]:
    """The matrix as it was filled, and the estimate, after each task."""
    gaps = np.isnan(raw) if "means" in path else np.zeros(1, dtype=bool)
    for i, (coef, intercept) in enumerate(zip(path["coef"], path["intercept"], strict=True)):
        yield (np.where(gaps, path["means"][i], raw) if gaps.any() else raw), coef, intercept


def _check_labels(model: LinearModel, task: Task) -> None:
    known = model.state_.classes
    unseen = [] if known is None else np.setdiff1d(task.y, known).tolist()
    if unseen:
        raise DataError(f"task {task.name}: label {unseen[0]!r} was never learnt")


def _offline(model: LinearModel, stream: Stream) -> dict[str, tuple[Array, Array]]:
    """Coefficients and intercepts from all training tasks at once, by method: with the model's
    filling, whether it has an intercept, and its ridge."""
    tasks = []
    for task in stream:
        if task.X.sparse:
            raise StreamError(
                f"{stream.stream}: sparse columns, and least squares needs dense ones"
            )
        X, y = model.state_.filled(np.asarray(task.X)), target_of(task, model)
        if model.state_.labels is not None:
            y = model.state_.shown.of(model.state_.labels.targets(y, float))
        y = np.reshape(y, (len(y), -1))
        tasks.append(Task(X, y, name=task.name, sample_weight=task.sample_weight))
    solved = {LEAST_SQUARES: _solution(tasks, 0.0, model.fit_intercept)}
    ridge = getattr(model, "ridge_", None)
    if ridge is None:
        return solved
    ridge = np.reshape(ridge, (-1, model.n_features_in_))
    return {RIDGE: _solution(tasks, ridge, model.fit_intercept), **solved}


def _solution(tasks: list[Task], ridge: Any, fit_intercept: bool) -> tuple[Array, Array]:
    """Coefficients and intercepts."""
    coef = offline_solution(tasks, ridge, fit_intercept)
    if not fit_intercept:
        return coef, np.zeros(len(coef))
    v = [np.ones(t.n_samples) if t.sample_weight is None else t.sample_weight for t in tasks]
    left = np.concatenate([t.y - t.X @ coef.T for t in tasks])
    return coef, np.average(left, axis=0, weights=np.concatenate(v))


def predict_there(model: LinearModel, stream: NodeStream) -> list[Predictions]:
    """Predictions of every task of a stream whose nodes have the columns, beside its key."""
    found = []
    for task in stream:
        probabilities = model.predict_proba(task.X) if hasattr(model, "predict_proba") else None
        values = model.predict(task.X)
        found.append(Predictions(str(task.name), stream.key_columns(task), values, probabilities))
    return found


class Predictions(NamedTuple):
    """Of one file: columns that were kept, what is predicted, and class probabilities, if any."""

    file: str
    kept: dict[str, Array]
    values: Array
    probabilities: Array | None


def predict(
    model: LinearModel, file: Path | None, keep: Sequence[str] = (), reading: Reading = PLAIN
) -> Predictions:
    """Predictions for a file (None: CSV from standard input), beside the columns to ``keep``."""
    table = read_stdin(reading) if file is None else open_table(file, reading)
    names = model.state_.schema.names
    columns = table.features if names is None else list(names)
    if names is None:
        columns = [name for name in columns if name not in keep]
    if len(columns) != model.n_features_in_:
        raise StreamError(
            f"{table.path}: {len(columns)} columns, and the model, which has no names for its "
            f"{model.n_features_in_}, cannot choose among them"
        )
    gaps = model.missing == "mean"
    for name in keep:
        if name not in table.names:
            raise StreamError(f"{table.path}: no {table.noun} {name!r} to keep{table.hint(name)}")
    absent = table.lacks(columns)
    if absent and not (gaps and len(absent) < len(columns)):
        raise StreamError(table.why_absent(absent[0], "model"))
    if absent:
        warn_of_absent(table.path, absent, columns)
    _tell_unseen(table, columns)
    lacking = set(absent)
    there = [name for name in columns if name not in lacking]
    X = Aligned.to(FileColumns(table, there, missing="keep" if gaps else "refuse"), columns)
    probabilities = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    kept = {name: table.copied(name) for name in keep}
    return Predictions(task_name(table.path), kept, model.predict(X), probabilities)


def _tell_unseen(table: Table, columns: Sequence[str]) -> None:
    """Warn of texts that are not among the model's: they are zero in all of its columns."""
    known = set(columns)
    for source in dict.fromkeys(table.source(name) for name in columns):
        if source not in known:
            for name in [name for name in table.parts(source) if name not in known][:1]:
                said = f"{name!r} was never learnt, and counts as none of those that were"
                warnings.warn(f"{table.path}: {said}", stacklevel=2)
