"""A stream's state, saved without pickle.

One safetensors file (`conche.common.sealed`): the arrays (weights and memory of every node,
history), and one JSON text with everything else. Every array is checked when it is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from . import estimators
from .common.arrays import Array
from .common.atomic import write_atomically
from .common.sealed import digest, seal, unseal
from .common.words import one_line
from .errors import ModelFileError, ParameterError
from .estimators.arrivals import Stiffness
from .estimators.base import LinearModel
from .estimators.gap import Account
from .estimators.inputs import Schema
from .estimators.judge import Judge
from .estimators.labels import Labels
from .estimators.state import RoundRecord, StreamState, TaskRecord
from .network.base import coefficients, share
from .nodes import NodeState, Partition
from .nodes.solvers import SOLVERS, Memory, SolverOption, option
from .rounds import get_loss
from .tasks.mark import Mark

FORMAT = 3
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
ROUND_FIELDS = tuple(RoundRecord.__annotations__)
TASK_FIELDS = tuple(TaskRecord.__annotations__)


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


def save(
    model: LinearModel,
    path: str | os.PathLike[str],
    *,
    timings: bool = True,
    run: Run | None = None,
) -> None:
    """Write a trained model; the file appears whole or not at all.

    Parameters
    ----------
    model : one of Conche's estimators, trained.
    path : of the file to write.
    timings : whether to write the records' seconds; without them the same stream gives the same
        bytes.
    run : what is to be kept beside the model.
    """
    name = type(model).__name__
    if name not in CLASSES:
        raise ParameterError(f"cannot save a {name}: only {', '.join(CLASSES)}")
    if not hasattr(model, "state_"):
        raise ParameterError(f"this {name} has not learnt anything yet: nothing to save")
    model.check_stream()  # what is saved must be able to go on
    state, network = model.state_, model.network_
    arrays = _arrays(state, model.node_states(), timings)
    if run is not None and run.path is not None:
        arrays |= {f"path.{key}": array for key, array in run.path.items()}
    described = {
        "class": name,
        "parameters": _plain_parameters(model),
        **_description(state),
        "arrays": sorted(arrays),
        "run": None if run is None else asdict(run) | {"path": None},
    }
    if network.writes_files():
        text = json.dumps(described, default=_number)
        write_atomically(path, seal(FORMAT, text, arrays))


def _arrays(state: StreamState, nodes: list[NodeState], timings: bool) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for k, node in enumerate(nodes):
        arrays |= {f"node{k}.{key}": array for key, array in node.to_arrays().items()}
    kinds: tuple[tuple[str, tuple[str, ...], Any], ...] = (
        ("history", ROUND_FIELDS, state.history),
        ("tasks", TASK_FIELDS, state.tasks),
    )
    for kind, names, records in kinds:
        for key in names:
            values = np.array([record[key] for record in records])
            arrays[f"{kind}.{key}"] = values if timings or key != "seconds" else 0.0 * values
    if state.account is not None:
        arrays |= {
            f"account.{k}": np.asarray(v) for k, v in asdict(state.account).items() if v is not None
        }
    if state.settings.partition is not None:
        arrays["columns"] = _columns(state.setup.partition)
    return arrays


def _columns(partition: Partition) -> Array:
    """All nodes' columns, one node after another."""
    return np.concatenate([np.asarray(columns, dtype=np.int64) for columns in partition])


def _description(state: StreamState) -> dict[str, Any]:
    return {
        "sizes": state.setup.partition.sizes,
        "columns": digest(_columns(state.setup.partition)),
        "schema": asdict(state.schema),
        "n_outputs": state.judge.n_outputs,
        "scores": list(state.judge.scores),
        "strengths": list(state.judge.strengths),
        "judged": state.judge.seen,
        "meeting": state.setup.solver.meeting.value,
        "agreed": state.agreed,
        "flat": state.flat,
        "classes": None if state.classes is None else state.classes.tolist(),
        "classes_dtype": None if state.classes is None else str(state.classes.dtype),
        "seen": None if state.labels is None else state.labels.seen.tolist(),
        "counts": None if state.labels is None else state.labels.counts.tolist(),
        "grown": state.labels is not None and state.labels.grown,
        "stiffness": list(state.stiffness),
    }


def load(path: str | os.PathLike[str], network: Any = "local") -> LinearModel:
    """Read a model that `save` wrote; it goes on with the stream where it stood.

    It goes on in this process, wherever it was trained, unless another ``network`` is given.

    >>> import conche, tempfile
    >>> task = conche.gaussian_tasks(1, 30, 4)[0]
    >>> model = conche.ConcheRegressor(n_nodes=2).fit(task.X, task.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     conche.save(model, f"{folder}/model.conche")
    ...     again = conche.load(f"{folder}/model.conche")
    >>> bool((again.coef_ == model.coef_).all())
    True
    """
    return load_run(path, network)[0]


def load_run(
    path: str | os.PathLike[str], network: Any = "local"
) -> tuple[LinearModel, Run | None]:
    """The model, and what ``conche train`` wrote beside it, if it did."""
    try:
        described, arrays = unseal(path, FORMAT)
        model, state = _restored(described, arrays, network)
        run = _restored_run(described, arrays)
    except (ModelFileError, OSError):
        raise
    except DAMAGE as error:
        raise ModelFileError(f"{path}: incomplete or damaged model ({one_line(error)})") from error
    model.go_on(state)
    return model, run


