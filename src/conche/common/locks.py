"""Names that belong to whoever is alive: a file that is locked from its first moment.

Whoever makes such a file holds its lock until it is renamed or removed; the system lets go of the
lock when the owner dies, however it dies. So a file whose lock is free belongs to nobody.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path


def new_locked(folder: Path, prefix: str, suffix: str, mode: int = 0o666) -> tuple[Path, int]:
    """A new file that nobody has, and its descriptor with the lock."""
    while True:
        path = folder / f"{prefix}{secrets.token_hex(4)}{suffix}"
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        descriptor = os.open(path, flags, mode)
        if lock(descriptor) is not False and is_at(path, descriptor):
            return path, descriptor
        os.close(descriptor)  # removed between its first moment and its lock: try another


def ownerless(folder: Path, prefix: str, suffix: str) -> Iterator[tuple[Path, int]]:
    """Files of ours whose owners have died, each with its lock while the caller looks at it."""
    for path in folder.glob(f"{prefix}*{suffix}"):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            ours = os.fstat(descriptor).st_uid == os.getuid()
            if ours and lock(descriptor) and is_at(path, descriptor):
                yield path, descriptor
        finally:
            os.close(descriptor)


def lock(descriptor: int) -> bool | None:
    """Take the lock, unless somebody has it; None where the file system knows no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except OSError:
        return False


def private_folder(parent: Path, name: str) -> Path | None:
    """A folder of ours that nobody else can look into; None where somebody has taken its name."""
    path = parent / name
    path.mkdir(mode=0o700, exist_ok=True)
    found = os.stat(path, follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return None
    os.chmod(path, 0o700)
    return path
