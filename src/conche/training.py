"""From files to a model and back: train with checkpoints, evaluate task by task, predict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from .checkpoint import load, save
from .estimators import CoCoAClassifier, CoCoARegressor, ConcheClassifier, ConcheRegressor
from .estimators.settings import SOLVERS, check_parameters
from .losses import get_loss
from .metrics import ErrorMatrix
from .network.graph import KINDS, Graph
from .offline import offline_solution
from .partition import Partition
from .preparation import Preparation
from .tasks import FileStream, StreamError, Task
from .tasks.files import FileColumns
from .tasks.tables import open_table
from .tasks.task import Array

CHECKPOINT = "model.conche"
NETWORKS = ("local", "mpi", "ray")
LARGEST_PATH = 64 << 20  # bytes of coefficients kept for the error matrix
Report = Callable[[str, dict[str, Any]], None]


def make_model(solver: str, classify: bool, **parameters: Any) -> Any:
    """The recommended model for ``memory``, Algorithm 1 for the others; None keeps a default."""
    if solver not in SOLVERS:
        raise ValueError(f"solver={solver!r} must be one of {', '.join(SOLVERS)}")
    given = {key: value for key, value in parameters.items() if value is not None}
    if solver == "memory":
        kind: Any = ConcheClassifier if classify else ConcheRegressor
    else:
        kind = CoCoAClassifier if classify else CoCoARegressor
    return kind(**given) if solver == "memory" else kind(solver=solver, **given)


def resumed(model: Any, folder: Path, stream: FileStream, classes: list[Any] | None = None) -> Any:
    """The model of a checkpoint, if it is of this stream and these settings; else what differs."""
    file = folder / CHECKPOINT
    if not file.exists():
        return model
    old = load(file, model.network)
    if type(old) is not type(model):
        raise ValueError(f"{file}: a {type(old).__name__}, but asked for is {type(model).__name__}")
    was = old.get_params(deep=False)
    for key, value in model.get_params(deep=False).items():
        if was[key] != value:
            raise ValueError(f"{file}: was begun with {key}={was[key]!r}, not {value!r}")
    if not hasattr(old, "stream_"):
        raise ValueError(f"{file}: was not written by conche train; it cannot be resumed")
    if old.stream_["target"] != stream.target:
        raise ValueError(
            f"{file}: was begun with the target {old.stream_['target']!r}, not {stream.target!r}"
        )
    if classes is not None and sorted(classes) != old.classes_.tolist():
        raise ValueError(f"{file}: was begun with the classes {old.classes_.tolist()}")
    if old.stream_.get("graph") != _graph(model):
        was, now = (graph or "a centre" for graph in (old.stream_.get("graph"), _graph(model)))
        raise ValueError(f"{file}: was begun with {was}, not {now}")
    learnt, names = old.stream_["tasks"], stream.names
    for i, name in enumerate(learnt):
        if i >= len(names) or names[i] != name:
            now = names[i] if i < len(names) else "nothing"
            raise ValueError(f"{file}: task {i + 1} was {name!r}, the stream now has {now!r} there")
    if old.stream_["columns"] != stream.columns:
        raise ValueError(f"{file}: was begun with other columns than the stream has")
    return old


def train(
    model: Any,
    stream: FileStream,
    *,
    classes: list[Any] | None = None,
    checkpoint: Path | None = None,
    report: Report = lambda name, record: None,
) -> Any:
    """Learn the tasks that the model has not seen; after each, write the checkpoint."""
    check_settings(model, stream)
    if checkpoint is not None:
        checkpoint.mkdir(parents=True, exist_ok=True)
    for i in range(getattr(model, "n_tasks_seen_", 0), len(stream)):
        task = stream.task(i)
        options = {}
        if is_classifier(model):
            options = {"classes": None if hasattr(model, "coef_") else classes}
        try:
            model.partial_fit(task.X, _target(task, model), **options)
        except StreamError:
            raise
        except ValueError as error:
            said = str(error).replace("pass classes= to partial_fit", "list them (--classes)")
            raise ValueError(f"task {task.name}: {said}") from error
        _keep_path(model)
        model.stream_ = {
            "target": stream.target, "columns": stream.columns, "tasks": stream.names[: i + 1],
            "graph": _graph(model),
        }  # fmt: skip
        if checkpoint is not None:
            save(model, checkpoint / CHECKPOINT, timings=False)
        report(str(task.name), dict(model.tasks_[-1]))
    return model


def _graph(model: Any) -> str | None:
    """Which graph the nodes talk on; with a centre it does not matter where they are."""
    return repr(model.network) if isinstance(model.network, Graph) else None


def check_settings(model: Any, stream: FileStream) -> None:
    """What is wrong with the model's parameters is said before any task is blamed for it."""
    check_parameters(model)
    Partition.make(len(stream.columns), model.n_nodes, model.partition, model.fit_intercept)
    Preparation(model.scaling, model.missing)
    if is_classifier(model):
        get_loss(model.loss)
    if isinstance(model.network, str) and model.network not in NETWORKS:
        known = f"{', '.join(NETWORKS)}, or a graph ({', '.join(KINDS)})"
        raise ValueError(f"network={model.network!r} must be one of {known}")


def _target(task: Task, model: Any) -> Array:
    if is_classifier(model):
        return task.y
    if task.y.dtype.kind not in "biuf":
        raise ValueError("the target is text: these are labels, classify them")
    return task.y.astype(float)


