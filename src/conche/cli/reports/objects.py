"""``--json``: one object on standard output."""

from __future__ import annotations

import json
from typing import Any

from ...common.plain import defined


def print_object(fields: dict[str, Any]) -> None:
    """Print it as JSON; numbers that are infinite or undefined are null."""
    print(json.dumps(defined(fields), allow_nan=False))
