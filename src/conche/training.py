"""From files to a model: train task by task, with checkpoints."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import is_classifier

from .common.arrays import MOST_SQUARES, Array, sum_of_squares
from .common.checks import one_of
from .common.outputs import Outputs
from .common.words import one_line, too_large
from .errors import ConcheError, DataError, ParameterError, StreamError
from .estimators import CoCoAClassifier, CoCoARegressor, ConcheClassifier, ConcheRegressor
from .estimators.base import Asked, LinearModel
from .estimators.connection import connect
from .estimators.inputs import Schema
from .model_file import Run, load_run, save
from .node_stream import NodeStream
from .nodes import Partition
from .nodes.solvers import SOLVERS, option
from .rounds import choose_steps, get_loss
from .tasks import FileStream, Task
from .tasks.columns import Aligned
from .tasks.mark import Mark, block_mark, target_mark

CHECKPOINT = "model.conche"
LARGEST_PATH = 64 << 20  # bytes of coefficients kept for the error matrix
LARGEST_SPARSE_PATH = 16 << 20  # the same where the columns themselves take little
Report = Callable[[str, Mapping[str, Any], list[str]], None]
Stream = FileStream | NodeStream
M = TypeVar("M", bound=LinearModel)


def make_model(
    solver: str, classify: bool, options: Mapping[str, Any], **parameters: Any
) -> LinearModel:
    """The recommended model for solvers that remember, Algorithm 1 for the others.

    Parameters
    ----------
    solver : its name.
    classify : whether targets are labels.
    options : of the solver; what is None keeps its default.
    parameters : of the estimator; what is None keeps its default, but for the scaling, where None
        is one of the choices.
    """
    one_of("solver", solver, SOLVERS)
    given = {k: v for k, v in parameters.items() if v is not None or k == "scaling"}
    own = {key: value for key, value in options.items() if value is not None}
    if solver == "memory" and not getattr(parameters.get("network"), "central", True):
        own.setdefault("rank", 0)  # said aloud, so that the model's file is the same wherever it is
    if own or solver == "elastic-net":
        given["solver"] = option(solver, **own)
    elif solver != "memory":
        given["solver"] = solver
    kinds = (CoCoAClassifier, CoCoARegressor)
    if solver == "memory" or (solver == "elastic-net" and own.get("rank") != 0):
        kinds = (ConcheClassifier, ConcheRegressor)
    return kinds[0 if classify else 1](**given)


def begin(
    model: LinearModel, stream: Stream, folder: Path | None, resume: bool, classes: Any = None
) -> tuple[LinearModel, Run]:
    """A model and run to `train` with: new ones, or those of the checkpoint in ``folder``."""
    if folder is None:
        if resume:
            raise ParameterError("--resume needs --checkpoint, or what an earlier run has left")
    elif folder.exists() and not folder.is_dir():
        raise ParameterError(f"{folder}: is not a folder")
    elif (folder / CHECKPOINT).exists():
        if not resume:
            raise ParameterError(f"{folder}: has a checkpoint; --resume it, or choose another")
        return resumed(model, folder / CHECKPOINT, stream, classes)
    return model, _new_run(model, stream)


def _new_run(model: LinearModel, stream: Stream) -> Run:
    return Run(stream.target, tuple(stream.columns), weight=stream.weight, graph=_graph(model))


def resumed(
    model: LinearModel, file: Path, stream: Stream, classes: Any = None
) -> tuple[LinearModel, Run]:
    """The model and run of a checkpoint, if it is of this stream and these settings."""
    old, run = load_run(file, model.network, model.device)
    if type(old) is not type(model):
        raise ParameterError(
            f"{file}: a {type(old).__name__}, but asked for is {type(model).__name__}"
        )
    was = old.get_params(deep=False)
    for key, value in model.get_params(deep=False).items():
        same = repr(was[key]) == repr(value) if key == "solver" else was[key] == value
        if not same:
            raise ParameterError(f"{file}: was begun with {key}={was[key]!r}, not {value!r}")
    if run is None:
        raise ParameterError(f"{file}: was not written by conche train; it cannot be resumed")
    if run.target != stream.target:
        raise ParameterError(
            f"{file}: was begun with the target {run.target!r}, not {stream.target!r}"
        )
    if run.weight != stream.weight:
        raise ParameterError(
            f"{file}: was begun with the weight {run.weight!r}, not {stream.weight!r}"
        )
    known = old.state_.classes
    if classes is not None and known is not None and not set(known.tolist()) <= set(classes):
        raise ParameterError(f"{file}: has the classes {known.tolist()}; list them all, or none")
    if run.graph != _graph(model):
        then, now = (graph or "a centre" for graph in (run.graph, _graph(model)))
        raise ParameterError(f"{file}: was begun with {then}, not {now}")
    _check_tasks(file, run, stream)
    _check_marks(file, run, stream, old.state_.setup.partition)
    return old, run


def _check_tasks(file: Path, run: Run, stream: Stream) -> None:
    names = stream.names
    for i, name in enumerate(run.tasks):
        if i >= len(names) or names[i] != name:
            now = names[i] if i < len(names) else "nothing"
            raise StreamError(
                f"{file}: task {i + 1} was {name!r}, the stream now has {now!r} there"
            )
    if list(run.columns) != list(stream.columns):
        raise StreamError(f"{file}: was begun with other columns than the stream has")


def _check_marks(file: Path, run: Run, stream: Stream, partition: Partition) -> None:
    """Whether the tasks that were learnt are still what they were; they are read once more."""
    names: list[str] = []  # those that the stream had by then
    for i, mark in enumerate(run.marks):
        task = stream.task(i)
        known = set(names)
        names += [name for name in task.X.names if name not in known]
        features = _features_mark(stream, task, names, partition)
        changed = mark.changed(Mark(len(task.y), target_mark(task.y, task.sample_weight), features))
        if changed is not None:
            whose = stream.changed(task, mark) if isinstance(stream, NodeStream) else ""
            raise StreamError(
                f"{file}: task {task.name!r} is not the one that was learnt: {changed} now{whose}"
            )


def _features_mark(stream: Stream, task: Task, names: list[str], partition: Partition) -> int:
    """Of a task's columns, each node's read where they are."""
    if isinstance(stream, NodeStream):
        return stream.mark(task, names, partition)
    X, blocks = Aligned.to(task.X, names), enumerate(partition.first(len(names)))
    return sum(block_mark(k, X.select(own).read()) for k, own in blocks if len(own))


def train(
    model: M,
    stream: Stream | Iterable[Task],
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[str, Mapping[str, Any]], None] | None = None,
) -> M:
    """Learn a whole stream, as ``conche train`` does: with every task's errors before and after.

    Parameters
    ----------
    model : one of Conche's estimators; it is trained in place.
    stream : a `FileStream`, a `NodeStream`, or tasks one after another.
    checkpoint : a folder that has the model after every task; where it has one already, the model
        goes on from there. For streams of files.
    progress : is told every task's name and its record in ``tasks_``.

    Returns
    -------
    The model.

    Examples
    --------
    >>> import conche
    >>> tasks = conche.gaussian_tasks(n_tasks=3, n_samples=50, n_features=8, n_shared=8, seed=0)
    >>> model = conche.train(conche.ConcheRegressor(n_nodes=2), tasks)
    >>> [record["after"] < 0.02 for record in model.tasks_]
    [True, True, True]
    """
    tell = progress or (lambda name, record: None)
    if isinstance(stream, FileStream | NodeStream):
        folder = None if checkpoint is None else Path(checkpoint)
        known, run = begin(model, stream, folder, resume=folder is not None)
        if known is not model:
            model.take_over(known)
        for _ in learning(
            model,
            stream,
            run=run,
            checkpoint=folder,
            report=lambda name, record, _: tell(name, record),
        ):
            pass
        return model
    if checkpoint is not None:
        raise ParameterError("checkpoint is for streams of files, which can be read again")
    tasks = iter(stream)
    task = next(tasks, None)
    while task is not None:
        later = next(tasks, None)  # the last task ends with the ridge of all rows
        learn_task(model, task, None, Asked(errors=True, last=later is None))
        tell(str(task.name or model.n_tasks_seen_), model.tasks_[-1])
        task = later
    return model


def learning(
    model: LinearModel,
    stream: Stream,
    *,
    run: Run,
    classes: Any = None,
    checkpoint: Path | None = None,
    report: Report = lambda name, record, new: None,
) -> Iterator[Run]:
    """Learn the tasks that the model has not seen; after each, write the checkpoint, and yield the
    run so far.

    Parameters
    ----------
    model : is trained in place.
    stream : the tasks.
    run : of the tasks before.
    classes : labels that are known to come.
    checkpoint : a folder to write the model to after every task.
    report : is told every task's name and record, and the columns that it has brought.
    """
    check_settings(model, stream)
    if checkpoint is not None:
        checkpoint.mkdir(parents=True, exist_ok=True)
    first = len(run.tasks)
    for i in range(first, len(stream)):
        task = stream.task(i)
        known = model.n_features_in_ if hasattr(model, "state_") else len(task.X.names)
        # states that no file has any more: of this run's tasks before; and the one that it was
        # resumed from, which the checkpoint replaces, unless a finished model has it, too
        replaced = i > first or (checkpoint is not None and first and not run.shared)
        before = model.state_ if replaced else None
        learn_task(model, task, classes, Asked(errors=True, last=i == len(stream) - 1))
        sums = tuple(own for _, own in task.X.files)
        target = target_mark(task.y, task.sample_weight)
        mark = Mark(len(task.y), target, model.state_.mark, sums)
        names, marks = (*run.tasks, str(task.name)), (*run.marks, mark)
        run = replace(run, tasks=names, marks=marks, path=_path(model, run), shared=False)
        if checkpoint is not None:
            save(model, checkpoint / CHECKPOINT, timings=False, run=run)
        report(str(task.name), model.tasks_[-1], model.feature_names_in_[known:].tolist())
        yield run
        if isinstance(stream, NodeStream):
            stream.let_go(model, before)


def finish(
    model: LinearModel, stream: Stream, *, run: Run, out: Path, checkpoint: Path | None
) -> None:
    """Write the model of a run that has ended. Where nodes keep its weights, the checkpoint is
    marked before: who goes on from it must not let go of what the finished model has, too."""
    if checkpoint is not None and isinstance(stream, NodeStream) and stream.homes:
        shared = replace(run, shared=True)
        save(model, checkpoint / CHECKPOINT, timings=False, run=shared)
    save(model, out, timings=False, run=replace(run, shared=False))  # the same stream, same bytes


def learn_task(model: LinearModel, task: Task, classes: Any, asked: Asked) -> None:
    """One task of a stream; what is wrong with it is said with its name."""
    options = {"sample_weight": task.sample_weight}
    if is_classifier(model) and not hasattr(model, "state_"):
        options["classes"] = classes
    target = target_of(task, model)
    try:
        model.learn(task.X, target, asked, **options)
    except StreamError:
        raise
    except ConcheError as error:
        named = f"task {task.name}: " if task.name else ""
        raise type(error)(f"{named}{one_line(error)}") from error


def check_settings(model: LinearModel, stream: Stream) -> None:
    """What is wrong with the model's parameters is said before any task is blamed for it."""
    get_loss(model.loss)
    model.check_parameters()
    names = tuple(stream.columns)
    setup, _ = model.make_setup(Schema(len(names), names, "float64"))
    choose_steps(model.steps, setup.solver, connect(model.network).network)


