"""What every local solver agrees on: the four moments of a task, seen from one node.

A task is learnt as  min_d  loss(A (w + d)) + penalty(d)  over the update d, block by block:

1. ``report``    before anything is factorised, each node states a few numbers about its block;
                 they are summed over the nodes,
2. ``agree``     the coordinator turns the sum into the `Context` that all nodes share,
3. ``prepare``   each node factorises its block, once per task: the `Subproblem`,
4. ``remember``  after the last round, what the node keeps of the task (nothing, or curvature).

Solvers are configuration only; whatever changes lives in the node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[Any]
Block = Any  # a node's columns of A_t: an array or a scipy.sparse matrix
CACHE_BYTES = 16 << 20
ENOUGH = 10  # samples that show how far a column varies
Memory = Mapping[str, Array]  # what a node keeps between tasks, by name


@dataclass(frozen=True)
class Context:
    """What the coordinator tells every node about the task."""

    task: int  # tasks learnt before this one
    n_nodes: int
    n_samples: int
    smoothness: float  # tau of the loss
    damping: float = 0.0
    shrinkage: float = 1.0  # theta: the share of the past that is kept block by block
    sketch_rows: int = 0  # rows that the sketch of the past adds below the task's
    strength: float = 1.0  # of the damping, where several are tried
    sigma: float = 1.0  # sigma' of CoCoA: how far nodes allow for the others' moves
    intercept: bool = False  # whether some node has the constant column
    holds_intercept: bool = False  # whether this one has: its last


class Subproblem(ABC):
    """One node's factorised block.

    Updates are held in *coordinates* of the subproblem's choosing (the block's weights where it is
    tall, its samples where it is wide, so that rounds never touch a million columns); ``lift``
    turns them into weights.
    """

    size: int  # number of coordinates

    @abstractmethod
    def solve(self, g: Array, d: Array) -> Array:
        """The proposal z for the direction g (task rows, then sketch rows) at the update d."""

    @abstractmethod
    def image(self, z: Array) -> Array:
        """What z does to the predictions: A_k z, then the sketch rows."""

    @abstractmethod
    def lift(self, d: Array) -> Array:
        """The block's weights for the coordinates d."""

    def start(self, weights: Array) -> None:  # noqa: B027 most have no use for it
        """The block's weights at the task's start, for solvers that penalise them."""

    def scalars(self, z: Array, q: Array, d: Array) -> Array | None:
        """What the coordinator wants to know beside the image, by the solver's names: one row each,
        one column an output. Called after ``solve``, with its z, the last direction and the update.
        """
        return None


class Solver(ABC):
    """What one node does with its block."""

    scalars: ClassVar[tuple[str, ...]] = ()  # names of what `Subproblem.scalars` says
    projects: ClassVar[bool] = False  # whether A_k z is the direction's projection on the block
    sparse: ClassVar[bool] = False  # whether z leads to weights with zeros

    def sketch_rows(self, task: int) -> int:
        """How many rows the past adds below those of the task."""
        return 0

    def report(self, block: Block, memory: Memory) -> Array:
        return np.zeros(0)

    def agree(self, report: Array, context: Context) -> Context:
        return context

    @abstractmethod
    def prepare(self, block: Block, memory: Memory, context: Context) -> Subproblem: ...

    def remember(
        self,
        block: Block,
        memory: Memory,
        context: Context,
        sub: Subproblem,
        curvature: Array | None,
    ) -> Memory:
        """What to keep; ``curvature`` is the loss's second derivative per sample, None for 1."""
        return {}

    def rescaled(self, memory: Memory, ratio: Array) -> Memory:
        """The memory for columns that have been divided by ``ratio``."""
        return memory


def gram(block: Block, wide: bool) -> Array:
    """A A^T where the block is wide, A^T A where it is tall; dense even for a sparse block."""
    return as_dense(block @ block.T if wide else block.T @ block)


def as_dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


def scale_rows(block: Block, scale: Array) -> Block:
    """diag(scale) A."""
    return sparse.diags_array(scale) @ block if sparse.issparse(block) else block * scale[:, None]


def scale_columns(block: Block, scale: Array) -> Block:
    """A diag(scale)."""
    return block @ sparse.diags_array(scale) if sparse.issparse(block) else block * scale


def by_columns(block: Block) -> Block:
    """A tall dense block with its columns contiguous: both products of a round stream through it.

    Worth a copy where the block is larger than the cache and X is in C order; with X in Fortran
    order there is nothing to copy. Taken in runs of rows that fit the cache.
    """
    if sparse.issparse(block) or block.nbytes <= CACHE_BYTES or block.flags.f_contiguous:
        return block
    n, p = block.shape
    copy = np.empty((p, n + 8), block.dtype)[:, :n].T  # a stride of 2^k would thrash the cache
    for i in range(0, n, 256):
        copy[i : i + 256] = block[i : i + 256]
    return copy


@dataclass(frozen=True)
class Spread:
    """How far columns vary: count of samples, mean and sum of squared deviations per column.

    Deviations and not squares, so that neither the unit nor the origin of a column matters.
    """

    count: int
    mean: Array
    deviations: Array

    @classmethod
    def of(cls, block: Block) -> Spread:
        n = block.shape[0]
        if sparse.issparse(block):
            columns = block.tocsc().astype(np.float64)
            stored = np.diff(columns.indptr)
            mean = np.asarray(columns.sum(axis=0)).ravel() / n
            columns.data = (columns.data - np.repeat(mean, stored)) ** 2
            deviations = np.asarray(columns.sum(axis=0)).ravel() + (n - stored) * mean**2
            return cls(n, mean, deviations)
        mean = block.mean(axis=0, dtype=np.float64)
        centred = block - mean.astype(block.dtype)
        return cls(n, mean, np.einsum("ij,ij->j", centred, centred).astype(np.float64))

    def joined(self, other: Spread) -> Spread:
        """Of both samples together."""
        n = self.count + other.count
        gap = other.mean - self.mean
        mean = self.mean + gap * other.count / n
        between = gap**2 * (self.count * other.count / n)
        return Spread(n, mean, self.deviations + other.deviations + between)

    @property
    def settled(self) -> bool:
        """Whether there are samples enough to tell a column's variation from its level."""
        return self.count >= ENOUGH

    @property
    def scales(self) -> Array:
        """The variance per column; the mean square where it does not vary or samples are few."""
        squares = self.deviations / self.count + self.mean**2
        return np.where(self.settled & self.varies, self.deviations / self.count, squares)

    @property
    def varies(self) -> Array:
        """Which columns are more than a constant and its rounding."""
        return np.asarray(self.deviations > 1e-20 * self.count * self.mean**2)


def squared_norm(block: Block) -> float:
    """The squared Frobenius norm, without a copy of the block."""
    if sparse.issparse(block):
        return float(np.sum(np.square(block.data, dtype=np.float64)))
    return float(np.einsum("ij,ij->i", block, block).sum(dtype=np.float64))
