"""Columns and nodes that join a stream.

A new column starts with weight zero and no past: it is as if it had been there from the start and
had never left its mean (zero, where columns are not centred). So the estimate stays what it was,
and from then on equals the offline solution on data with that value wherever the column was absent.
A value of a text that the stream knew already (``sky=grey`` where ``sky=rain`` was) is another
matter: it has been zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..network import Network, meet
from ..nodes import NodeState
from ..nodes.layout import Layout
from ..nodes.partition import by_name, named_blocks
from ..tasks.encoding import values_beside
from .inputs import Schema
from .state import StreamState


def with_columns(
    state: StreamState, schema: Schema, network: Network, partition: Any
) -> tuple[StreamState, tuple[tuple[bool, ...], ...]]:
    """The stream with the columns that ``schema`` has at its end; and of those, node by node,
    whether they were zero so far. They go where the names in ``partition`` say, else to the
    smallest node."""
    old = state.setup.partition
    homes = _places(state, schema, partition)
    grown = old.grown(homes)
    setup = replace(state.setup, partition=grown)
    joining = len(grown) - len(old)
    nodes = state.nodes
    if joining:
        nodes = _joined(meet(network, state.setup).fetch(nodes), state, joining)
    network.start(setup)
    if joining:
        nodes = meet(network, setup).place(nodes)
    assert schema.names is not None
    new = schema.names[state.schema.n_features :]
    zero = values_beside(new, frozenset(schema.names[: state.schema.n_features]))
    added = tuple(
        tuple(name in zero for name, home in zip(new, homes, strict=True) if home == k)
        for k in range(len(grown))
    )
    return replace(state, setup=setup, schema=schema, nodes=nodes, moved=True), added


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


def _joined(states: Sequence[NodeState], state: StreamState, joining: int) -> list[NodeState]:
    """The nodes' states, with new nodes that have no columns yet, but the past's directions."""
    K = len(state.setup.partition)
    bare = states[0].laid_out(state.setup.solver, Layout.of(np.zeros(0, dtype=int)), False)
    return [*states[:K], *[bare] * joining, *states[K:]]
