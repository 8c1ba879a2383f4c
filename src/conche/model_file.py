"""A stream's state, saved without pickle.

One safetensors file (`conche.common.sealed`): the arrays (weights and memory of every node,
history), and one JSON text with everything else. Every array is checked when it is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from . import estimators
from .common.arrays import Array
from .common.atomic import write_atomically
from .common.sealed import seal, unseal
from .common.words import one_line
from .errors import ModelFileError, ParameterError
from .estimators import StreamPipeline
from .estimators.base import LinearModel
from .estimators.state import StreamState
from .nodes.partition import by_name
from .nodes.solvers import SOLVERS, Memory, SolverOption, option
from .pipeline_file import put_together, taken_apart
from .rounds import get_loss
from .state_file import arrays_of, description, restored
from .tasks.mark import Mark

FORMAT = 4
DAMAGE = (  # whatever a file that is not ours leads to
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)
CLASSES = ("CoCoARegressor", "CoCoAClassifier", "ConcheRegressor", "ConcheClassifier")


@dataclass(frozen=True)
class Run:
    """What a run of ``conche train`` knows beside the model.

    ``path`` has the estimate after every task (``coef``, ``intercept``, and ``means`` where missing
    values are filled), for the error matrix; None where it would be too large.
    """

    target: str
    columns: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()  # of the tasks, to know them again
    weight: str | None = None  # the column of the samples' weights
    graph: str | None = None  # which graph the nodes talk on; None with a centre
    path: Mapping[str, Array] | None = None
    shared: bool = False  # whether a finished model has its weights at home, too


def save(
    model: LinearModel | StreamPipeline,
    path: str | os.PathLike[str],
    *,
    timings: bool = True,
    run: Run | None = None,
) -> None:
    """Write a trained model; the file appears whole or not at all.

    Parameters
    ----------
    model : one of Conche's estimators, trained; or a `StreamPipeline` with one at its end and
        features of Conche's before it.
    path : of the file to write.
    timings : whether to write the records' seconds; without them the same stream gives the same
        bytes.
    run : what is to be kept beside the model.

    Examples
    --------
    >>> import conche, os, tempfile
    >>> task = conche.gaussian_tasks(1, 30, 4)[0]
    >>> model = conche.ConcheRegressor(n_nodes=2).fit(task.X, task.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     conche.save(model, f"{folder}/model.conche")
    ...     os.listdir(folder)
    ['model.conche']
    """
    model, steps, own = taken_apart(model)
    name = type(model).__name__
    if name not in CLASSES:
        raise ParameterError(f"cannot save a {name}: only {', '.join(CLASSES)}")
    if not hasattr(model, "state_"):
        raise ParameterError(f"this {name} has not learnt anything yet: nothing to save")
    model.check_stream()  # what is saved must be able to go on
    if run is None and model.state_.past is not None:
        model.settle()  # who predicts from the file need not look for the ridge
    state, network = model.state_, model.network_
    arrays = arrays_of(state, model.node_states, timings) | own
    if run is not None and run.path is not None:
        arrays |= {f"path.{key}": array for key, array in run.path.items()}
    described = {
        "class": name,
        "parameters": _plain_parameters(model),
        "steps": steps,
        **description(state),
        "arrays": sorted(arrays),
        "run": None if run is None else _described(run),
    }
    if network.writes_files():
        text = json.dumps(described, default=_number)
        write_atomically(path, seal(FORMAT, text, arrays))


def _described(run: Run) -> dict[str, Any]:
    """All but the path; columns, which may be many, as they are."""
    return asdict(replace(run, columns=(), path=None)) | {"columns": run.columns}


def load(path: str | os.PathLike[str], network: Any = "local", device: str | None = None) -> Any:
    """Read a model that `save` wrote; it goes on with the stream where it stood.

    It goes on in this process, wherever it was trained, unless another ``network`` or ``device`` is
    given.

    Parameters
    ----------
    path : of a file that `save` wrote.
    network, device : where to go on; see `CoCoARegressor`.

    Returns
    -------
    The estimator or the `StreamPipeline`, as it was saved.

    Examples
    --------
    >>> import conche, tempfile
    >>> task = conche.gaussian_tasks(1, 30, 4)[0]
    >>> model = conche.ConcheRegressor(n_nodes=2).fit(task.X, task.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     conche.save(model, f"{folder}/model.conche")
    ...     again = conche.load(f"{folder}/model.conche")
    >>> bool((again.coef_ == model.coef_).all())
    True
    """
    return _load(path, network, device)[0]


def load_run(
    path: str | os.PathLike[str], network: Any = "local", device: str | None = None
) -> tuple[LinearModel, Run | None]:
    """The model, and what ``conche train`` wrote beside it, if it did."""
    model, run = _load(path, network, device)
    if not isinstance(model, LinearModel):
        raise ModelFileError(f"{path}: a pipeline, which is for Python: conche.load")
    return model, run


def _load(path: str | os.PathLike[str], network: Any, device: str | None) -> tuple[Any, Run | None]:
    where = {"network": network, "device": device}
    try:
        described, arrays = unseal(path, FORMAT)
        model, state = _restored(described, arrays, where)
        run = _restored_run(described, arrays)
    except (ModelFileError, OSError):
        raise
    except KeyError as error:  # every bit is as it was written: by one that wrote other things
        raise ModelFileError(
            f"{path}: written by another version of Conche (it has no {error}): train it again"
        ) from error
    except DAMAGE as error:
        raise ModelFileError(f"{path}: incomplete or damaged model ({one_line(error)})") from error
    model.go_on(state)
    try:
        return put_together(model, described["steps"], arrays), run
    except DAMAGE as error:
        raise ModelFileError(f"{path}: incomplete or damaged model ({one_line(error)})") from error


def _restored(
    described: dict[str, Any], arrays: dict[str, Array], where: dict[str, Any]
) -> tuple[LinearModel, StreamState]:
    if described["class"] not in CLASSES:
        raise ValueError(f"unknown class {described['class']!r}")
    missing = set(described["arrays"]) - set(arrays)
    if missing:
        raise ValueError(f"{sorted(missing)[0]} is missing")
    parameters = _parameters(described, arrays) | where
    model: LinearModel = getattr(estimators, described["class"])(**parameters)
    get_loss(model.loss)
    return model, restored(described, arrays, model)


def _restored_run(described: dict[str, Any], arrays: dict[str, Array]) -> Run | None:
    if described["run"] is None:
        return None
    path = {k.removeprefix("path."): a for k, a in arrays.items() if k.startswith("path.")}
    lists = {key: tuple(described["run"][key]) for key in ("columns", "tasks")}
    lists["marks"] = tuple(Mark(**mark) for mark in described["run"]["marks"])
    return Run(**described["run"] | lists | {"path": path or None})


def _plain_parameters(model: LinearModel) -> dict[str, Any]:
    """Parameters as JSON has them; a solver object as its name and its own parameters."""
    plain = model.get_params(deep=False)
    del plain["network"], plain["device"]  # where it goes on is said when it is loaded
    solver = plain["solver"]
    if not model.network_.central and isinstance(option(solver), Memory):
        solver = Memory(**option(solver).get_params() | {"rank": 0})  # wherever it goes on
    if isinstance(solver, SolverOption):
        known = [name for name, kind in SOLVERS.items() if type(solver) is kind]
        if not known:
            raise ParameterError(
                f"cannot save a model whose solver is an object of yours: {solver}"
            )
        plain["solver"] = {"name": known[0], **solver.get_params()}
    if plain["partition"] is not None:  # sizes here; lists of columns in an array
        blocks = [np.asarray(block).tolist() for block in plain["partition"]]
        lists = any(isinstance(block, list) for block in blocks) and not by_name(blocks)
        plain["partition"] = "columns" if lists else blocks
    if isinstance(plain.get("class_weight"), dict):  # pairs: JSON's keys are texts
        plain["class_weight"] = [list(pair) for pair in plain["class_weight"].items()]
    return dict(json.loads(json.dumps(plain, default=_number)))


def _parameters(described: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Any]:
    """Back from `_plain_parameters`."""
    plain = described["parameters"]
    solver = plain["solver"]
    if isinstance(solver, dict):
        kind = SOLVERS[solver["name"]]
        plain = plain | {"solver": kind(**{k: v for k, v in solver.items() if k != "name"})}
    if isinstance(plain.get("class_weight"), list):
        plain = plain | {"class_weight": dict(plain["class_weight"])}
    if plain["partition"] == "columns":
        ends = np.cumsum(described["sizes"])[:-1]
        blocks = [block.tolist() for block in np.split(arrays["columns"], ends)]
        plain = plain | {"partition": blocks}
    return dict(plain)


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise ParameterError(f"cannot save a model with a parameter of {value!r}")
