"""How a run is stopped from outside, and with which exit status it ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Stopped(KeyboardInterrupt):
    """An interrupt, with the line that says what was learnt and how to go on."""

    word = "interrupted"
    status = 130  # as shells have it: 128 and the number of SIGINT


class Terminated(Stopped):
    """The same by SIGTERM, which `kill`, `timeout` and schedulers send."""

    word = "terminated"
    status = 143


@contextmanager
def terminable() -> Iterator[None]:
    """While something is learnt that would be lost, SIGTERM is an interrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise Terminated(Terminated.word)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
