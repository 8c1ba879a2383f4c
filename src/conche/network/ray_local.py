"""Ray on this machine alone: on the loopback interface, in a folder of its own that goes with it.

Ray leaves its logs behind, in folders that anybody may write to. Ours are inside a folder that
nobody else can look into, and are removed at the end; what an owner who was killed has left is
removed by the next to start. The token without which nobody can connect is this process's own.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..common.locks import new_locked, ownerless, private_folder
from ..errors import ParameterError

LONGEST = 44  # characters of the folder's path: a socket's in it must stay within 107
ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # "0": Ray is to be on this machine alone
TOKEN = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")  # where a user may have one


def start() -> None:
    """Start Ray."""
    loopback_only()
    _own_token()
    import ray

    options: dict[str, Any] = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    options["_temp_dir"] = str(_folder())
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # one of several is told by us
    with own_handler():
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)


@contextmanager
def own_handler() -> Iterator[None]:
    """Ray takes SIGTERM for itself when it starts; a handler of the program's own stays."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if callable(before) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def loopback_only() -> None:
    """Ray binds its ports to every interface unless it is told that there are to be no clusters:
    by the environment before it is imported, by this constant afterwards."""
    os.environ[ALONE] = "0"
    if "ray" in sys.modules:
        sys.modules["ray"]._private.ray_constants.ENABLE_RAY_CLUSTER = False


def _own_token() -> None:
    """A token of our own, unless the user has said which: Ray would write one to the home folder,
    for everybody to read. One that is there from before is closed to others."""
    default = Path.home() / ".ray" / "auth_token"
    try:
        if default.stat().st_mode & 0o077:
            default.chmod(0o600)
    except OSError:  # none, or not ours to change
        pass
    if not any(name in os.environ for name in (*TOKEN, "RAY_AUTH_MODE")):
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        if "ray" in sys.modules:  # it may have looked for one already
            raylet: Any = sys.modules["ray._raylet"]
            raylet.Config.initialize("")
            raylet.AuthenticationTokenLoader.instance().reset_cache()


def _folder() -> Path:
    """A new folder for Ray's files, to be removed when this process ends."""
    where, name = Path(tempfile.gettempdir()), f"conche-{os.getuid()}"
    if len(f"{where}/{name}/12345678") > LONGEST:
        where = Path("/tmp")
    ours = private_folder(where, name) or Path(tempfile.mkdtemp(dir=where))
    for left, _ in ownerless(ours, "", ".lock"):
        _remove(left.with_suffix(""), left)
    lock, _ = new_locked(ours, "", ".lock")  # before there is a folder; held as long as we live
    folder = lock.with_suffix("")
    folder.mkdir(mode=0o700)
    atexit.register(_end, os.getpid(), folder, lock)
    return folder


def _end(owner: int, folder: Path, lock: Path) -> None:
    if os.getpid() != owner:  # a forked child
        return
    import ray

    ray.shutdown()
    _remove(folder, lock)


def _remove(folder: Path, lock: Path) -> None:
    """The lock last: whoever is killed in between leaves both for the next."""
    shutil.rmtree(folder, ignore_errors=True)
    lock.unlink(missing_ok=True)


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
