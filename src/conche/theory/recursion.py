"""Theorem 1, forwards: the generalization error after every task, in one pass.

The paper's form runs backwards from one t (h, R, Q of Theorem 1); this one carries the mean
estimate and s_k = E |w_k|^2 forwards, gives the whole curve at once, and takes O(T K) where the
similarity is structured. Both are the same to rounding (`tests/test_theory.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .moments import Array, Moments, check_sizes, moments
from .similarity import Similarity

Numbers = float | Sequence[float] | Array


class Step(NamedTuple):
    """Where the recursion stands after task t."""

    t: int
    error: float  # G_T of the estimate
    distance: Array  # E |w_k - w*_{t,k}|^2 per block, *before* task t was learnt
    n_samples: float
    noise_var: float


def generalization_error(
    similarity: Similarity,
    n_samples: Numbers,
    noise_var: Numbers,
    n_rounds: int = 1,
    damping: float | None = None,
    samples: int | None = None,
    seed: int = 0,
) -> Array:
    """G_T(w_t) for t = 1..T: the expected error over all T tasks after t of them.

    Exact under the paper's Assumption 1 (Gaussian features): in closed form for one round, or for
    any number of rounds where every p_k > n + 1 (Theorem 1); otherwise, and for the damped solver
    (``damping`` is its mu), with moments sampled once per shape (`moments`). Infinite from the
    first task on for which some |n_t - p_k| <= 1.

    ``n_samples`` and ``noise_var`` are one number, or one per task.
    """
    steps = walk(similarity, n_samples, noise_var, n_rounds, damping, samples, seed)
    return np.array([step.error for step in steps])


def walk(
    similarity: Similarity,
    n_samples: Numbers,
    noise_var: Numbers,
    n_rounds: int = 1,
    damping: float | None = None,
    samples: int | None = None,
    seed: int = 0,
) -> Iterator[Step]:
    """The recursion, task by task."""
    T, sizes = similarity.n_tasks, similarity.partition
    ns = per_task("n_samples", n_samples, T)
    noise = per_task("noise_var", noise_var, T)
    if not (noise.min() >= 0 and np.all(np.isfinite(noise))):
        raise ValueError(f"noise_var={noise.min()} must not be negative or infinite")
    settled = similarity.total_energy() + noise.sum()
    known: dict[float, Moments] = {}
    s = np.zeros(len(sizes))
    mean = similarity.start()
    lost = False
    for t in range(T):
        n = float(ns[t])
        if n not in known:
            check_sizes(n, sizes.tolist())
            known[n] = moments(int(n), sizes.tolist(), n_rounds, damping, samples, seed)
        m = known[n]
        x = similarity.with_task(mean, t)
        d = np.full(len(sizes), np.inf) if lost else s - 2 * x + similarity.energies(t)
        lost = lost or not m.finite
        if lost:  # a nearly square block: infinite from here on
            yield Step(t + 1, np.inf, d, n, noise[t])
            continue
        s = s + 2 * m.rho * (x - s) + m.spread(d) + noise[t] * m.beta
        mean = similarity.advance(mean, t, m.rho)
        error = s.sum() + (settled - 2 * similarity.with_all(mean).sum()) / T
        yield Step(t + 1, float(error), d, n, float(noise[t]))


def training_error(similarity: Similarity, n_samples: Numbers, noise_var: Numbers) -> Array:
    """E |A_t w_t - y_t|^2 / (2 n_t): each task's own training error after one exact round on it.

    With pi_k = min(n, p_k)/n, d_k the distance before the task, and
    F(q) = 1 - 2 sum(q)/K + (sum(q) + sum(q)^2 - sum(q^2)) / K^2,
    it is half of sum_j d_j F(pi with its j-th entry set to 1) + sigma_t^2 F(pi).
    Finite for nearly square blocks too, as long as the tasks before were not.
    """
    sizes, K = similarity.partition, len(similarity.partition)
    errors = []
    for step in walk(similarity, n_samples, noise_var):
        pi = np.minimum(step.n_samples, sizes) / step.n_samples
        # sums of q and of q^2 for q = pi with entry j replaced by 1, all j at once
        total, squares = pi.sum() - pi + 1, np.sum(pi**2) - pi**2 + 1
        replaced = _fraction_left(total, squares, K)
        untouched = _fraction_left(pi.sum(), np.sum(pi**2), K)
        if not np.all(np.isfinite(step.distance)):
            errors.append(np.inf)
            continue
        errors.append(0.5 * (np.sum(step.distance * replaced) + step.noise_var * untouched))
    return np.array(errors)


def _fraction_left(total: Any, squares: Any, K: int) -> Any:
    return 1 - 2 * total / K + (total + total**2 - squares) / K**2


def per_task(name: str, values: Any, n_tasks: int) -> Array:
    array = np.asarray(values, dtype=float)
    if array.ndim == 0:
        return np.full(n_tasks, float(array))
    if array.shape != (n_tasks,):
        raise ValueError(f"{name} has {array.size} values for {n_tasks} tasks")
    return array
