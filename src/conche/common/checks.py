"""Arguments, checked by name: each function returns the value or raises a `ParameterError`."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..errors import ParameterError
from .arrays import Array

LARGEST = 2.0**62  # of whole numbers: what no machine counts to


def whole(name: str, value: Any, least: int = 1, most: float = LARGEST) -> int:
    """A whole number of at least ``least`` and at most ``most``."""
    return int(_checked(name, value, Integral, least, most))


def real(
    name: str, value: Any, least: float = 0.0, most: float = sys.float_info.max, beside: str = ""
) -> float:
    """A finite number of at least ``least`` and at most ``most``; ``beside`` says what else would
    do."""
    return float(_checked(name, value, Real, least, most, beside))


def _checked(name: str, value: Any, kind: Any, least: float, most: float, beside: str = "") -> Any:
    is_bool = isinstance(value, bool | np.bool_)
    plain = value.item() if isinstance(value, np.generic) else value  # compared without overflow
    if is_bool or not isinstance(value, kind) or not least <= plain <= most:
        what = "a whole number" if kind is Integral else "a number"
        above = isinstance(value, kind) and not is_bool and plain > most
        upto = f" and at most {most:g}" if most < LARGEST or above else ""
        other = f", or {beside}" if beside else ""
        raise ParameterError(f"{name}={value!r} must be {what} of at least {least:g}{upto}{other}")
    return value


def one_of(name: str, value: Any, choices: Collection[str | None], beside: str = "") -> Any:
    """One of the given names; ``beside`` says what else would do."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        known = ", ".join(map(repr, choices)) + (f" or {beside}" if beside else "")
        raise ParameterError(f"{name}={value!r} must be one of {known}")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False, and nothing that only looks like it."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name}={value!r} must be True or False")
    return bool(value)


def per_task(name: str, value: float | Sequence[float] | Array, n_tasks: int) -> Array:
    """One number for every task, from one number or a sequence of them."""
    try:
        values = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ParameterError(f"{name}={value!r} must be one number, or one per task") from None
    if values.ndim == 0:
        values = np.full(n_tasks, float(values))
    if values.shape != (n_tasks,):
        raise ParameterError(f"{name} has {values.size} values for n_tasks={n_tasks}")
    return values
