"""Small functions beside the estimators: parameters, groups of outputs, where an entry is bad."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from ..losses import Loss
from ..solvers.base import Array


def group(index: int, n_outputs: int) -> slice:
    return slice(index * n_outputs, (index + 1) * n_outputs)


def group_losses(loss: Loss, predictions: Array, targets: Array, groups: int) -> Array:
    """The mean loss of every group of outputs on a task that it has not learnt yet."""
    if groups == 1:
        return np.zeros(1)
    with np.errstate(over="ignore"):
        each = loss.value(predictions.astype(float), targets.astype(float)) / len(targets)
    # a group that has overflowed has lost, and must not spoil the others' sums
    return np.nan_to_num(each, nan=1e300, posinf=1e300).reshape(groups, -1).sum(axis=1)


def check(name: str, value: Any, kind: Any, low: float, high: float = np.inf) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        what = "a whole number" if kind is Integral else "a number"
        upto = f" and at most {high}" if np.isfinite(high) else ""
        raise ValueError(f"{name}={value!r} must be {what} of at least {low}{upto}")


def frozen(partition: Any) -> tuple[Any, ...]:
    """Sizes or lists of columns, as values that can be compared."""
    return tuple(tuple(np.asarray(b).tolist()) if np.ndim(b) else int(b) for b in partition)


def first_bad(X: Any) -> str:
    """Where the first missing or infinite entry of a dense X is, counted from 0."""
    try:
        bad = np.argwhere(~np.isfinite(np.asarray(X, dtype=np.float64)))
    except (TypeError, ValueError):
        return ""
    return f"(first at row {bad[0][0]}, column {bad[0][1]})" if len(bad) else ""
