"""How alike the tasks are: the inner products of their unknowns, block by block.

The theory needs nothing of the unknowns but g_{ij,k} = <w*_i, w*_j>_k. They are never formed as a
T x T x K array. What the recursion asks is the inner product of the mean estimate with a task, so a
similarity keeps that mean in whatever form is cheapest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..partition import Partition
from .moments import check_sizes

Array = NDArray[Any]


class Similarity(ABC):
    """Inner products between T tasks' unknowns over K blocks.

    The mean estimate is E w_k = sum_j a_{j,k} w*_{j,k}; ``mean`` objects stand for it.
    """

    n_tasks: int
    partition: Array  # block sizes

    @staticmethod
    def from_weights(W: Any, partition: Any) -> Similarity:
        """Known unknowns, W of shape (n_tasks, n_features)."""
        vectors = np.atleast_2d(np.asarray(W, dtype=float))
        if not np.all(np.isfinite(vectors)):
            raise ValueError("W has missing or infinite values")
        return _Vectors(vectors, partition)

    @staticmethod
    def shared(
        n_tasks: int, partition: Sequence[int], n_shared: float, energy: float = 1.0
    ) -> Similarity:
        """The expectation under Task Model 1: the first ``n_shared`` unknowns are the tasks' own
        in common, and every unknown has variance energy / n_features."""
        return _Shared(n_tasks, partition, n_shared, energy)

    @staticmethod
    def from_tasks(tasks: Any, partition: Any) -> Similarity:
        """Estimated from data without bias; see `conche.theory.estimation`."""
        from .estimation import estimate

        return estimate(tasks).similarity(partition)

    @abstractmethod
    def energies(self, t: int) -> Array:
        """g_{tt,k}."""

    @abstractmethod
    def start(self) -> Any:
        """The mean estimate before any task: zero."""

    @abstractmethod
    def with_task(self, mean: Any, t: int) -> Array:
        """sum_j a_{j,k} g_{jt,k}, for a task t that the mean has not seen."""

    @abstractmethod
    def with_all(self, mean: Any) -> Array:
        """The same summed over all tasks, seen or not."""

    @abstractmethod
    def advance(self, mean: Any, t: int, rho: Array) -> Any:
        """The mean after task t: (1 - rho_k) E w_k + rho_k w*_{t,k}."""

    def total_energy(self) -> float:
        return float(sum(self.energies(t).sum() for t in range(self.n_tasks)))


class _Vectors(Similarity):
    """From vectors: O(p) a task. ``excess`` is what |w_t|^2 must be lessened by, per block, where
    the vectors are estimates and not the truth."""

    def __init__(self, W: Array, partition: Any, excess: Array | None = None):
        self.n_tasks, p = W.shape
        part = Partition.make(p, partition=partition)
        order = np.concatenate(list(part))
        self.W = W[:, order]
        self.partition = np.array(part.sizes)
        self._starts = np.cumsum([0, *part.sizes[:-1]])
        self._sum = self.W.sum(axis=0)
        self.excess = np.zeros((self.n_tasks, len(part))) if excess is None else excess

    def _blocks(self, products: Array) -> Array:
        return np.add.reduceat(products, self._starts)

    def energies(self, t: int) -> Array:
        return self._blocks(self.W[t] ** 2) - self.excess[t]

    def start(self) -> Any:
        return np.zeros(self.W.shape[1]), np.zeros(len(self.partition))

    def with_task(self, mean: Any, t: int) -> Array:
        return self._blocks(mean[0] * self.W[t])

    def with_all(self, mean: Any) -> Array:
        return self._blocks(mean[0] * self._sum) - mean[1]

    def advance(self, mean: Any, t: int, rho: Array) -> Any:
        w, excess = mean
        share = np.repeat(rho, self.partition)
        return (1 - share) * w + share * self.W[t], (1 - rho) * excess + rho * self.excess[t]


class _Shared(Similarity):
    """g_{ij,k} = common_k + [i = j] own_k: the mean is the K numbers sum_j a_{j,k}."""

    def __init__(self, n_tasks: int, partition: Sequence[int], n_shared: float, energy: float):
        sizes = np.asarray(partition, dtype=float)
        p = sizes.sum()
        if n_tasks < 1:
            raise ValueError(f"n_tasks={n_tasks} must be at least 1")
        check_sizes(1, partition)
        if not 0 <= n_shared <= p:
            raise ValueError(f"n_shared={n_shared} must lie between 0 and n_features={p:.0f}")
        if not 0 <= energy < np.inf:
            raise ValueError(f"energy={energy} must not be negative or infinite")
        edges = np.concatenate([[0.0], np.cumsum(sizes)])
        in_common = np.clip(n_shared - edges[:-1], 0, sizes)
        self.n_tasks = n_tasks
        self.partition = np.asarray(partition)
        self.common = energy * in_common / p
        self.own = energy * (sizes - in_common) / p

    def energies(self, t: int) -> Array:
        return self.common + self.own

    def start(self) -> Any:
        return np.zeros(len(self.common))

    def with_task(self, mean: Any, t: int) -> Array:
        return self.common * mean

    def with_all(self, mean: Any) -> Array:
        return (self.n_tasks * self.common + self.own) * mean

    def advance(self, mean: Any, t: int, rho: Array) -> Any:
        return (1 - rho) * mean + rho

    def total_energy(self) -> float:
        return float(self.n_tasks * (self.common + self.own).sum())
