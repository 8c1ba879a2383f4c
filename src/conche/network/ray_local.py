"""Ray on this machine alone: on the loopback interface, in a folder of its own that goes with it.

Ray leaves its logs behind. Ours are in a folder that is removed at the end; one whose owner was
killed is removed by the next to start (its lock is free).
"""

from __future__ import annotations

import atexit
import fcntl
import logging
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

from ..errors import ParameterError

PREFIX = "conche-ray-"
LONGEST = 30  # characters of a folder's name: a socket's whole path must stay within 107


def start() -> None:
    """Start Ray."""
    loopback_only()
    import ray

    options: dict[str, Any] = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    options["_temp_dir"] = str(_folder())
    ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)


def loopback_only() -> None:
    """Ray binds its ports to every interface unless it is told that there are to be no clusters:
    by the environment before it is imported, by this constant afterwards."""
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    if "ray" in sys.modules:
        sys.modules["ray"]._private.ray_constants.ENABLE_RAY_CLUSTER = False


def _folder() -> Path:
    """A new folder for Ray's files, to be removed when this process ends."""
    where = tempfile.gettempdir()
    if len(where) > LONGEST:
        where = "/tmp"
    for file in Path(where).glob(f"{PREFIX}*/lock"):
        ours = file.parent.stat().st_uid == os.getuid()
        if ours and (lock := _lock(file)) is not None:
            _remove(file.parent, lock)
    new = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where))
    atexit.register(_end, os.getpid(), new, _lock(new / "lock"))
    return new


def _lock(path: Path) -> IO[str] | None:
    """The lock, if nobody alive has it."""
    try:
        file = open(path, "a")  # noqa: SIM115 it is to stay open
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def _end(owner: int, folder: Path, lock: IO[str] | None) -> None:
    if os.getpid() != owner:  # a forked child
        return
    import ray

    ray.shutdown()
    _remove(folder, lock)


def _remove(folder: Path, lock: IO[str] | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        lock.close()


def check_address(address: str | None, running: str) -> None:
    """One process has one Ray: another address than its must not be ignored."""
    if address in (None, "auto", "local") or "://" in str(address):
        return
    host, _, port = str(address).rpartition(":")
    try:
        asked = f"{socket.gethostbyname(host)}:{port}"
    except OSError:
        asked = address
    if running not in (address, asked):
        raise ParameterError(f"Ray runs here already, at {running}: not at address={address!r}")
