"""A stream's state as arrays and as a description that JSON can hold, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .common.arrays import Array
from .common.sealed import digest
from .errors import ModelFileError
from .estimators.arrivals import Stiffness
from .estimators.base import LinearModel
from .estimators.gap import Account
from .estimators.inputs import Schema
from .estimators.judge import Judge
from .estimators.labels import Labels
from .estimators.records import RoundRecord, TaskRecord
from .estimators.state import StreamState
from .network.base import coefficients, share
from .nodes import NodeState, Partition, Setup
from .nodes.home import Home, token_of
from .nodes.solvers.base import Meeting
from .past_file import past_arrays, past_description, restored_past
from .rounds.losses import LOSSES

ROUND_FIELDS = tuple(RoundRecord.__annotations__)
TASK_FIELDS = tuple(TaskRecord.__annotations__)


def arrays_of(
    state: StreamState, fetch: Callable[[], list[NodeState]], timings: bool
) -> dict[str, Array]:
    """All arrays of a state by name; ``fetch`` gets the nodes' own, wherever they are."""
    arrays = _path_arrays(state, fetch())
    kinds: tuple[tuple[str, tuple[str, ...], Any], ...] = (
        ("history", ROUND_FIELDS, state.history),
        ("tasks", TASK_FIELDS, state.tasks),
    )
    for kind, names, records in kinds:
        for key in names:
            known = [record[key] for record in records]
            values = np.array([np.nan if value is None else value for value in known])
            arrays[f"{kind}.{key}"] = values if timings or key != "seconds" else 0.0 * values
    if state.settings.partition is not None or state.moved:
        arrays["columns"] = columns_of(state.setup.partition)
    return arrays


def _path_arrays(state: StreamState, nodes: list[NodeState]) -> dict[str, Array]:
    """The nodes' own, and the coordinator's."""
    arrays: dict[str, Array] = {}
    weightless = state.past is not None and not state.turned
    for k, node in enumerate(nodes):
        own = node.to_arrays().items()
        arrays |= {f"node{k}.{key}": a for key, a in own if not (weightless and key == "weights")}
    if state.past is not None:
        return arrays | past_arrays(state.past, state.found) | _offset(state)
    if state.coefficients is not None:  # a sum over nodes: its last digits depend on its order
        arrays["offset"] = state.coefficients.offset
    if state.account is not None:
        arrays |= {
            f"account.{k}": np.asarray(v) for k, v in vars(state.account).items() if v is not None
        }
    return arrays


def _offset(state: StreamState) -> dict[str, Array]:
    assert state.coefficients is not None
    return {"offset": state.coefficients.offset} if state.turned else {}


def columns_of(partition: Partition) -> Array:
    """All nodes' columns, one node after another."""
    return np.concatenate([np.asarray(columns, dtype=np.int64) for columns in partition])


def description(state: StreamState) -> dict[str, Any]:
    """Everything else."""
    return {
        "sizes": state.setup.partition.sizes,
        "begun": state.begun,
        "moved": state.moved,
        "columns": digest(columns_of(state.setup.partition)),
        "schema": dict(vars(state.schema)),
        "meeting": state.setup.solver.meeting.value,
        "flat": state.flat,
        "classes": None if state.classes is None else state.classes.tolist(),
        "classes_dtype": None if state.classes is None else str(state.classes.dtype),
        "seen": None if state.labels is None else state.labels.seen.tolist(),
        "counts": None if state.labels is None else state.labels.counts.tolist(),
        "grown": state.labels is not None and state.labels.grown,
        "turned": state.turned,
        "past": None if state.past is None else past_description(state.past, state.found),
        **_path_description(state),
    }


def _path_description(state: StreamState) -> dict[str, Any]:
    return {
        "n_outputs": state.judge.n_outputs,
        "scores": list(state.judge.scores),
        "evident": state.judge.evident,
        "strengths": list(state.judge.strengths),
        "agreed": state.agreed,
        "stiffness": list(state.stiffness),
    }


