"""Noise, signal and similarity from data, so that planning works without known weights.

Under the paper's model (features of mean zero and variance one, independent) every task's numbers
below are unbiased, for p > n and for p < n, but for what standardising with estimated means and
deviations costs (of the order of one over all samples). The generalization error is linear in them.
One pass over the stream (`conche.paper.theory.survey`), one task in memory at a time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...common.arrays import Array
from ...errors import CorrelationWarning
from ...nodes import Partition
from ...tasks import Task
from ..sizes import Blocks
from .similarity import Similarity, VectorSimilarity
from .survey import Fit, Survey

ROUGH = 1.25  # tr(Sigma^2)/p from here on: the isotropic theory is a rough guide


class Summary(NamedTuple):
    """sigma^2, |w*_t|^2, and <w*_i, w*_j> for different tasks."""

    noise_var: float
    energy: float
    common: float


@dataclass(frozen=True, eq=False)
class TaskStatistics:
    """What was estimated of a stream's tasks, one entry per task.

    ``vectors`` are unbiased estimates of the tasks' unknowns (T x p, for standardised features),
    with variance ``spread[t]`` per entry; ``noise_var`` and ``energy`` are sigma_t^2 and |w*_t|^2,
    with standard errors. ``correlation`` is tr(Sigma^2)/p: 1 for independent features, nan where
    tasks of one row do not show it. ``spectrum`` has the eigenvalues of the standardised columns'
    covariance, ``tails`` the mean fourth moment of their entries: 3 for Gaussian ones.

    Examples
    --------
    >>> import conche
    >>> tasks = conche.gaussian_tasks(8, 200, 32, n_shared=24, noise_var=0.1)
    >>> found = conche.theory.estimate(tasks)
    >>> found.n_tasks, found.n_features, round(float(found.noise_var.mean()), 2)
    (8, 32, 0.1)
    """

    n_samples: Array
    vectors: Array
    spread: Array
    inflation: Array  # E |vector|^2 = inflation * |w*|^2 + p * spread
    noise_var: Array
    noise_stderr: Array
    energy: Array
    energy_stderr: Array
    power: Array  # mean square of y per task: energy + noise_var
    pooled_residual: float  # residual variance of least squares on all tasks; nan where N <= p
    correlation: float
    correlation_stderr: float  # were the columns independent
    spectrum: Array
    tails: float

    @property
    def n_tasks(self) -> int:
        """T."""
        return len(self.vectors)

    @property
    def n_features(self) -> int:
        """p."""
        return int(self.vectors.shape[1])

    def similarity(self, partition: Blocks) -> Similarity:
        """Block-wise inner products between tasks, each unbiased.

        ``partition`` lists block sizes, or the columns of every block.
        """
        part = Partition.make(self.n_features, partition=partition)
        squares = np.array([[np.sum(v[b] ** 2) for b in part] for v in self.vectors])
        sizes = np.array(part.sizes)
        own = (squares - sizes * self.spread[:, None]) / self.inflation[:, None]
        return VectorSimilarity(self.vectors, partition, excess=squares - own)

    def inner_products(self, partition: Blocks) -> tuple[Array, Array]:
        """g_{ij,k} and their standard errors, T x T x K: for looking at, not for planning."""
        part = Partition.make(self.n_features, partition=partition)
        similarity = self.similarity(partition)
        g = np.stack([self.vectors[:, b] @ self.vectors[:, b].T for b in part], axis=-1)
        own = np.array([similarity.energies(t) for t in range(self.n_tasks)])
        g[np.arange(self.n_tasks), np.arange(self.n_tasks)] = own
        sizes, v = np.array(part.sizes), self.spread
        e = np.maximum(own, 0)
        var = sizes * (v[:, None] * v[None, :])[..., None]
        var += e[:, None, :] * v[None, :, None] + e[None, :, :] * v[:, None, None]
        diagonal = np.arange(self.n_tasks)
        var[diagonal, diagonal] *= 2  # a square varies twice as much as a product
        return g, np.sqrt(var)

    def summary(self) -> Summary:
        """Three numbers for streams in which every pair of tasks is equally similar.

        They are the noise, the energy, and the part of it that is common to all tasks. The noise
        is the mean over samples. Where all tasks together have more samples than columns,
        pooled least squares leaves sigma^2 + (1 - 1/T) (energy - common),
        which is known far better than its parts: it bounds the noise and gives the common energy.
        """
        T, weight = self.n_tasks, self.n_samples / self.n_samples.sum()
        power = float(weight @ self.power)
        noise = float(np.clip(weight @ self.noise_var, 0.0, power))
        if T == 1:
            return Summary(noise, power - noise, power - noise)
        if np.isfinite(self.pooled_residual):
            noise = min(noise, self.pooled_residual)
            own = (self.pooled_residual - noise) * T / (T - 1)
            common = power - noise - own
        else:
            common = float(np.mean(self._products()[np.triu_indices(T, 1)]))
        return Summary(noise, power - noise, float(np.clip(common, 0.0, power - noise)))

    def drift(self) -> float:
        """How many standard errors neighbouring tasks are more alike than distant ones."""
        T = self.n_tasks
        if T < 6:
            return 0.0
        products = self._products()
        near = np.diag(products, 1)
        far = products[np.triu_indices(T, T // 2)]
        stderr = np.sqrt(near.var(ddof=1) / len(near) + far.var(ddof=1) / len(far))
        return float((near.mean() - far.mean()) / stderr) if stderr > 0 else 0.0

    def walk(self) -> float:
        """E |w*_{t+1} - w*_t|^2 where unknowns follow a random walk: by how much tasks i and j are
        less alike than neighbours, over the steps between them, at least 0."""
        T = self.n_tasks
        if T < 3:
            return 0.0
        products, i, j = self._products(), *np.triu_indices(T, 1)
        energy = np.clip(self.energy, 0.0, None)
        apart = energy[i] + energy[j] - 2 * products[i, j]  # own parts, and |j - i| steps
        slope = np.polyfit(j - i, apart, 1)[0]
        return max(float(slope), 0.0)

    def _products(self) -> Array:
        return np.asarray(self.vectors @ self.vectors.T)


def estimate(tasks: Iterable[Task]) -> TaskStatistics:
    """Estimate noise, energy and unknowns of every task, and how the columns vary together.

    Features are standardised with the means and deviations of the whole stream, and targets
    centred. For each task the less noisy of two unbiased estimates is taken: A^T y / n (any shape;
    norms and noise after Dicker, 2014), or least squares where n is well above p.

    Warns with `CorrelationWarning` where the features are too correlated for the theory, which
    assumes that they are not.

    Parameters
    ----------
    tasks : a list, or whatever can be gone through twice; one task is in memory at a time.

    Returns
    -------
    A `TaskStatistics`.

    Examples
    --------
    >>> from conche.tasks import gaussian_tasks
    >>> found = estimate(gaussian_tasks(16, 400, 128, n_shared=96, noise_var=0.05))
    >>> [round(number, 2) for number in found.summary()]
    [0.05, 1.0, 0.75]
    """
    survey = Survey()
    for task in tasks:
        survey.add(task)
    seen = survey.result()
    if seen.correlation > ROUGH:
        warnings.warn(
            f"the features are correlated (tr(Sigma^2)/p = {seen.correlation:.2f}, 1 for "
            f"independent ones): the isotropic theory of Algorithm 1 is a rough guide here",
            CorrelationWarning,
            stacklevel=2,
        )
    parts = zip(seen.n_samples, seen.back, seen.squares, seen.fits, strict=True)
    each = [estimate_task(int(n), back, power, fit) for n, back, power, fit in parts]
    return TaskStatistics(
        n_samples=seen.n_samples,
        vectors=np.array([one.vector for one in each]),
        spread=np.array([one.spread for one in each]),
        inflation=np.array([one.inflation for one in each]),
        noise_var=np.array([one.noise_var for one in each]),
        noise_stderr=np.array([one.noise_stderr for one in each]),
        energy=np.array([one.energy for one in each]),
        energy_stderr=np.array([one.energy_stderr for one in each]),
        power=seen.squares / seen.n_samples,
        pooled_residual=seen.pooled_residual,
        correlation=seen.correlation,
        correlation_stderr=2 / max(seen.pairs, 1) ** 0.5,
        spectrum=seen.spectrum,
        tails=seen.tails,
    )


class OneTask(NamedTuple):
    """One task's part of `TaskStatistics`."""

    vector: Array
    spread: float
    inflation: float
    noise_var: float
    noise_stderr: float
    energy: float
    energy_stderr: float


