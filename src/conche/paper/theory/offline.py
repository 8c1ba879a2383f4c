"""The error of training on all tasks at once: least squares in closed form, ridge asymptotically.

The paper compares with the offline solution by simulation alone. Under its Assumption 1 (Gaussian
features) the expectation is known. With S_t = A_t^T A_t, S = sum_t S_t, N = sum_t n_t rows in all,

    w = (S + lambda)^-1 (sum_t S_t w*_t + A^T e),

and whatever is left of rotations commutes with all of them: E S_s (S + lambda)^-2 S_t is a multiple
of the identity. So three numbers of N, p and lambda are all that is needed (`Resolvent`), and of
the tasks their inner products alone: p = 10^12 costs what p = 10 does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...common.arrays import Array
from ...common.checks import real
from ..sizes import Numbers, noise_per_task, samples_per_task
from .similarity import Similarity


class Resolvent(NamedTuple):
    """What w is made of, in the mean: E <w, x> = mean <m, x> for the tasks' weighted mean m, and
    E |w|^2 = pairs |sum_t n_t w*_t|^2 + own sum_t n_t |w*_t|^2 + noise sum_t n_t sigma_t^2."""

    mean: float
    pairs: float
    own: float
    noise: float


def offline_error(
    similarity: Similarity, n_samples: Numbers, noise_var: Numbers, damping: float = 0.0
) -> Array:
    """G_T of the offline solution on the first t tasks, for t = 1..T; always over all T tasks.

    Without damping it is that of least squares (of minimum norm, where there are fewer rows than
    columns), exact, and infinite where |N - p| <= 1. With damping it is that of the ridge solution
    (``damping`` is lambda, as in `conche.offline_solution`) up to terms of order 1/p: a
    deterministic equivalent.

    Parameters
    ----------
    similarity : how alike the tasks are; its partition does not matter.
    n_samples, noise_var : one number, or one per task.
    damping : lambda; 0: least squares.

    Examples
    --------
    >>> similarity = Similarity.shared(n_tasks=3, partition=[32], n_shared=24)
    >>> offline_error(similarity, n_samples=64, noise_var=0.01).round(3)
    array([0.354, 0.264, 0.213])
    """
    p, damping = int(similarity.partition.sum()), real("damping", damping)
    stops = path(similarity, n_samples, noise_var)
    return np.array([stop.error(stop.with_all, p, damping) for stop in stops])


class Stop(NamedTuple):
    """What theory needs to know of the tasks up to one of them."""

    N: int  # samples of all tasks so far
    square: float  # |m|^2 of the tasks' mean, weighed by their samples
    own: float  # sum of n_t |w*_t|^2
    loud: float  # sum of n_t sigma_t^2
    as_new: Aim  # the last task, for an estimate that does not know it yet
    with_this: Aim
    with_all: Aim

    def length(self, known: Resolvent) -> float:
        """E |w|^2."""
        between = known.pairs * self.N**2 * self.square
        return between + known.own * self.own + known.noise * self.loud

    def error(self, aim: Aim, p: int, damping: float) -> float:
        """The expected squared error of the estimate so far, where ``aim`` says."""
        known = resolvent(self.N, p, damping)
        if not np.isfinite(known.noise):
            return float("inf") if self.own + self.loud > 0 else aim.target
        return self.length(known) - 2 * known.mean * aim.product + aim.target


class Aim(NamedTuple):
    """Where the error is looked at: <m, w*> and |w*|^2 + sigma^2, in one task or in the mean."""

    product: float
    target: float


def path(similarity: Similarity, n_samples: Numbers, noise_var: Numbers) -> Iterator[Stop]:
    """One `Stop` after every task."""
    T = similarity.n_tasks
    ns, noise = samples_per_task(n_samples, T), noise_per_task(noise_var, T)
    target = similarity.total_energy() / T + float(noise.mean())
    mean, square = similarity.start(), 0.0
    own = loud = 0.0
    N = 0
    for t, n in enumerate(ns.tolist()):
        N += n
        rho, energy = n / N, float(similarity.energies(t).sum())
        across = float(similarity.with_task(mean, t).sum())
        square = (1 - rho) ** 2 * square + 2 * rho * (1 - rho) * across + rho**2 * energy
        mean = similarity.advance(mean, t, np.full(len(similarity.partition), rho))
        own, loud = own + n * energy, loud + n * float(noise[t])
        aim = energy + float(noise[t])
        new, this = Aim(across, aim), Aim((1 - rho) * across + rho * energy, aim)
        every = Aim(float(similarity.with_all(mean).sum()) / T, target)
        yield Stop(N, square, own, loud, new, this, every)


def best_damping(similarity: Similarity, n_samples: Numbers, noise_var: Numbers) -> float:
    """The lambda whose offline ridge solution on all tasks has the least error, over all of them.

    Where tasks share one truth that is Bayes' p sigma^2 / |w*|^2; what tasks have of their own
    counts as noise.

    Parameters
    ----------
    similarity, n_samples, noise_var : as in `offline_error`.

    Returns
    -------
    lambda, as `conche.offline_solution` takes it.

    Examples
    --------
    >>> one = Similarity.shared(n_tasks=2, partition=[128], n_shared=128)
    >>> round(best_damping(one, n_samples=100, noise_var=0.1), 1)
    12.8
    """
    from scipy.optimize import minimize_scalar  # late: it takes long to import, and plans are quick

    p = float(similarity.partition.sum())

    def error(log: float) -> float:
        return float(offline_error(similarity, n_samples, noise_var, float(np.exp(log)))[-1])

    middle = np.log(p)
    found = minimize_scalar(error, bounds=(middle - 25, middle + 25), method="bounded")
    return float(np.exp(found.x))


def resolvent(N: int, p: int, damping: float = 0.0) -> Resolvent:
    """For N rows of p columns in all."""
    if damping > 0:
        return _ridge(N, p, damping)
    if abs(N - p) <= 1:
        return Resolvent(np.nan, np.nan, np.nan, np.inf)
    return _tall(N, p) if p < N else _wide(N, p)


def _tall(N: int, p: int) -> Resolvent:
    """N > p + 1: S^-1/2 S_t S^-1/2 is a matrix Dirichlet, independent of S."""
    free = N - p - 1
    bend = (p * N - 2) / (N * free)  # what the shape of S adds
    pairs = (1 - bend) / ((N + 2) * (N - 1))
    own = (1 - 2 / N) / ((N + 2) * (N - 1)) * (1 - bend) + bend / N
    return Resolvent(1.0, pairs, own, p / (N * free))


def _wide(N: int, p: int) -> Resolvent:
    """N < p - 1: minimum norm, a projection on N random directions."""
    free = p - N - 1
    return Resolvent(N / p, -1 / (p * free), (p - 1) / (p * free), 1 / free)


def _ridge(N: int, p: int, damping: float) -> Resolvent:
    """Marchenko and Pastur's law for the d = min(N, p) eigenvalues that are not zero.

    k = E tr (G + lambda)^-1 / d solves  lambda d k^2 + (lambda + D - 1 - d) k = 1,  D = max(N, p),
    where the 1 makes it exact for lambda = 0. Of x_i's own part in w, E |x|^2 x.R^2 x, the two
    factors are taken to be independent.
    """
    d, D = min(N, p), max(N, p)
    gap = damping + D - 1 - d
    root = np.sqrt(gap**2 + 4 * damping * d)
    k = 2 / (gap + root) if gap > 0 else (root - gap) / (2 * damping * d)
    slope = (d * k**2 + k) / root  # E tr (G + lambda)^-2 / d
    noise = d * (k - damping * slope) / N  # E x.R^2 x for one row x
    whole = d * (1 - 2 * damping * k + damping**2 * slope)  # E tr S R^2 S
    each = p * noise
    between = (whole - N * each) / (N * (N - 1)) if N > 1 else 0.0
    return Resolvent(d * (1 - damping * k) / p, between / p, (each - between) / p, noise)
