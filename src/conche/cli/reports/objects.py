"""``--json``: one object on standard output."""

from __future__ import annotations

import json
import math
from typing import Any


def print_object(fields: dict[str, Any]) -> None:
    """Print it as JSON; numbers that are infinite or undefined are null, for which JSON has no
    other word."""
    print(json.dumps(_defined(fields), allow_nan=False))


def _defined(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _defined(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_defined(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
