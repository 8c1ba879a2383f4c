"""The paper's data: Gaussian tasks whose unknowns share their first entries (Section IV)."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np
from scipy.signal import lfilter

from .task import Array, Task


def gaussian_tasks(
    n_tasks: int,
    n_samples: int | Sequence[int],
    n_features: int,
    n_shared: int = 0,
    noise_var: float | Sequence[float] = 0.01,
    correlation: float = 0.0,
    seed: int | np.random.Generator = 0,
) -> list[Task]:
    """Draw a stream from the model of the paper's Section IV.

    y_t = A_t w*_t + z_t with Gaussian A_t and z_t ~ N(0, noise_var I). The unknowns w*_t share
    their first ``n_shared`` entries (Task Model 1) and have unit norm: the shared part has squared
    norm n_shared / n_features and the task's own part the rest.

    Parameters
    ----------
    n_samples, noise_var : one number, or one per task.
    correlation : rows have the Toeplitz covariance ``correlation ** |i - j|`` (Section IV-E).
    seed : one seed for everything; task t's data do not depend on how many tasks follow it.
    """
    for name, count in (("n_tasks", n_tasks), ("n_features", n_features), ("n_shared", n_shared)):
        if not isinstance(count, Integral) or count < (name != "n_shared"):
            raise ValueError(f"{name}={count!r} must be a whole number of at least 1")
    if not 0 <= n_shared <= n_features:
        raise ValueError(f"n_shared={n_shared} must lie between 0 and n_features={n_features}")
    if not 0 <= correlation <= 1:
        raise ValueError(f"correlation={correlation} must lie between 0 and 1")
    samples = _one_per_task("n_samples", n_samples, n_tasks)
    noises = _one_per_task("noise_var", noise_var, n_tasks)
    for n in samples:
        if not isinstance(n, int) or n < 1:
            raise ValueError(f"n_samples={n}: a task needs a whole number of samples, at least one")
    for var in noises:
        if not 0 <= var < np.inf:
            raise ValueError(f"noise_var={var} must not be negative or infinite")

    shared_rng, *task_rngs = np.random.default_rng(seed).spawn(n_tasks + 1)
    shared = with_squared_norm(shared_rng.standard_normal(n_shared), n_shared / n_features)
    tasks = []
    for t, rng in enumerate(task_rngs):
        own = rng.standard_normal(n_features - n_shared)
        own = with_squared_norm(own, (n_features - n_shared) / n_features)
        weights = np.concatenate([shared, own])
        X = correlated(rng.standard_normal((int(samples[t]), n_features)), correlation)
        y = X @ weights + np.sqrt(noises[t]) * rng.standard_normal(int(samples[t]))
        tasks.append(
            Task(X, y, weights, noise_var=noises[t], name=str(t + 1), correlation=correlation)
        )
    return tasks


def correlated(z: Array, correlation: float) -> Array:
    """z L^T for the Cholesky factor L of the covariance correlation**|i-j|, in O(n p).

    An autoregression along the columns: a_0 = z_0, a_i = e a_{i-1} + sqrt(1 - e^2) z_i.
    """
    if correlation == 0:
        return z
    z = z.copy()
    z[..., 1:] *= np.sqrt(1 - correlation**2)
    return np.asarray(lfilter([1.0], [1.0, -correlation], z, axis=-1))


def toeplitz_norm(x: Array, correlation: float) -> Array:
    """x^T Sigma x along the last axis for Sigma_ij = correlation**|i-j|, in O(p), without Sigma."""
    x = np.asarray(x)
    squares = np.asarray(np.vecdot(x, x))
    if correlation == 0:
        return squares
    # s_i = sum_{j<i} e^{i-j} x_j obeys s_i = e (s_{i-1} + x_{i-1})
    s = lfilter([0.0, correlation], [1.0, -correlation], x, axis=-1)
    return np.asarray(squares + 2 * np.vecdot(x, s))


def _one_per_task(name: str, value: float | Sequence[float], n_tasks: int) -> list[float]:
    values = np.atleast_1d(np.asarray(value)).tolist()
    if np.ndim(value) == 0:
        values = values * n_tasks
    if len(values) != n_tasks:
        raise ValueError(f"{name} has {len(values)} values for n_tasks={n_tasks}")
    return values


def with_squared_norm(x: Array, squared_norm: float) -> Array:
    norm = np.linalg.norm(x)
    return x if norm == 0 else x * (np.sqrt(squared_norm) / norm)
