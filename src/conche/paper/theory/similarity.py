"""How alike the tasks are: the inner products of their unknowns, block by block.

The theory needs nothing of the unknowns but g_{ij,k} = <w*_i, w*_j>_k. They are never formed as a
T x T x K array. What the recursion asks is the inner product of the mean estimate with a task, so a
similarity keeps that mean in whatever form is cheapest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ...common.arrays import Array
from ...common.checks import real, whole
from ...errors import ParameterError
from ...nodes import Partition
from ...tasks import Task
from ..sizes import Blocks, block_sizes

Mean = tuple[Array, ...]  # the mean estimate, in a form that only its similarity knows


class Similarity(ABC):
    """Inner products between T tasks' unknowns over K blocks.

    The mean estimate is E w_k = sum_j a_{j,k} w*_{j,k}; a ``Mean`` stands for it. Made by
    `from_weights`, `shared` or `from_tasks`.

    Examples
    --------
    >>> import conche
    >>> tasks = conche.theory.Similarity.shared(n_tasks=2, partition=[8, 8], n_shared=12)
    >>> tasks.products()  # unknowns of norm one, three quarters of them common
    array([[1.  , 0.75],
           [0.75, 1.  ]])
    """

    n_tasks: int
    partition: Array  # block sizes

    @staticmethod
    def from_weights(W: ArrayLike, partition: Blocks) -> Similarity:
        """Unknowns that are known.

        Parameters
        ----------
        W : one row per task, (n_tasks, n_features).
        partition : block sizes, or lists of column indices.

        Examples
        --------
        >>> Similarity.from_weights([[1.0, 0.0, 2.0], [1.0, 0.0, 0.0]], [1, 2]).energies(0)
        array([1., 4.])
        """
        vectors = np.atleast_2d(np.asarray(W, dtype=float))
        if not np.all(np.isfinite(vectors)):
            raise ParameterError("W has missing or infinite values")
        return VectorSimilarity(vectors, partition)

    @staticmethod
    def shared(
        n_tasks: int,
        partition: Sequence[int] | Array,
        n_shared: float,
        energy: float = 1.0,
        drift: float = 0.0,
    ) -> Similarity:
        """The expectation under Task Model 1: all tasks have their first unknowns in common.

        Parameters
        ----------
        n_tasks, partition : T, and the block sizes.
        n_shared : how many unknowns the tasks share (the paper's p_S).
        energy : E |w*_t|^2; every unknown has variance energy / n_features.
        drift : all unknowns also follow a random walk: E |w*_{t+1} - w*_t|^2, beyond what tasks
            have of their own. ``energy`` is then the first task's.

        Examples
        --------
        >>> Similarity.shared(n_tasks=16, partition=[4, 4], n_shared=6).energies(0)
        array([0.5, 0.5])
        """
        return SharedSimilarity(n_tasks, partition, n_shared, energy, drift)

    @staticmethod
    def from_tasks(tasks: Sequence[Task], partition: Blocks) -> Similarity:
        """Estimated from data without bias; see `conche.theory.estimate`."""
        from .estimation import estimate  # which needs this module first

        return estimate(tasks).similarity(partition)

    @abstractmethod
    def energies(self, t: int) -> Array:
        """g_{tt,k}: the squared norm of task t's unknowns in every block."""

    @abstractmethod
    def products(self) -> Array:
        """<w*_i, w*_j> for all pairs of tasks, over all blocks: T x T."""

    @abstractmethod
    def start(self) -> Mean:
        """The mean estimate before any task: zero."""

    @abstractmethod
    def with_task(self, mean: Mean, t: int) -> Array:
        """sum_j a_{j,k} g_{jt,k}: its inner products with a task t that it has not seen."""

    @abstractmethod
    def with_all(self, mean: Mean) -> Array:
        """The same summed over all tasks, seen or not."""

    @abstractmethod
    def advance(self, mean: Mean, t: int, rho: Array) -> Mean:
        """The mean after task t: (1 - rho_k) E w_k + rho_k w*_{t,k}."""

    def total_energy(self) -> float:
        """The squared norms of all tasks' unknowns, summed."""
        return float(sum(self.energies(t).sum() for t in range(self.n_tasks)))


class VectorSimilarity(Similarity):
    """From vectors: O(p) a task.

    Where the vectors are estimates and not the truth, their squared norms are too large by
    ``excess`` (T x K). The mean is a vector, and what of it is excess.
    """

    def __init__(self, W: Array, partition: Blocks, excess: Array | None = None):
        self.n_tasks, p = W.shape
        part = Partition.make(p, partition=partition)
        order = np.concatenate(list(part))
        self.W = W[:, order]
        self.partition = np.array(part.sizes)
        self.excess = np.zeros((self.n_tasks, len(part))) if excess is None else excess
        self._starts = np.cumsum([0, *part.sizes[:-1]])
        self._sum = self.W.sum(axis=0)

    def _blocks(self, products: Array) -> Array:
        return np.add.reduceat(products, self._starts)

    def energies(self, t: int) -> Array:
        return self._blocks(self.W[t] ** 2) - self.excess[t]

    def products(self) -> Array:
        return np.asarray(self.W @ self.W.T - np.diag(self.excess.sum(axis=1)))

    def start(self) -> Mean:
        return np.zeros(self.W.shape[1]), np.zeros(len(self.partition))

    def with_task(self, mean: Mean, t: int) -> Array:
        return self._blocks(mean[0] * self.W[t])

    def with_all(self, mean: Mean) -> Array:
        return self._blocks(mean[0] * self._sum) - mean[1]

    def advance(self, mean: Mean, t: int, rho: Array) -> Mean:
        w, excess = mean
        share = np.repeat(rho, self.partition)
        return (1 - share) * w + share * self.W[t], (1 - rho) * excess + rho * self.excess[t]


class SharedSimilarity(Similarity):
    """g_{ij,k} = common_k + [i = j] own_k + step_k min(i, j), tasks counted from 0.

    The mean is three numbers a block: sums over j of a_{j,k}, of a_{j,k} j, and of
    a_{j,k} sum_i min(i, j).
    """

    def __init__(
        self,
        n_tasks: int,
        partition: Sequence[int] | Array,
        n_shared: float,
        energy: float = 1.0,
        drift: float = 0.0,
    ):
        self.n_tasks = whole("n_tasks", n_tasks)
        self.partition = block_sizes(partition)
        edges = np.concatenate([[0.0], np.cumsum(self.partition, dtype=float)])
        p = edges[-1]
        in_common = np.clip(real("n_shared", n_shared, 0, p) - edges[:-1], 0, self.partition)
        self.common = real("energy", energy) * in_common / p
        self.own = energy * (self.partition - in_common) / p
        self.step = real("drift", drift) * self.partition / p

    def energies(self, t: int) -> Array:
        return self.common + self.own + t * self.step

    def products(self) -> Array:
        t = np.arange(self.n_tasks)
        walk = self.step.sum() * np.minimum(t[:, None], t)
        return np.asarray(self.common.sum() + walk + self.own.sum() * np.eye(self.n_tasks))

    def start(self) -> Mean:
        return tuple(np.zeros((3, len(self.common))))

    def with_task(self, mean: Mean, t: int) -> Array:
        return self.common * mean[0] + self.step * mean[1]

    def with_all(self, mean: Mean) -> Array:
        return (self.n_tasks * self.common + self.own) * mean[0] + self.step * mean[2]

    def advance(self, mean: Mean, t: int, rho: Array) -> Mean:
        later = t * (t + 1) / 2 + t * (self.n_tasks - 1 - t)  # sum_i min(i, t)
        return tuple((1 - rho) * m + rho * a for m, a in zip(mean, (1, t, later), strict=True))

    def total_energy(self) -> float:
        steps = self.n_tasks * (self.n_tasks - 1) / 2
        return float(np.sum(self.n_tasks * (self.common + self.own) + steps * self.step))
