"""Which ridge the Conche method ends with, and the error that comes of it.

Where nothing is lost it is found by evidence, which is about the ridge with the least expected
error. Beyond the rank several strengths are there side by side, and the least error before learning
wins, summed over tasks (`conche.estimators.judge`); so does the least expected sum here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..common.arrays import Array
from ..nodes.solvers.principal import STRENGTHS
from ..nodes.solvers.ridge import default_share
from ..paper.theory import Similarity
from ..paper.theory.offline import Stop, path

RIDGES = np.geomspace(1e-10, 1e2, 49)  # that lossless memory may find, times the samples


class Choice(NamedTuple):
    """What is to be expected of the method's own choice."""

    ridge: float  # for standardised columns
    error: float  # over all tasks after the last one
    newest: float  # the same on the last task alone


def choice(similarity: Similarity, n_samples: Array, noise_var: float, rank: int) -> Choice:
    """For a stream of these tasks, with so many directions of memory."""
    p = int(similarity.partition.sum())
    stops = list(path(similarity, n_samples, noise_var))
    last = stops[-1]
    if p <= rank or rank >= last.N or len(stops) == 1:  # nothing is lost
        error = partial(last.error, last.with_all, p)
    else:
        error = partial(_before_learning, stops, p)
    ridge = least(error, p, last.N, rank)
    return Choice(ridge, *(float(last.error(a, p, ridge)) for a in (last.with_all, last.with_this)))


def least(error: Callable[[float], float], p: int, n_samples: float, rank: int) -> float:
    """Of the ridges that memory of this rank may choose, the one of the least error."""
    ridges = n_samples * RIDGES if p <= rank else STRENGTHS if rank else [default_share(p + 1)]
    return float(min(ridges, key=error))


def _before_learning(stops: list[Stop], p: int, ridge: float) -> float:
    """The errors on all tasks but the first, each before it is learnt, added up."""
    return sum(last.error(now.as_new, p, ridge) for last, now in pairwise(stops))
