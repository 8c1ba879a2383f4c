"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from .locks import new_locked, ownerless


def write_atomically(path: str | os.PathLike[str], data: bytes, mode: int = 0o666) -> None:
    """Write beside the target, then rename: a reader sees the old file or the new one.

    ``mode``: who may read and write it, from its first moment; as everywhere, less the umask.

    What a writer of the same file has left beside it, because it was killed, is removed.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: no such folder to write {path.name} in")
    try:
        _write(path, data, mode)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None  # the file that was meant


def _write(path: Path, data: bytes, mode: int) -> None:
    prefix, suffix = f".{path.name}.", ".tmp"
    for left, _ in ownerless(path.parent, prefix, suffix):
        left.unlink(missing_ok=True)
    temporary, descriptor = new_locked(path.parent, prefix, suffix, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
