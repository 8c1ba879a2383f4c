"""The paper's data: Gaussian tasks whose unknowns share their first entries (Section IV)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..common.arrays import Array
from ..common.checks import per_task, real, whole
from .task import Task


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
    n_tasks : the paper's T.
    n_samples, noise_var : one number, or one per task.
    n_features : columns, the paper's p.
    n_shared : entries that all unknowns share, the paper's p_S.
    correlation : rows have the Toeplitz covariance ``correlation ** |i - j|`` (Section IV-E).
    seed : one seed for everything; task t's data do not depend on how many tasks follow it.

    Returns
    -------
    A list of `Task`, each with its true ``weights`` and ``noise_var``.

    Examples
    --------
    >>> tasks = gaussian_tasks(n_tasks=3, n_samples=20, n_features=8, n_shared=6)
    >>> tasks[0].X.shape, bool((tasks[0].weights[:6] == tasks[2].weights[:6]).all())
    ((20, 8), True)
    """
    whole("n_tasks", n_tasks)
    whole("n_shared", n_shared, 0, whole("n_features", n_features))
    real("correlation", correlation, 0, 1)
    samples = per_task("n_samples", n_samples, n_tasks)
    noises = per_task("noise_var", noise_var, n_tasks)
    for n in np.ravel(n_samples).tolist():
        whole("n_samples", n)
    for var in noises.tolist():
        real("noise_var", var)

    shared_rng, *task_rngs = np.random.default_rng(seed).spawn(n_tasks + 1)
    shared = with_squared_norm(shared_rng.standard_normal(n_shared), n_shared / n_features)
    tasks = []
    for t, rng in enumerate(task_rngs):
        own = rng.standard_normal(n_features - n_shared)
        own = with_squared_norm(own, (n_features - n_shared) / n_features)
        weights = np.concatenate([shared, own])
        n, noise = int(samples[t]), float(noises[t])
        X = correlated(rng.standard_normal((n, n_features)), correlation)
        y = X @ weights + np.sqrt(noise) * rng.standard_normal(n)
        tasks.append(Task(X, y, weights, noise, name=str(t + 1), correlation=correlation))
    return tasks


def correlated(z: Array, correlation: float) -> Array:
    """z L^T for the Cholesky factor L of the covariance correlation**|i-j|, in O(n p).

    An autoregression along the columns: a_0 = z_0, a_i = e a_{i-1} + sqrt(1 - e^2) z_i.

    Parameters
    ----------
    z : independent standard normal rows.
    correlation : between neighbouring columns.

    Returns
    -------
    An array like z.

    Examples
    --------
    >>> correlated(np.array([[1.0, 0.0, 0.0]]), correlation=0.5)
    array([[1.  , 0.5 , 0.25]])
    """
    if correlation == 0:
        return z
    z = z.copy()
    z[..., 1:] *= np.sqrt(1 - correlation**2)
    return _filtered([1.0], correlation, z)


def toeplitz_norm(x: Array, correlation: float) -> Array:
    """x^T Sigma x along the last axis for Sigma_ij = correlation**|i-j|, in O(p), without Sigma.

    Parameters
    ----------
    x : a vector, or many.
    correlation : between neighbouring entries.

    Returns
    -------
    One number for every vector.

    Examples
    --------
    >>> float(toeplitz_norm(np.array([1.0, 1.0]), correlation=0.5))  # 1 + 2 * 0.5 + 1
    3.0
    """
    x = np.asarray(x)
    squares = np.asarray(np.vecdot(x, x))
    if correlation == 0:
        return squares
    # s_i = sum_{j<i} e^{i-j} x_j obeys s_i = e (s_{i-1} + x_{i-1})
    s = _filtered([0.0, correlation], correlation, x)
    return np.asarray(squares + 2 * np.vecdot(x, s))


def with_squared_norm(x: Array, squared_norm: float) -> Array:
    """x scaled to this squared norm; the zero vector stays what it is.

    Parameters
    ----------
    x : a vector.
    squared_norm : that it is to have.

    Returns
    -------
    The scaled vector.

    Examples
    --------
    >>> with_squared_norm(np.array([3.0, 4.0]), 1.0)
    array([0.6, 0.8])
    """
    norm = np.linalg.norm(x)
    return x if norm == 0 else x * (np.sqrt(squared_norm) / norm)


def _filtered(b: list[float], correlation: float, x: Array) -> Array:
    from scipy.signal import lfilter  # late: it takes long to import, and few need it

    return np.asarray(lfilter(b, [1.0, -correlation], x, axis=-1))
