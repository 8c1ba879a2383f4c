"""The estimate and its place in the stream, saved without pickle.

One safetensors file: the arrays (weights and memory of every node, history), and in its header
one JSON text with everything else.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from . import estimators
from .cocoa import RoundRecord
from .estimators.base import TaskRecord
from .estimators.settings import check_parameters, make_solver
from .network.base import estimate
from .node import State
from .partition import Partition
from .preparation import Preparation
from .solvers.base import Array

FORMAT = 1
CLASSES = ("CoCoARegressor", "CoCoAClassifier", "ConcheRegressor", "ConcheClassifier")
ROUND_FIELDS = tuple(RoundRecord.__annotations__)
NEWER = ("bound", "accuracy", "disagreement")  # rounds were once recorded without
TASK_FIELDS = tuple(TaskRecord.__annotations__)


class ModelFileError(ValueError):
    """A file that is not a whole Conche model this version can read."""


def save(model: Any, path: str | os.PathLike[str], timings: bool = True) -> None:
    """Write a trained model; the file appears whole or not at all.

    Without ``timings`` the records' seconds are written as zero, and the same stream gives the same
    bytes.
    """
    name = type(model).__name__
    if name not in CLASSES:
        raise TypeError(f"cannot save a {name}: only {', '.join(CLASSES)}")
    if not hasattr(model, "coef_"):
        raise ValueError(f"this {name} has not learnt anything yet: nothing to save")
    model._check_stream()  # what is saved must be able to go on
    arrays: dict[str, Array] = {}
    for k, state in enumerate(model._nodes.states()):
        arrays[f"node{k}.weights"] = state.weights
        for kind, kept in (("memory", state.memory), ("numbers", state.numbers)):
            for key, array in kept.items():
                arrays[f"node{k}.{kind}.{key}"] = array
    for kind, fields, records in (
        ("history", ROUND_FIELDS, model.history_), ("tasks", TASK_FIELDS, model.tasks_),
    ):  # fmt: skip
        for key in fields:
            values = np.array([record[key] for record in records])
            arrays[f"{kind}.{key}"] = values if timings or key != "seconds" else 0.0 * values
    if hasattr(model, "path_"):
        arrays |= {f"path.{key}": array for key, array in model.path_.items()}
    described = {
        "format": FORMAT,
        "class": name,
        "parameters": _jsonable(model.get_params(deep=False)),
        "columns": [columns.tolist() for columns in model.partition_],
        "dtype": np.dtype(model._weights_dtype).name,
        "n_tasks_seen": model.n_tasks_seen_,
        "damping": model.damping_,
        "agreed": model._agreed,
        "scores": model._scores.tolist(),
        "feature_names": _optional_list(model, "feature_names_in_"),
        "classes": _optional_list(model, "classes_"),
        "classes_dtype": str(model.classes_.dtype) if hasattr(model, "classes_") else None,
        "arrays": sorted(arrays),
        "flat_y": getattr(model, "_flat_y", None),
        "stream": getattr(model, "stream_", None),
    }
    if getattr(model._nodes, "rank", 0) > 0:
        return  # on MPI all ranks come here, and the first one writes
    contiguous = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    write_atomically(path, to_bytes(contiguous, {"conche": json.dumps(described)}))


def load(path: str | os.PathLike[str], network: Any = "local") -> Any:
    """Read a model that `save` wrote; it goes on with the stream where it stood.

    It goes on in this process, wherever it was trained, unless another ``network`` is given.
    """
    described, arrays = _read(Path(path))
    try:
        described["parameters"]["network"] = network
        model, states = _restore(described, arrays)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        reason = str(error).splitlines()[0] if str(error) else repr(error)
        raise ModelFileError(f"{path}: incomplete or damaged model ({reason})") from error
    model._open_network(states)
    return model


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ModelFileError(f"{path}: not a whole model file ({error})") from None
    if "conche" not in header:
        raise ModelFileError(f"{path}: a safetensors file, but not a Conche model")
    try:
        described = json.loads(header["conche"])
    except json.JSONDecodeError as error:
        raise ModelFileError(f"{path}: its description is damaged ({error})") from None
    if not isinstance(described, dict) or not isinstance(described.get("format"), int):
        raise ModelFileError(f"{path}: its description is damaged")
    if described["format"] > FORMAT:
        raise ModelFileError(
            f"{path}: written by a newer Conche (format {described['format']}, this one reads "
            f"{FORMAT}): upgrade conche"
        )
    return described, arrays


def _restore(described: dict[str, Any], arrays: dict[str, Array]) -> tuple[Any, list[State]]:
    """The model, and the states that its network is to be opened with."""
    if described["class"] not in CLASSES:
        raise ValueError(f"unknown class {described['class']!r}")
    missing = set(described["arrays"]) - set(arrays)
    if missing:
        raise ValueError(f"array {min(missing)!r} is missing")
    model = getattr(estimators, described["class"])(**described["parameters"])
    columns = [np.array(c, dtype=np.intp) for c in described["columns"]]
    p = sum(len(c) for c in columns)
    model.partition_ = Partition(columns, p, intercept=model.fit_intercept)
    model.n_features_in_ = p
    if described["feature_names"] is not None:
        model.feature_names_in_ = np.array(described["feature_names"], dtype=object)
    if described["classes"] is not None:
        model.classes_ = np.array(described["classes"], dtype=described["classes_dtype"])
    model._weights_dtype = np.dtype(described["dtype"])
    model.n_tasks_seen_, model.damping_ = described["n_tasks_seen"], described["damping"]
    model.history_ = _records("history", ROUND_FIELDS, arrays)
    model.tasks_ = _records("tasks", TASK_FIELDS, arrays)
    model._agreed = described.get("agreed", described["damping"])
    model._scores = np.array(described.get("scores", [0.0]))
    check_parameters(model)
    model._solver = make_solver(model, model.partition_)
    model._preparation = Preparation(model.scaling, model.missing, bool(model.fit_intercept))
    model._fixed = model._settings()
    states = [_state(k, arrays) for k in range(len(columns))]
    for count, state in zip(model.partition_.weight_counts(), states, strict=True):
        if state.weights.ndim != 2 or len(state.weights) != count:
            raise ValueError("weights do not fit the partition")
    n_outputs = states[0].weights.shape[1] // len(model._scores)
    if described["flat_y"] is not None:
        model._flat_y, model._n_outputs = described["flat_y"], n_outputs
    if described.get("stream") is not None:
        model.stream_ = described["stream"]
    if "path.coef" in arrays:
        model.path_ = {k[5:]: a for k, a in arrays.items() if k.startswith("path.")}
    whole = estimate(model.partition_, model._preparation, states)
    start = int(np.argmin(model._scores)) * n_outputs
    model.__dict__.update(model._shape_weights(whole, slice(start, start + n_outputs)))
    return model, states


def _state(k: int, arrays: dict[str, Array]) -> State:
    def kept(prefix: str) -> dict[str, Array]:
        return {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}

    memory, numbers = kept(f"node{k}.memory."), kept(f"node{k}.numbers.")
    return State(arrays[f"node{k}.weights"], memory, numbers)


def _records(kind: str, fields: tuple[str, ...], arrays: dict[str, Array]) -> list[Any]:
    if kind == "tasks" and "tasks.task" not in arrays:
        return []  # a file from before there were any
    arrays = {
        f"history.{key}": np.full_like(arrays["history.loss"], np.nan) for key in NEWER
    } | arrays
    rows = zip(*(arrays[f"{kind}.{key}"].tolist() for key in fields), strict=True)
    return [dict(zip(fields, row, strict=True)) for row in rows]


def _jsonable(parameters: dict[str, Any]) -> dict[str, Any]:
    plain = {}
    for key, value in parameters.items():
        if key == "partition" and value is not None:
            value = [b if np.ndim(b) == 0 else np.asarray(b).tolist() for b in value]
        if key == "network" and not isinstance(value, str):
            value = "local"  # where it goes on is said when it is loaded
        try:
            plain[key] = json.loads(json.dumps(value, default=_number))
        except TypeError:
            raise ValueError(
                f"cannot save a model whose {key} is an object of your own ({value!r}): give it by "
                f"name"
            ) from None
    return plain


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(value)


def _optional_list(model: Any, attribute: str) -> list[Any] | None:
    value = getattr(model, attribute, None)
    return None if value is None else value.tolist()


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write beside the target, then rename: a reader sees the old file or the new one."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: no such folder to write {path.name} in")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:  # name the file that was meant
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
