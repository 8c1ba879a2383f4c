"""Which node holds which columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..common.arrays import Array, Block
from ..common.checks import whole
from ..errors import ParameterError
from ..tasks.columns import Columns
from ..tasks.groups import matching

Which = slice | NDArray[np.intp]


class Partition:
    """The columns 0..n_features-1, each on exactly one node.

    Iterating yields one array of column indices per node; ``sizes`` are the paper's p_k. With
    ``intercept`` the first node adds a constant column of its own, the last of its block.
    """

    def __init__(
        self, blocks: Sequence[NDArray[np.intp]], n_features: int, intercept: bool = False
    ):
        _check_cover(blocks, n_features)
        self.n_features = n_features
        self.intercept = intercept
        self.sizes = [len(b) for b in blocks]
        self._columns: list[Which] = [_as_slice(b) for b in blocks]

    @classmethod
    def even(cls, n_features: int, n_nodes: int, intercept: bool = False) -> Partition:
        """Contiguous blocks whose sizes differ by at most one.

        >>> Partition.even(10, 3).sizes
        [4, 3, 3]
        """
        if not 1 <= n_nodes <= n_features:
            raise ParameterError(
                f"n_nodes={n_nodes}: {n_features} columns fit on 1 to {n_features} nodes"
            )
        return cls(np.array_split(np.arange(n_features), n_nodes), n_features, intercept)

    @classmethod
    def make(
        cls,
        n_features: int,
        n_nodes: int | None = None,
        partition: Any = None,
        intercept: bool = False,
        names: Sequence[str] | None = None,
    ) -> Partition:
        """From a number of nodes, from sizes ``[5, 12, 9]``, from lists of column indices, or from
        lists of their ``names``, which may be patterns; a list that means no column yet is a node
        that is still to come."""
        if isinstance(partition, Partition):
            partition = list(partition)
        elif partition is not None and not (
            hasattr(partition, "__len__") and getattr(partition, "ndim", 1) > 0
        ):
            raise ParameterError(
                f"partition={partition!r} must list block sizes, or columns per block"
            )
        if n_nodes is not None:
            n_nodes = whole("n_nodes", n_nodes)
        if partition is None:
            return cls.even(n_features, n_nodes or 1, intercept)
        blocks = list(partition)
        if n_nodes is not None and n_nodes != len(blocks):
            raise ParameterError(f"n_nodes={n_nodes} but the partition has {len(blocks)} blocks")
        if not any(hasattr(b, "__len__") for b in blocks):
            return cls(_from_sizes(blocks, n_features), n_features, intercept)
        if by_name(blocks):
            return cls(_named(blocks, names), n_features, intercept)
        return cls([_indices(b, k) for k, b in enumerate(blocks)], n_features, intercept)

    def grown(self, nodes: Sequence[int]) -> Partition:
        """With one more column at the end for each of ``nodes``, which are their nodes' numbers; a
        number that no node has is a new one's."""
        blocks = list(self) + [np.empty(0, dtype=np.intp)] * (max(nodes) + 1 - len(self))
        for column, k in enumerate(nodes, start=self.n_features):
            blocks[k] = np.append(blocks[k], column)
        return Partition(blocks, self.n_features + len(nodes), self.intercept)

    def first(self, n_features: int) -> list[NDArray[np.intp]]:
        """Every node's columns among the first ``n_features``, as they were before others came."""
        return [columns[columns < n_features] for columns in self]

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[NDArray[np.intp]]:
        every = np.arange(self.n_features)
        return (every[c] for c in self._columns)

    def __repr__(self) -> str:
        return f"Partition({len(self)} nodes, sizes {min(self.sizes)} to {max(self.sizes)})"

    def weight_counts(self) -> list[int]:
        """How many weights each node holds: its columns, and the intercept on the first."""
        return [size + (self.intercept and k == 0) for k, size in enumerate(self.sizes)]

    def places(self) -> list[Which]:
        """Each node's columns, as a slice where they are consecutive."""
        return list(self._columns)

    def split(self, X: Any) -> list[Block]:
        """Each node's block of X. Contiguous blocks of a dense X are views, not copies; columns
        that are still on disk are read block by block."""
        parts = self.parts(X)
        return [part.read() if isinstance(part, Columns) else part for part in parts]

    def parts(self, X: Any, nodes: Sequence[int] | None = None) -> list[Block | Columns]:
        """The block of X of each of these nodes, or of all; columns that are on disk stay there
        until they are read."""
        if sparse.issparse(X):
            X = X.tocsc()
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
        numbers = range(len(self)) if nodes is None else nodes
        if isinstance(X, Columns):
            return [X.select(self._columns[k]) for k in numbers]
        if len(self) == 1 and isinstance(self._columns[0], slice):
            return [X] * len(numbers)  # one node with every column, in order
        return [X[:, self._columns[k]] for k in numbers]

    def join(self, parts: Sequence[Array], intercept: bool) -> Array:
        """All nodes' parts in the order of the columns; with ``intercept`` its row comes last."""
        count = self.n_features + intercept
        whole = np.empty((count, *parts[0].shape[1:]), dtype=parts[0].dtype)
        for columns, size, part in zip(self._columns, self.sizes, parts, strict=True):
            whole[columns] = part[:size]
        if intercept:
            whole[-1] = parts[0][-1]
        return whole


