"""Columns and nodes that join a stream.

A new column starts with weight zero and no past: it is as if it had been there from the start and
had never left its mean (zero, where columns are not centred). So the estimate stays what it was,
and from then on equals the offline solution on data with that value wherever the column was absent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..network import Network, meet
from ..nodes import NodeState
from ..nodes.layout import Layout
from ..nodes.partition import by_name, named_blocks
from .inputs import Schema
from .state import StreamState


def with_columns(
    state: StreamState, schema: Schema, network: Network, partition: Any
) -> tuple[StreamState, tuple[int, ...]]:
    """The stream with the columns that ``schema`` has at its end, and how many are new on each
    node. They go where the names in ``partition`` say, else to the smallest node."""
    old = state.setup.partition
    homes = _places(state, schema, partition)
    grown = old.grown(homes)
    setup = replace(state.setup, partition=grown)
    joining = len(grown) - len(old)
    paths = [state, *state.rivals]
    placed = [path.nodes for path in paths]
    if joining:
        before = meet(network, state.setup)
        placed = [_joined(before.fetch(path.nodes), path, joining) for path in paths]
    network.start(setup)
    if joining:
        placed = [meet(network, setup).place(states) for states in placed]
    first, *others = (
        replace(path, setup=setup, schema=schema, nodes=own, moved=True)
        for path, own in zip(paths, placed, strict=True)
    )
    added = np.bincount(homes, minlength=len(grown))
    return replace(first, rivals=tuple(others)), tuple(added.tolist())


def _places(state: StreamState, schema: Schema, partition: Any) -> list[int]:
    """The node of every new column."""
    assert schema.names is not None
    new = schema.names[state.schema.n_features :]
    sizes = list(state.setup.partition.sizes)
    owner: dict[str, int] = {}
    if by_name(partition):
        number = _numbers(state, partition)
        meant = named_blocks(partition, new)
        for k in sorted(set(meant.values()) - set(number)):  # blocks whose node joins now
            number[k] = len(sizes) + sum(n >= len(sizes) for n in number.values())
        owner = {name: number[k] for name, k in meant.items()}
    places = []
    for name in new:
        k = owner.get(name, int(np.argmin(sizes)))
        sizes += [0] * (k + 1 - len(sizes))
        sizes[k] += 1
        places.append(k)
    return places


def _numbers(state: StreamState, partition: Any) -> dict[int, int]:
    """The node of every block of names that has one."""
    assert state.schema.names is not None
    holder = np.empty(state.schema.n_features, dtype=int)
    for k, columns in enumerate(state.setup.partition):
        holder[columns] = k
    meant = named_blocks(partition, state.schema.names)
    places = {name: j for j, name in enumerate(state.schema.names)}
    return {block: int(holder[places[name]]) for name, block in meant.items()}


def _joined(states: list[NodeState], path: StreamState, joining: int) -> list[NodeState]:
    """The nodes' states, with new nodes that have no columns yet, but the past's directions."""
    K = len(path.setup.partition)
    bare = states[0].laid_out(path.setup.solver, Layout.of(np.zeros(0, dtype=int)), False)
    return [*states[:K], *[bare] * joining, *states[K:]]
