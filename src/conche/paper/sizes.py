"""The sizes that theory, planner and simulation all take, checked once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..common.arrays import Array
from ..common.checks import per_task
from ..errors import ParameterError

Numbers = float | Sequence[float] | Array  # one number, or one per task
Blocks = Sequence[int] | Sequence[Sequence[int]] | Array  # sizes, or columns, of every node's block


def block_sizes(partition: Sequence[int] | Array) -> Array:
    """p_k of every node, as an integer array."""
    try:
        sizes = np.asarray(partition, dtype=float)
    except (TypeError, ValueError):  # not numbers, or lists of columns
        sizes = np.empty(0)
    if sizes.ndim != 1 or not len(sizes) or not np.all(_whole(sizes)):
        raise ParameterError("partition: every node needs a whole number of columns, at least 1")
    return sizes.astype(np.int64)


def samples_per_task(n_samples: Numbers, n_tasks: int) -> Array:
    """n_t of every task, as an integer array."""
    samples = per_task("n_samples", n_samples, n_tasks)
    wrong = samples[~_whole(samples)]
    if len(wrong):
        raise ParameterError(f"n_samples={wrong[0]:g} must be a whole number of at least 1")
    return samples.astype(np.int64)


def noise_per_task(noise_var: Numbers, n_tasks: int) -> Array:
    """sigma_t^2 of every task."""
    noise = per_task("noise_var", noise_var, n_tasks)
    wrong = noise[~((noise >= 0) & np.isfinite(noise))]
    if len(wrong):
        raise ParameterError(f"noise_var={wrong[0]:g} must be a number of at least 0")
    return noise


def _whole(values: Array) -> Array:
    return (values >= 1) & np.isfinite(values) & (values == np.floor(values))
