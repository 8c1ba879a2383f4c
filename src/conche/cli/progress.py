"""A progress bar on a terminal, and nothing at all in a file or a pipe."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import Progress


def quiet_progress(*columns: Any) -> Progress:
    """A bar on stderr that is gone when it is done; ``columns`` are rich's."""
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