def _keep_path(model: Any) -> None:
    """The estimate after every task, for the error matrix; given up where it grows too large."""
    if hasattr(model, "path_") or model.n_tasks_seen_ == 1:
        now = {"coef": np.array(model.coef_)[None], "intercept": np.array(model.intercept_)[None]}
        if model.missing == "mean":  # what was missing was filled with the means of the time
            now["means"] = np.array(model._means)[None]
        if hasattr(model, "path_"):
            now = {key: np.concatenate([model.path_[key], new]) for key, new in now.items()}
        model.path_ = now
        if sum(array.nbytes for array in now.values()) > LARGEST_PATH:
            del model.path_


class Evaluation(NamedTuple):
    """``errors`` [i, j]: on test task j after training task i; one row where no path was kept."""

    tasks: list[str]
    learnt: list[str]  # names of the rows
    errors: Array
    metric: str
    offline: list[float] | None = None

    @property
    def average(self) -> float:
        return float(self.errors[-1].mean())

    @property
    def forgetting(self) -> float | None:
        """None where there is not one test task for each that was learnt."""
        if self.errors.shape[0] != self.errors.shape[1]:
            return None
        return ErrorMatrix(self.errors, None).forgetting


def evaluate(
    model: Any,
    stream: FileStream,
    offline: FileStream | None = None,
    report: Callable[[str], None] = lambda name: None,
) -> Evaluation:
    """Test a model, and what it was after each task, on every task of a stream."""
    if len(stream.columns) != model.n_features_in_:
        raise StreamError(
            f"{stream.files[0]}: {len(stream.columns)} columns for the model's "
            f"{model.n_features_in_}"
        )
    path = getattr(model, "path_", None) or {
        "coef": model.coef_[None], "intercept": np.array([model.intercept_]),
        "means": np.array([model._means]),
    }  # fmt: skip
    best = None if offline is None else _offline(model, offline)
    names = _in_order(model, stream)
    columns, beside = [], []
    for name in names:
        task = stream.task(stream.names.index(name))
        raw, y = np.asarray(task.X), _target(task, model)
        try:
            columns.append([_error(model, X, y, c, i) for X, c, i in _steps(model, path, raw)])
            if best is not None:
                beside.append(_error(model, _filled(model, raw), y, best[0], best[1]))
        except ValueError as error:
            raise ValueError(f"task {task.name}: {error}") from error
        report(name)
    metric = "error rate" if is_classifier(model) else "mean squared error"
    seen = getattr(model, "stream_", {}).get("tasks", [])
    learnt = seen if len(seen) == len(path["coef"]) else [""] * len(path["coef"])
    return Evaluation(names, learnt, np.array(columns).T, metric, beside or None)


def _in_order(model: Any, stream: FileStream) -> list[str]:
    """The test tasks, in the order in which tasks of these names were learnt."""
    learnt = getattr(model, "stream_", {}).get("tasks", [])
    return list(learnt) if sorted(learnt) == sorted(stream.names) else stream.names


def _steps(model: Any, path: dict[str, Array], raw: Array) -> Iterator[tuple[Array, Array, Any]]:
    """The matrix as it was filled, and the estimate, after each task."""
    gaps = np.isnan(raw) if model.missing == "mean" else np.zeros(1, dtype=bool)
    for i, (coef, intercept) in enumerate(zip(path["coef"], path["intercept"], strict=True)):
        X = np.where(gaps, path["means"][i], raw) if gaps.any() else raw
        yield X, coef, intercept


def _filled(model: Any, raw: Array) -> Array:
    return np.where(np.isnan(raw), model._means, raw) if model.missing == "mean" else raw


def _error(model: Any, X: Array, y: Array, coef: Array, intercept: Any) -> float:
    scores = X @ np.atleast_2d(coef).T + intercept
    if not is_classifier(model):
        return float(np.mean((scores[:, 0] - y) ** 2))
    unseen = np.setdiff1d(y, model.classes_)
    if len(unseen):
        raise ValueError(f"label {unseen.tolist()[0]!r} was never learnt")
    index = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return float(np.mean(model.classes_[index] != y))


def _offline(model: Any, stream: FileStream) -> tuple[Array, Any]:
    """Least squares on all training tasks at once, with the model's filling and intercept."""
    tasks = []
    for task in stream:
        X, y = _filled(model, np.asarray(task.X)), _target(task, model)
        if is_classifier(model):
            y = model._encode(y, float)
        if model.fit_intercept:
            X = np.hstack([X, np.ones((len(X), 1))])
        tasks.append(Task(X, y, name=task.name))
    best = np.atleast_2d(offline_solution(tasks))
    if model.fit_intercept:
        return best[:, :-1], best[:, -1]
    return best, 0.0


def predict(model: Any, file: Path) -> tuple[Array, Array | None]:
    """Predictions for a file, and class probabilities where the model has them."""
    if file.suffix not in (".parquet", ".csv", ".npz"):
        raise StreamError(f"{file}: expected a .parquet, .csv or .npz file")
    table = open_table(file, "")
    names = getattr(model, "feature_names_in_", None)
    columns = table.features if names is None else list(names)
    if len(columns) != model.n_features_in_:
        raise StreamError(
            f"{file}: {len(columns)} columns, and the model, which has no names for its "
            f"{model.n_features_in_}, cannot choose among them"
        )
    for name in columns:
        if name not in table.names:
            raise StreamError(f"{file}: column {name!r} of the model is missing")
    X = FileColumns(table, columns, None, "keep" if model.missing == "mean" else "refuse")
    probabilities = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    return model.predict(X), probabilities