def estimate_task(n: int, back: Array, power: float, fit: Fit | None = None) -> OneTask:
    """One task's unknowns, noise and energy, by the less noisy of the two estimates.

    ``back`` is A^T y and ``power`` |y|^2 for standardised columns and a centred target, with
    numbers that do not come from this task alone; ``fit`` its least squares, where there are
    samples enough.
    """
    p, square = len(back), float(back @ back)
    # Dicker (2014), covariance known to be the identity
    noise = ((p + n + 1) * power - square) / (n * (n + 1))
    energy = (square - p * power) / (n * (n + 1))
    v = power / n  # energy + noise
    s, e = max(noise, 0.0), max(energy, 0.0)
    noise_err = np.sqrt(2 / n * (p / n * v**2 + s**2 + e**2))
    energy_err = np.sqrt(max(0.0, 2 / n * ((1 + p / n) * v**2 - s**2 + 3 * e**2)))
    marginal = OneTask(back / n, v / n, 1 + 1 / n, noise, noise_err, energy, energy_err)
    if fit is None:
        return marginal
    w, noise_ls, left = fit
    spread = noise_ls / (left - 1)
    if spread >= v / n:
        return marginal
    noise_err = noise_ls * np.sqrt(2 / left)
    energy_ls = float(w @ w) - p * spread
    energy_err = np.sqrt(4 * max(energy_ls, 0) * spread + 2 * p * spread**2)
    return OneTask(w, spread, 1.0, noise_ls, noise_err, energy_ls, energy_err)
