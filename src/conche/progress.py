"""A progress bar on a terminal, and nothing at all in a file or a pipe."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import Progress


def quiet_progress(*columns: Any) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