def _from_sizes(sizes: Sequence[Any], n_features: int) -> list[NDArray[np.intp]]:
    counts = [whole(f"partition: the size of block {k}", s) for k, s in enumerate(sizes)]
    if sum(counts) != n_features:
        raise ParameterError(
            f"partition: the sizes add up to {sum(counts)}, but there are {n_features} columns"
        )
    edges = np.cumsum([0, *counts])
    return [np.arange(a, b) for a, b in pairwise(edges)]


def by_name(blocks: Any) -> bool:
    """Whether blocks are lists of names."""
    if blocks is None or isinstance(blocks, Partition):
        return False
    lists = [block for block in blocks if isinstance(block, list | tuple | np.ndarray)]
    return any(isinstance(name, str) for block in lists for name in block)


def named_blocks(blocks: Sequence[Any], names: Sequence[str]) -> dict[str, int]:
    """Which block each of the names belongs to, as far as one means it; refuses one that two do."""
    places = {name: j for j, name in enumerate(names)}
    owner: dict[str, int] = {}
    for k, block in enumerate(blocks):
        for pattern in block:
            if not isinstance(pattern, str):
                raise ParameterError(f"partition: block {k} must list names, got {pattern!r}")
            for name in matching(pattern, places):
                if owner.setdefault(name, k) != k:
                    raise ParameterError(
                        f"partition: column {name!r} is in block {owner[name]} and in block {k}"
                    )
    return owner


def _named(blocks: Sequence[Any], names: Sequence[str] | None) -> list[NDArray[np.intp]]:
    if names is None:
        raise ParameterError("partition has names, but the columns of X have none")
    owner = named_blocks(blocks, names)
    for name in names:
        if name not in owner:
            raise ParameterError(f"partition: column {name!r} is in no block")
    found: list[list[int]] = [[] for _ in blocks]
    for j, name in enumerate(names):
        found[owner[name]].append(j)
    return [np.array(block, dtype=np.intp) for block in found if block]


def _indices(block: Any, k: int) -> NDArray[np.intp]:
    try:
        array = np.asarray(block)
    except ValueError:  # lists of different lengths
        array = np.array(None)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ParameterError(
            f"partition: block {k} must be a list of column indices, got {block!r}"
        )
    return array.astype(np.intp)


def _check_cover(blocks: Sequence[NDArray[np.intp]], n_features: int) -> None:
    owner = np.full(n_features, -1)
    for k, block in enumerate(blocks):
        if len(block) == 0:
            raise ParameterError(f"partition: block {k} has no columns")
        outside = block[(block < 0) | (block >= n_features)]
        if len(outside):
            raise ParameterError(
                f"partition: block {k} names column {outside[0]}, but the columns are 0 to "
                f"{n_features - 1}"
            )
        unique, counts = np.unique(block, return_counts=True)
        taken = np.concatenate([block[owner[block] >= 0], unique[counts > 1]])
        if len(taken):
            other = owner[taken[0]] if owner[taken[0]] >= 0 else k
            raise ParameterError(
                f"partition: column {taken[0]} is in block {other} and in block {k}"
            )
        owner[block] = k
    missing = np.flatnonzero(owner < 0)
    if len(missing):
        raise ParameterError(
            f"partition: column {missing[0]} is in no block ({len(missing)} missing in all)"
        )


def _as_slice(block: NDArray[np.intp]) -> Which:
    first, last = int(block[0]), int(block[-1])
    if np.array_equal(block, np.arange(first, last + 1)):
        return slice(first, last + 1)
    return block
