"""A task of lossless memory over a network: its columns come together, and weights go back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Array, Block, columns_of, side_by_side
from ..memory import Rows
from ..nodes import Opening, Partition
from ..nodes.solvers import Context
from ..nodes.solvers.cholesky import robust_cholesky
from .base import CentralNetwork, Each

NEARLY = 1e-3  # off the identity: what is a rotation to the last bit if it is turned once more


class Gathered(NamedTuple):
    """What the coordinator has of a task."""

    rows: Rows  # columns in the order of the stream's; those that are turned take their places
    transform: Array | None  # of the coordinates so far, where columns' units have changed
    sent: int  # bytes, both ways, all nodes; as if nodes of one process were apart


def gathered(
    network: CentralNetwork,
    partition: Partition,
    context: Context,
    opening: Opening,
    Y: Array,
    root: Array | None,
) -> Gathered:
    """Let the nodes show their columns of the task that has begun.

    Parameters
    ----------
    network, partition : the nodes, and whose columns are whose.
    context : what they agreed on.
    Y, root : the targets, and the roots of the rows' weights, if there are any.
    """
    network.factorise(context)
    squares = None if root is None else float(np.sum(root**4))
    Y, ones = (Y, None) if root is None else (root[:, None] * Y, root)
    transform = None
    if context.shown == "turned":
        if context.secure and context.n_new:
            _draw_together(network)
        if context.turning:
            transform = _transform(network, partition, context)
    if context.shown == "mixed":
        ones = np.ones(len(Y)) if ones is None else ones
        first = Each("target" if k == 0 else None for k in range(len(partition)))
        whole = np.asarray(network.total(first, np.column_stack([Y, ones])))
        Y, ones = whole[:, :-1], whole[:, -1]
    if context.shown == "turned" and context.secure:
        X: Block = network.total("columns")
        sent = 8 * network.hosts() * X.size
    else:
        X = _in_order(network.ask("columns"), partition)
        sent = 8 * X.shape[0] * X.shape[1]
    return Gathered(Rows(X, Y, ones, squares), transform, sent)


def told(partition: Partition, context: Context, w: Array) -> list[Array]:
    """What every node is told of weights in the coordinator's order: its own, or all of them where
    columns were turned together."""
    if context.shown == "turned" and context.secure:
        return [w] * len(partition)
    return [w[own] for own in partition]


def _in_order(parts: Sequence[Any], partition: Partition) -> Block:
    """The nodes' columns side by side, in the order of the stream's."""
    whole = side_by_side(parts)
    every = np.concatenate(list(partition))
    if np.array_equal(every, np.arange(len(every))):
        return whole
    return columns_of(whole, np.argsort(every))


def _draw_together(network: CentralNetwork) -> None:
    """Make one rotation of what all nodes have drawn: nobody has more than its own rows of it."""
    products = network.total("draw")
    while np.max(np.abs(products - np.eye(len(products)))) > NEARLY:
        products = network.total("turn", _triangle(products))
    network.total("turn", _triangle(products))


def _triangle(products: Array) -> Array:
    """R with R^T R = products."""
    L = robust_cholesky(products).L
    assert L is not None
    return np.tril(L).T


def _transform(network: CentralNetwork, partition: Partition, context: Context) -> Array:
    """Of all coordinates so far."""
    if context.secure:
        return network.total("transform")
    parts = network.ask("transform")
    known = context.n_columns - context.n_new
    whole = np.zeros((known, known))
    for own, part in zip(partition.first(known), parts, strict=True):
        whole[np.ix_(own, own)] = part
    return whole
