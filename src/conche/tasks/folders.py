"""Which files a stream has, and in which order."""

from __future__ import annotations

import glob
import re
from pathlib import Path

from ..errors import StreamError
from .tables import SUFFIXES, suffix_of, task_name


def natural(file: Path) -> tuple[list[str | int], str]:
    """What names are ordered by: numbers in them are compared as numbers, so 2 comes before 10.

    >>> sorted([Path("10.csv"), Path("2.csv")], key=natural)
    [PosixPath('2.csv'), PosixPath('10.csv')]
    """
    parts = re.split(r"(\d+)", file.name)
    return [int(part) if i % 2 else part for i, part in enumerate(parts)], file.name


def stream_files(stream: str | Path) -> list[Path]:
    """The files of a stream, one per task, in the natural order of their names."""
    try:
        files = _there(stream)
    except OSError as error:
        where = error.filename or stream
        raise StreamError(f"{where}: cannot be read ({error.strerror})") from None
    if not files:
        raise StreamError(f"{stream}: no {', '.join(SUFFIXES)} files there")
    by_name: dict[str, Path] = {}
    for file in files:
        other = by_name.setdefault(task_name(file), file)
        if other is not file:
            raise StreamError(f"{file}: the same task as {other.name}, a second time")
    return files


def _there(stream: str | Path) -> list[Path]:
    path = Path(stream)
    if not path.exists() and not any(sign in str(stream) for sign in "*?["):
        raise StreamError(f"{stream}: no such file or folder")
    found = path.iterdir() if path.is_dir() else map(Path, glob.glob(str(stream)))
    return sorted((f for f in found if suffix_of(f) and f.is_file()), key=natural)
