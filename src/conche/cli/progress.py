"""A progress bar on a terminal, and nothing at all in a file or a pipe."""

from __future__ import annotations

from typing import Any

from rich.progress import Progress

from .console import Console


def quiet_progress(*columns: Any, console: Console | None = None) -> Progress:
    """A bar that is gone when it is done; ``columns`` are rich's. It is on stderr, unless something
    is printed to a terminal meanwhile: then on that ``console``, where the two take turns."""
    if console is None or not console.is_terminal:
        console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
