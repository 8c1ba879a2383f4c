"""Values as JSON has them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def defined(value: Any) -> Any:
    """The same with lists for arrays; numbers that are infinite or undefined are None, for which
    JSON has no other word.

    >>> defined({"errors": np.array([1.0, np.inf]), "nodes": (1, 2)})
    {'errors': [1.0, None], 'nodes': [1, 2]}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: defined(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [defined(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