def target_of(task: Task, model: LinearModel) -> Array:
    """A task's target as the model takes it: labels as they are, else numbers."""
    if is_classifier(model):
        return task.y
    if task.y.dtype.kind not in "biuf":
        raise DataError(
            f"task {task.name}: the target is text here, and was numbers: labels need --classify "
            f"from the first task on"
        )
    y = task.y.astype(float)
    if not sum_of_squares(y) < MOST_SQUARES:
        raise DataError(f"task {task.name}: {too_large('the target')}")
    return y


def _graph(model: LinearModel) -> str | None:
    """Which graph the nodes talk on; with a centre it does not matter where they are."""
    return connect(model.network).network.topology()


def _path(model: LinearModel, run: Run) -> Mapping[str, Array] | None:
    """The estimate after every task, for the error matrix; given up where it grows too large."""
    if (run.tasks and run.path is None) or model.state_.setup.homes:
        return None
    now = model.state_.snapshot()  # with the means of the time, for what was missing
    if run.path is not None:
        began = model.state_.began  # earlier estimates also get outputs of classes that are new
        before = run.path if began is None else with_outputs(run.path, began)
        before = {key: _with_columns(array, now[key]) for key, array in before.items()}
        now = {key: np.concatenate([before[key], new]) for key, new in now.items()}
    most = LARGEST_SPARSE_PATH if model.state_.schema.sparse else LARGEST_PATH
    return now if sum(array.nbytes for array in now.values()) <= most else None


def _with_columns(before: Array, now: Array) -> Array:
    """Estimates from before columns came, which had weight zero then."""
    more = now.shape[-1] - before.shape[-1]
    if not more:
        return before
    return np.concatenate([before, np.zeros((*before.shape[:-1], more), before.dtype)], axis=-1)


def with_outputs(path: Mapping[str, Array], outputs: Outputs) -> Mapping[str, Array]:
    """Estimates, task by task, with other outputs than they have."""
    coef = np.moveaxis(outputs.of(np.moveaxis(path["coef"], 1, -1)), -1, 1)
    return {**path, "coef": coef, "intercept": outputs.of(path["intercept"])}
