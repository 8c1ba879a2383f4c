"""Predictions from columns that only their nodes can read: each node answers its share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..common.arrays import Array
from ..errors import DataError, ParameterError
from ..nodes import NodeState
from ..nodes.home import Home, Kept, Score, token_of
from ..nodes.solvers.base import Meeting
from ..tasks.errands import answers
from ..tasks.node_columns import BETWEEN, NodeColumns
from .state import StreamState


def path_scores(X: NodeColumns, state: StreamState, path: Mapping[str, Array]) -> Array:
    """Scores of several estimates whose weights are here: estimates x rows x outputs."""
    told = [
        {
            "given": path["coef"][:, :, which],
            "means": path["means"][:, which] if "means" in path else None,
        }
        for which in state.setup.partition
    ]
    shares = _ask(X, state, told)
    return np.asarray(np.sum(shares, axis=0) + path["intercept"][:, None, :])


def own_scores(X: NodeColumns, state: StreamState, nodes: Sequence[NodeState]) -> Array:
    """Scores of a model's outputs, rows x outputs. Of weights that are at home, for which ``nodes``
    stand, nothing but their share comes here."""
    if not state.setup.homes:
        path = {"coef": state.coef[None], "intercept": state.intercept[None]}
        if state.coefficients is not None and state.coefficients.means is not None:
            path["means"] = state.coefficients.means[None]
        return path_scores(X, state, path)[0]
    told = [
        {"kept": Kept(home, token_of(node) or "", state.setup.scaling, state.judge.outputs)}
        for home, node in zip(state.setup.homes, nodes, strict=False)
    ]
    scores = np.sum(_ask(X, state, told), axis=0)[0]
    if state.past is not None:  # the intercept is the coordinator's
        assert state.coefficients is not None
        scores = scores + state.coefficients.offset
    return state.shown.of(scores)


def _ask(X: NodeColumns, state: StreamState, told: Sequence[Mapping[str, Any]]) -> list[Array]:
    """Every node's share, for what each is told of its weights."""
    names, errands = state.schema.names or (), []
    if len(X.parts) != len(told):
        raise DataError(f"{len(X.parts)} nodes, and the model has {len(told)}")
    for part, which, own in zip(X.parts, state.setup.partition, told, strict=True):
        columns = [names[j].partition(BETWEEN) for j in which]
        for node, _, name in columns:
            if node != part.files.name:
                raise DataError(f"node {part.files.name!r} does not have the column {name!r}")
        columns_there = tuple(name for _, _, name in columns)
        errands.append(Score(part.files, X.task, columns_there, X.keys, X.n_rows, **own))
    assert X.visit is not None
    return [one.arrays["scores"] for one in answers(X.visit(errands))]


def check_homes(homes: Sequence[Home], meeting: Meeting, device: str) -> None:
    """What cannot be where weights stay with the nodes."""
    if not homes:
        return
    if meeting is Meeting.CANDIDATES:
        raise ParameterError(
            "keep_weights = 'nodes': the coordinator of an elastic net finds the weights itself; "
            "solver='memory', 'damped' or 'exact' leaves them with the nodes"
        )
    if device != "cpu":
        raise ParameterError(f"keep_weights = 'nodes' learns on the processor, not on {device!r}")
