"""What is simulated: the paper's model, and the numbers that describe one setting of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tasks import toeplitz_norm, with_squared_norm

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Model:
    """T Gaussian tasks over K blocks; each trial draws its unknowns, unless they are given."""

    n_samples: tuple[int, ...]
    noise_var: tuple[float, ...]
    partition: tuple[int, ...]
    n_shared: int
    n_rounds: int
    correlation: float
    weights: Array | None = None

    @property
    def n_tasks(self) -> int:
        return len(self.n_samples)

    @property
    def n_features(self) -> int:
        return sum(self.partition)

    @property
    def n_nodes(self) -> int:
        return len(self.partition)

    def draw_weights(self, rng: np.random.Generator) -> Array:
        """W (n_tasks x n_features), normalised as in Section IV."""
        if self.weights is not None:
            return self.weights
        p, shared = self.n_features, self.n_shared
        common = with_squared_norm(rng.standard_normal(shared), shared / p)
        own = [
            with_squared_norm(rng.standard_normal(p - shared), (p - shared) / p)
            for _ in range(self.n_tasks)
        ]
        return np.array([np.concatenate([common, one]) for one in own])

    def error(self, w: Array, W: Array) -> float:
        """g_T of the estimate, weighted by the features' covariance."""
        apart = [toeplitz_norm(w - true, self.correlation) for true in W]
        return float(np.mean(apart) + np.mean(self.noise_var))


def trial_generator(seed: int, trial: int) -> np.random.Generator:
    """Each trial has its own generator, so that results do not depend on how trials are shared."""
    return np.random.default_rng([seed, trial])


def check_sizes(partition: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(int(p) for p in partition)
    if not sizes or min(sizes) < 1 or any(a != b for a, b in zip(sizes, partition, strict=True)):
        raise ValueError("partition must list whole block sizes of at least 1")
    return sizes