def restored(
    described: dict[str, Any], arrays: dict[str, Array], model: LinearModel
) -> StreamState:
    """The state of a stream that ``model``, which has its parameters, is to go on with. Whatever is
    no state leads to an error of some kind."""
    names = described["schema"]["names"]
    homes = tuple(Home(*map(str, home)) for home in described["schema"]["homes"])
    known = {"names": None if names is None else tuple(names), "homes": homes}
    schema = Schema(**described["schema"] | known)
    if schema.dtype not in ("float32", "float64"):
        raise ValueError(f"unknown precision {schema.dtype!r}")
    weights = sum(len(a) for key, a in arrays.items() if key.endswith(".weights"))
    if described["past"] is not None:
        weights = len(arrays["past.unit"])
    if homes:  # where the weights are
        weights = 0 if schema.names is None else len(schema.names)
    if not isinstance(schema.n_features, int) or not 0 < schema.n_features <= weights:
        raise ValueError(f"{weights} weights are too few for its columns")
    partition, begun = None, int(described["begun"])
    if described["moved"]:
        blocks = np.split(arrays["columns"], np.cumsum(described["sizes"])[:-1])
        constant = bool(model.fit_intercept) and described["past"] is None
        partition = Partition(blocks, schema.n_features, constant)
    setup, settings = model.make_setup(schema, partition, begun, str(described["turned"]))
    if digest(columns_of(setup.partition)) != described["columns"]:
        raise ValueError("the columns are not those of its partition")
    secure = bool(getattr(model.network, "secure", False))
    shown = described["past"] is not None and described["turned"] != "together"
    if setup.solver.meeting.value != described["meeting"] or (secure and shown):
        where = "with secure sums" if secure else "on a Graph"
        raise ModelFileError(f"its memory was kept with a coordinator: it cannot go on {where}")
    labels = _labels(described, described["n_outputs"])
    if (labels is not None) != is_classifier(model):
        raise ValueError("classes do not fit the model")
    judge = Judge.of((1.0,), described["n_outputs"])
    blank = StreamState(settings, setup, schema, (), judge, bool(described["flat"]), begun, labels)
    history, tasks = (
        tuple(_records(kind, fields, arrays))
        for kind, fields in (("history", ROUND_FIELDS), ("tasks", TASK_FIELDS))
    )
    blank = replace(
        blank,
        history=history,
        tasks=tasks,
        moved=partition is not None,
        turned=str(described["turned"]),
    )
    if (described["past"] is not None) != (setup.solver.meeting is Meeting.SUMS):
        raise ValueError("its past does not fit its solver")
    if described["past"] is not None:
        past, found = restored_past(described["past"], arrays)
        blank = replace(blank, past=past, found=found)
    return _path(blank, described, arrays)


def _path(blank: StreamState, described: dict[str, Any], arrays: dict[str, Array]) -> StreamState:
    """With the nodes' states."""
    setup = blank.setup
    judge = Judge(
        tuple(map(float, described["strengths"])),
        described["n_outputs"],
        tuple(described["scores"]),
        described["evident"],
    )
    known = setup.solver.strengths(LOSSES[blank.settings.loss].quadratic)
    places = (None, *range(len(known)))
    if judge.strengths != known or len(judge.scores) != len(known) or judge.evident not in places:
        raise ValueError("scores do not fit the solver")
    if judge.n_outputs != blank.judge.n_outputs:
        raise ValueError("outputs do not fit each other")
    outputs = len(judge.strengths) * judge.n_outputs
    shapes = [(count, outputs) for count in setup.weight_counts()]
    nodes = _nodes(shapes, arrays, setup, blank)
    nowhere = np.zeros(outputs)  # how far weights reach matters while a task is learnt
    shares = [share(setup.scaling, node, nowhere) for node in nodes[: len(setup.partition)]]
    offset = arrays.get("offset", nowhere)
    if offset.shape != (outputs,) or ("offset" not in arrays and blank.past is None):
        raise ValueError("what centring adds to the intercept does not fit its outputs")
    return replace(
        blank,
        nodes=nodes,
        judge=judge,
        agreed=float(described["agreed"]),
        stiffness=Stiffness(*(float(part) for part in described["stiffness"])),
        account=_account(arrays),
        coefficients=coefficients(setup, shares)._replace(offset=offset),
    )


def _nodes(
    shapes: list[tuple[int, int]], arrays: dict[str, Array], setup: Setup, blank: StreamState
) -> list[NodeState]:
    nodes = []
    weightless, dtype = blank.past is not None and not blank.turned, blank.schema.dtype
    for k, shape in enumerate(shapes):
        prefix = f"node{k}."
        own = {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}
        if weightless:
            own["weights"] = np.zeros(shape, dtype)
        node = NodeState.from_arrays(own)
        if setup.homes and k < len(setup.partition):
            if node.weights.shape != (0, shape[1]) or token_of(node) is None or len(own) != 2:
                raise ValueError("weights that should have stayed with their node")
            nodes.append(node)
            continue
        if node.weights.shape != shape:
            raise ValueError("weights do not fit the partition")
        fits = setup.solver.fits if k < len(setup.partition) else setup.solver.centre_fits
        for key, array in own.items():  # numbers of columns, the intercept's not among them
            constant = key.startswith("numbers.") and setup.partition.intercept and k == 0
            if not fits(key.removeprefix("kept."), array, shape[0] - constant):
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
    return [{k: None if v != v else v for k, v in zip(names, row, strict=True)} for row in rows]