def _restored(
    described: dict[str, Any], arrays: dict[str, Array], network: Any
) -> tuple[LinearModel, StreamState]:
    if described["class"] not in CLASSES:
        raise ValueError(f"unknown class {described['class']!r}")
    missing = set(described["arrays"]) - set(arrays)
    if missing:
        raise ValueError(f"{sorted(missing)[0]} is missing")
    parameters = _parameters(described, arrays) | {"network": network}
    model: LinearModel = getattr(estimators, described["class"])(**parameters)
    names = described["schema"]["names"]
    schema = Schema(**described["schema"] | {"names": None if names is None else tuple(names)})
    get_loss(model.loss)
    if schema.dtype not in ("float32", "float64"):
        raise ValueError(f"unknown precision {schema.dtype!r}")
    weights = sum(len(a) for key, a in arrays.items() if key.endswith(".weights"))
    if not isinstance(schema.n_features, int) or not 0 < schema.n_features <= weights:
        raise ValueError(f"{weights} weights are too few for its columns")
    setup, settings = model.make_setup(schema.n_features)
    if digest(_columns(setup.partition)) != described["columns"]:
        raise ValueError("the columns are not those of its partition")
    judge = Judge(
        tuple(map(float, described["strengths"])),
        described["n_outputs"],
        tuple(described["scores"]),
        int(described["judged"]),
        setup.solver.enough(sum(setup.partition.weight_counts())),
    )
    if setup.solver.meeting.value != described["meeting"]:
        raise ModelFileError("its memory was kept with a coordinator: it cannot go on on a Graph")
    known = setup.solver.strengths()
    if len(judge.scores) != len(judge.strengths) or not set(judge.strengths) <= set(known):
        raise ValueError("scores do not fit the solver")
    outputs = len(judge.strengths) * judge.n_outputs
    shapes = [(count, outputs) for count in setup.weight_counts()]
    nodes = _nodes(shapes, arrays, setup.partition.intercept)
    nowhere = np.zeros(outputs)  # how far weights reach matters while a task is learnt
    shares = [share(setup.scaling, node, nowhere) for node in nodes[: len(setup.partition)]]
    labels = _labels(described, judge.n_outputs)
    if (labels is not None) != is_classifier(model):
        raise ValueError("classes do not fit the model")
    return model, StreamState(
        settings=settings,
        setup=setup,
        schema=schema,
        nodes=nodes,
        judge=judge,
        flat=bool(described["flat"]),
        labels=labels,
        agreed=float(described["agreed"]),
        stiffness=Stiffness(*(float(part) for part in described["stiffness"])),
        account=_account(arrays),
        coefficients=coefficients(setup, shares),
        history=tuple(_records("history", ROUND_FIELDS, arrays)),
        tasks=tuple(_records("tasks", TASK_FIELDS, arrays)),
    )


def _nodes(
    shapes: list[tuple[int, int]], arrays: dict[str, Array], intercept: bool
) -> list[NodeState]:
    nodes = []
    for k, shape in enumerate(shapes):
        prefix = f"node{k}."
        own = {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}
        node = NodeState.from_arrays(own)
        if node.weights.shape != shape:
            raise ValueError("weights do not fit the partition")
        for key, array in own.items():  # numbers of columns, the intercept's not among them
            p = shape[0] - 1 if key.startswith("numbers.") and intercept and k == 0 else shape[0]
            if p not in array.shape:
                raise ValueError(f"{prefix}{key} has shape {array.shape}")
        nodes.append(node)
    return nodes


def _labels(described: dict[str, Any], n_outputs: int) -> Labels | None:
    """The labels in their own type, if that is one of labels."""
    labels, seen = described["classes"], described["seen"]
    if labels is None:
        return None
    kind, counts = np.dtype(described["classes_dtype"]), np.array(described["counts"], dtype=float)
    most = max((len(label) for label in labels if isinstance(label, str)), default=0)
    if kind.kind not in "biufUO" or len(labels) < 1 or kind.itemsize > 1024 + 4 * most:
        raise ValueError("its classes are no labels")
    if len(seen) != len(labels) or not any(seen) or not all(isinstance(s, bool) for s in seen):
        raise ValueError("which classes have appeared does not fit them")
    if counts.shape != (len(labels),) or not np.all(counts >= 0):
        raise ValueError("how often classes came does not fit them")
    if not isinstance(described["grown"], bool):
        raise ValueError("whether classes have come later is not said")
    known = Labels(np.array(labels, kind), np.array(seen), counts, described["grown"])
    if known.n_outputs != n_outputs:
        raise ValueError("outputs do not fit the classes")
    return known


def _account(arrays: dict[str, Array]) -> Account | None:
    own = {k.removeprefix("account."): a for k, a in arrays.items() if k.startswith("account.")}
    if not own:
        return None
    cut, blind = float(own.pop("cut").item()), bool(own.pop("blind").item())
    return Account(cut=cut, blind=blind, **own)


def _records(kind: str, names: tuple[str, ...], arrays: dict[str, Array]) -> list[Any]:
    rows = zip(*(arrays[f"{kind}.{key}"].tolist() for key in names), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


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
    del plain["network"]  # where it goes on is said when it is loaded
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
        lists = any(np.ndim(block) for block in plain["partition"])
        plain["partition"] = "columns" if lists else list(plain["partition"])
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
