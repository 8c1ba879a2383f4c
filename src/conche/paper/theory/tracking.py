"""Forgetting, where the truth drifts: the tracking error of recursive least squares.

After t tasks the ridge solution in which task s counts with the weight tau_s = discount^(t - s) is

    w = (sum_s tau_s S_s + lambda)^-1 sum_s tau_s (S_s w*_s + A_s^T e_s),    S_s = A_s^T A_s.

For Gaussian features (Assumption 1) and many columns its error has a deterministic equivalent. With
k = E tr R / p of the resolvent R, each row x of task s changes R by 1 + tau_s p k in its own
direction, so that with h_s = tau_s / (1 + tau_s p k)

    1 = lambda k + k sum_s n_s h_s,        k2 = E tr R^2 / p = k^2 / (1 - p k^2 sum_s n_s h_s^2).

Task s enters the mean estimate with c_s = n_s h_s k, and of |w|^2 two rows of tasks s and u have
h_s h_u (k2 - p k k2 (h_s + h_u)), a row with itself h_s^2 p k2 (as noise has it). docs/theory.md
has the derivation. Terms of order 1/p are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...common.arrays import Array
from ...common.checks import real
from ..sizes import Numbers, noise_per_task, samples_per_task
from .similarity import Similarity

NEGLIGIBLE = 1e-14  # weight of a task that no longer counts
NEWTON = 100  # steps at most
NOTHING = 1e-4  # relative: a gain that nobody would forget for


def tracking_error(
    similarity: Similarity,
    n_samples: Numbers,
    noise_var: Numbers,
    discount: float = 1.0,
    damping: float = 1.0,
    tasks: Sequence[int] | None = None,
) -> Array:
    """The error on task t of the estimate after tasks 1..t, for t = 1..T: how well it follows.

    ``discount`` is the weight of the past per task, ``damping`` the ridge lambda > 0; both as in
    `conche.Memory`. ``tasks`` asks for some of them alone, counted from 0. Where unknowns follow a
    random walk, the error on the next task is larger by one step of it, whatever the discount.

    Parameters
    ----------
    similarity, n_samples, noise_var : as in `generalization_error`.
    discount : the weight of the past per task, as in `conche.Memory`.
    damping : the ridge lambda > 0.
    tasks : some of them alone, counted from 0; None: all.

    Returns
    -------
    An array with an error for each of those tasks.

    Examples
    --------
    >>> walk = Similarity.shared(n_tasks=30, partition=[200], n_shared=200, drift=0.1)
    >>> np.round([tracking_error(walk, 300, 0.1, share)[-1] for share in (1.0, 0.5, 0.0)], 2)
    array([1.06, 0.18, 0.3 ])
    """
    T, p = similarity.n_tasks, int(similarity.partition.sum())
    ns, noise = samples_per_task(n_samples, T).astype(float), noise_per_task(noise_var, T)
    discount, damping = real("discount", discount, most=1.0), real("damping", damping, 1e-300)
    products = similarity.products()
    errors = []
    for t in range(T) if tasks is None else np.arange(T)[list(tasks)].tolist():
        weights = np.power(discount, np.arange(t, -1, -1.0))
        first = int(np.searchsorted(weights, NEGLIGIBLE))
        seen = slice(first, t + 1)
        found = shares(ns[seen], weights[first:], p, damping)
        own, g = products[t, t], products[seen, seen]
        length = found.length(g) + float(noise[seen] @ found.noise)
        errors.append(length - 2 * float(found.mean @ products[seen, t]) + own + noise[t])
    return np.array(errors)


def best_discount(
    similarity: Similarity, n_samples: Numbers, noise_var: Numbers, damping: float = 1.0
) -> float:
    """The weight of the past per task with the least error on the last task; 1: never forget.

    Parameters
    ----------
    similarity, n_samples, noise_var, damping : as in `tracking_error`.

    Returns
    -------
    The discount, between 0 and 1.

    Examples
    --------
    >>> walk = Similarity.shared(n_tasks=30, partition=[200], n_shared=200, drift=0.1)
    >>> round(best_discount(walk, 300, 0.1), 1)
    0.3
    >>> best_discount(Similarity.shared(30, [200], 200), 300, 0.1)
    1.0
    """
    from scipy.optimize import minimize_scalar  # late: it takes long to import, and plans are quick

    def error(discount: float) -> float:
        curve = tracking_error(similarity, n_samples, noise_var, discount, damping, [-1])
        return float(curve[0])

    found = minimize_scalar(error, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-4})
    return 1.0 if error(1.0) <= found.fun * (1 + NOTHING) else float(found.x)


class Shares(NamedTuple):
    """What tasks are of an estimate: E w = sum_s mean_s w*_s, and of E |w|^2 noise_s sigma_s^2."""

    mean: Array
    noise: Array
    rows: Array  # n_s h_s
    each: Array  # h_s
    pair: float  # k2
    bend: float  # p k k2

    def length(self, products: Array) -> float:
        """E |w|^2 without noise, from the tasks' inner products."""
        a, h = self.rows, self.each
        bent = a * h
        across = self.pair * (a @ products @ a) - 2 * self.bend * (a @ products @ bent)
        own = self.noise - bent * (self.pair - 2 * self.bend * h)  # a row is no pair with itself
        return float(across + own @ np.diag(products))


def shares(ns: Array, weights: Array, p: int, damping: float) -> Shares:
    """Of tasks with ``ns`` rows, each of which counts with its task's weight."""
    k = 1 / (damping + float(np.sum(ns * weights)))
    for _ in range(NEWTON):  # the sum is concave and rises: from below, steps never pass the root
        d = 1 + weights * p * k
        left = 1 - damping * k - float(np.sum(ns * weights * k / d))
        step = left / (damping + float(np.sum(ns * weights / d**2)))
        k += max(step, 0.0)
        if step <= 1e-15 * k:
            break
    h = weights / (1 + weights * p * k)
    k2 = k**2 / (1 - p * k**2 * float(np.sum(ns * h**2)))
    return Shares(ns * h * k, ns * h**2 * p * k2, ns * h, h, k2, p * k * k2)
