"""Masked arrays of NumPy's, whose masks most functions drop in silence."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.words import counted
from ..errors import DataError


def unmasked(values: Any, what: str, gaps: bool = False, remedy: str = "") -> Any:
    """As a plain array, with NaN for what is masked if there may be ``gaps``; anything but a masked
    array as it is.

    Examples
    --------
    >>> unmasked(np.ma.masked_equal([1, 2], 2), "X", gaps=True)
    array([ 1., nan])
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    masked = np.ma.getmaskarray(values)
    if not masked.any():
        return values.data
    if not gaps:
        first = np.argwhere(masked)[0].tolist()
        place = f"row {first[0]}" + (f", column {first[1]}" if len(first) > 1 else "")
        remedy = remedy or "leave these rows out"
        raise DataError(
            f"{what} has {counted(int(masked.sum()), 'masked value')} (first at {place}); {remedy}"
        )
    return np.where(masked, np.float32(np.nan), values.data)
