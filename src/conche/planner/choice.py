"""Which ridge the Conche method ends with, and the error that comes of it.

Several strengths learn side by side until there are two samples a column, and the one wins that
predicts samples best that are left out (`conche.estimators.judge`). In the mean, a sample of task t
that is left out is predicted as well as a new one after t tasks, which theory knows for every
strength. But few samples choose by luck as well: with Gaussian residuals r_s the losses r_s^2 / 2
have the covariance c^2 / 2, c = E r_s r_u, and the scores are sums of them. For ridges lambda and
mu, E w_lambda.w_mu is the mean of E |w|^2 over all ridges between them, because the product of two
resolvents is their difference quotient.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..common.arrays import Array
from ..nodes.solvers.options import side_by_side
from ..nodes.solvers.ridge import (
    BETTER,
    DEFAULT_DAMPING,
    ENOUGH_TIMES,
    LEFT_OUT,
    WEIGHTS_TO_A_SAMPLE,
)
from ..paper.theory import Similarity
from ..paper.theory.offline import Stop, path, resolvent

LOOKED_AT = 6  # tasks, of those that judge, for which scores are worked out
BETWEEN = 3  # steps from one strength to the next in the mean of |w|^2
DRAWS = 2000  # of the scores


class Choice(NamedTuple):
    """What is to be expected of the method's own choice."""

    likely: float  # the ridge that is chosen most often
    error: float  # over all tasks after the last one, in the mean over choices
    newest: float  # the same on the last task alone


def choice(similarity: Similarity, n_samples: Array, noise_var: float, rank: int) -> Choice:
    """For a stream of these tasks, with so many directions of memory."""
    p = int(similarity.partition.sum())
    default = max(DEFAULT_DAMPING, (p + 1) / WEIGHTS_TO_A_SAMPLE)
    dampings = default * np.array(side_by_side(p + 1, rank))
    stops = list(path(similarity, n_samples, noise_var))
    judged = min(sum(ENOUGH_TIMES * (p + 1) > stop.N for stop in stops) + 1, len(stops))
    left_out = np.minimum(n_samples[:judged], LEFT_OUT)
    at = np.unique(np.linspace(0, judged - 1, LOOKED_AT).round().astype(int))
    nearest = np.argmin(np.abs(np.arange(judged)[:, None] - at), axis=1)
    size = len(dampings)
    scores, spread, apart = np.zeros(size), np.zeros((size, size)), np.zeros(size)
    for place, t in enumerate(at.tolist()):
        count = float(left_out[nearest == place].sum())
        c = residuals(stops[t], p, dampings)
        loss, cov = 0.5 * np.diag(c), 0.5 * c**2
        scores += count * loss
        spread += count * cov
        apart += count * (np.diag(cov) + cov[0, 0] - 2 * cov[0] + (loss - loss[0]) ** 2)
    shares = _winners(scores, spread, apart, dampings)
    last = stops[-1]
    errors, newest = (
        float(shares @ [last.error(aim, p, damping) for damping in dampings])
        for aim in (last.with_all, last.with_this)
    )
    return Choice(float(dampings[int(np.argmax(shares))]), errors, newest)


def residuals(stop: Stop, p: int, dampings: Array) -> Array:
    """E r_s r_u of a new sample of the last task, for all pairs of ridges."""
    order = np.argsort(dampings)
    knots = np.log(dampings[order])
    fine = np.interp(
        np.arange((len(knots) - 1) * BETWEEN + 1) / BETWEEN, np.arange(len(knots)), knots
    )
    known = [resolvent(stop.N, p, float(damping)) for damping in np.exp(fine)]
    lengths = np.array([stop.length(each) for each in known])
    steps = 0.5 * (lengths[1:] + lengths[:-1]) * np.diff(np.exp(fine))
    sums = np.concatenate([[0.0], np.cumsum(steps)])[::BETWEEN]
    ridge = np.exp(knots)
    gap = ridge[:, None] - ridge
    own = lengths[::BETWEEN]
    pairs = np.where(gap == 0, own, (sums[:, None] - sums) / np.where(gap == 0, 1.0, gap))
    aim = stop.with_this
    along = np.array([each.mean for each in known])[::BETWEEN] * aim.product
    c = pairs - along[:, None] - along + aim.target
    back = np.argsort(order)
    return np.asarray(c[np.ix_(back, back)])


def _winners(scores: Array, spread: Array, apart: Array, dampings: Array) -> Array:
    """How often each strength wins; one weaker than the first must be surely better."""
    squares, U = np.linalg.eigh(spread)
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((DRAWS, len(scores))) * np.sqrt(np.maximum(squares, 0.0))
    drawn = scores + drawn @ U.T
    gain = drawn[:, :1] - drawn
    unsure = (dampings < dampings[0]) & (gain <= BETTER * np.sqrt(apart))
    wins = np.argmin(np.where(unsure, np.inf, drawn), axis=1)
    return np.bincount(wins, minlength=len(scores)) / DRAWS
