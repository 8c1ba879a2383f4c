"""Theorem 1, forwards: the generalization error after every task, in one pass.

The paper's form runs backwards from one t (h, R, Q of Theorem 1); this one carries the mean
estimate and s_k = E |w_k|^2 forwards, gives the whole curve at once, and takes O(T K) where the
similarity is structured. Both are the same to rounding (`tests/test_theory.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...common.arrays import Array
from ..sizes import Numbers, noise_per_task, samples_per_task
from .moments import Moments, moments
from .similarity import Similarity


class Step(NamedTuple):
    """Where the recursion stands after task t."""

    t: int
    error: float  # G_T of the estimate
    distance: Array  # E |w_k - w*_{t,k}|^2 per block, *before* task t was learnt
    n_samples: int
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
    any number of rounds where every p_k > n + 1 (Theorem 1); otherwise, and for the damped solver,
    with moments sampled once per shape (`moments`). Infinite from the first task on for which some
    |n_t - p_k| <= 1.

    Parameters
    ----------
    similarity : how alike the tasks are over the blocks of a partition.
    n_samples, noise_var : one number, or one per task.
    n_rounds : rounds per task (the paper's T_c).
    damping : None for the exact solver, or mu of the damped one.
    samples, seed : draws for moments without a closed form.

    Examples
    --------
    >>> similarity = Similarity.shared(n_tasks=4, partition=[8] * 4, n_shared=24)
    >>> generalization_error(similarity, n_samples=64, noise_var=0.01).round(3)
    array([0.694, 0.502, 0.386, 0.314])
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
    """The recursion, task by task; the arguments are those of `generalization_error`."""
    T, sizes = similarity.n_tasks, similarity.partition
    ns = samples_per_task(n_samples, T).tolist()
    noise = noise_per_task(noise_var, T)
    settled = similarity.total_energy() + noise.sum()
    known: dict[int, Moments] = {}
    s = np.zeros(len(sizes))
    mean = similarity.start()
    lost = False
    for t, n in enumerate(ns):
        if n not in known:
            known[n] = moments(n, sizes, n_rounds, damping, samples, seed)
        m = known[n]
        x = similarity.with_task(mean, t)
        d = np.full(len(sizes), np.inf) if lost else s - 2 * x + similarity.energies(t)
        lost = lost or not m.finite
        if lost:  # a nearly square block: infinite from here on
            yield Step(t + 1, np.inf, d, n, float(noise[t]))
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
    Finite for nearly square blocks too, as long as the tasks before were not nearly square.

    Parameters
    ----------
    similarity, n_samples, noise_var : as in `generalization_error`.

    Returns
    -------
    An array of T errors.

    Examples
    --------
    >>> similarity = Similarity.shared(n_tasks=2, partition=[8] * 4, n_shared=24)
    >>> training_error(similarity, n_samples=64, noise_var=0.01).round(3)
    array([0.23 , 0.165])
    """
    sizes, K = similarity.partition, len(similarity.partition)
    errors = []
    for step in walk(similarity, n_samples, noise_var):
        if not np.all(np.isfinite(step.distance)):
            errors.append(np.inf)
            continue
        pi = np.minimum(step.n_samples, sizes) / step.n_samples
        # sums of q and of q^2 for q = pi with entry j replaced by 1, all j at once
        total, squares = pi.sum() - pi + 1, np.sum(pi**2) - pi**2 + 1
        replaced = _fraction_left(total, squares, K)
        untouched = _fraction_left(pi.sum(), np.sum(pi**2), K)
        errors.append(0.5 * (np.sum(step.distance * replaced) + step.noise_var * untouched))
    return np.array(errors)


def _fraction_left(total: Array | float, squares: Array | float, K: int) -> Array:
    """F(q), from the sum of q and that of its squares."""
    return np.asarray(1 - 2 * total / K + (total + total**2 - squares) / K**2)
