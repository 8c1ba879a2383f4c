"""Before and while something is made that people will see."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import ParameterError
from ..console import Console

FORMATS = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")


def waiting(what: str) -> Any:
    """A spinner on the terminal while something takes its time; nothing in a file or a pipe."""
    return Console(stderr=True).status(f"{what} ...")


def check_writable(path: Path, suffixes: Sequence[str] = ()) -> None:
    """Before hours of work: is there a folder to write in, and is the suffix one we know?"""
    if suffixes and path.suffix.lower() not in suffixes:
        raise ParameterError(f"{path}: the name must end in {', '.join(suffixes)}")
    if path.is_dir():
        raise ParameterError(f"{path}: is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: no such folder to write {path.name} in")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path.parent}: {path.name} cannot be written here")
