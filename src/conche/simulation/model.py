"""What is simulated: the paper's model, and the numbers that describe one setting of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..theory.recursion import per_task

Array = NDArray[Any]
Generators = Sequence[np.random.Generator]


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

    @property
    def shape(self) -> tuple[Any, ...]:
        """Settings of equal shape are served by one draw."""
        return self.n_samples, self.n_features, self.correlation

    def error(self, distances: Array) -> Array:
        """G_T after 1..T tasks from the distances |w_t - w*_s|^2 (... x T x T)."""
        return np.asarray(distances.mean(axis=-1) + np.mean(self.noise_var))


def trial_generator(seed: int, trial: int) -> np.random.Generator:
    """Each trial has its own generator, so that results do not depend on how trials are shared."""
    return np.random.default_rng([seed, trial])


def check_sizes(partition: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(int(p) for p in partition)
    if not sizes or min(sizes) < 1 or any(a != b for a, b in zip(sizes, partition, strict=True)):
        raise ValueError("partition must list whole block sizes of at least 1")
    return sizes


def make_model(
    n_tasks: int,
    n_samples: Any,
    partition: Sequence[int],
    n_shared: int = 0,
    noise_var: Any = 0.01,
    n_rounds: int = 1,
    correlation: float = 0.0,
    weights: Any = None,
) -> Model:
    """A checked `Model`; what cannot be simulated is refused by name."""
    sizes = check_sizes(partition)
    for name, count in (("n_tasks", n_tasks), ("n_rounds", n_rounds), ("n_shared", n_shared)):
        if not isinstance(count, Integral) or count < (name != "n_shared"):
            raise ValueError(f"{name}={count!r} must be a whole number of at least 1")
    if not 0 <= n_shared <= sum(sizes):
        raise ValueError(f"n_shared={n_shared} must lie between 0 and n_features={sum(sizes)}")
    if not 0 <= correlation < 1:
        raise ValueError(f"correlation={correlation} must lie between 0 and 1")
    samples = per_task("n_samples", n_samples, n_tasks)
    noise = per_task("noise_var", noise_var, n_tasks)
    for name, values, least in (("n_samples", samples, 1), ("noise_var", noise, 0)):
        if not (values.min() >= least and np.all(np.isfinite(values))):
            raise ValueError(f"{name}={values.min():g} must be at least {least} and finite")
    if np.any(samples != np.floor(samples)):
        raise ValueError("n_samples must be whole numbers")
    W = None if weights is None else np.asarray(weights, dtype=float)
    if W is not None and W.shape != (n_tasks, sum(sizes)):
        raise ValueError(f"weights have shape {W.shape}, expected {(n_tasks, sum(sizes))}")
    if W is not None and not np.all(np.isfinite(W)):
        raise ValueError("weights have missing or infinite values")
    return Model(
        tuple(int(n) for n in samples), tuple(float(s) for s in noise), sizes, n_shared, n_rounds,
        correlation, W,
    )  # fmt: skip
