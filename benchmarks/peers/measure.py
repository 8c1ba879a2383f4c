"""One method at a time, in a process of its own: its seconds, its memory, and what it found."""

from __future__ import annotations

import multiprocessing
import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

LONG = 5.0  # seconds that one run is enough for
LIMIT = 150.0  # seconds that a method may take in all


class Measured(NamedTuple):
    """``reason`` is why there is nothing else."""

    seconds: float = float("nan")
    memory: float = float("nan")  # bytes beyond what the process had before
    found: Any = None
    reason: str = ""


def alone(make: Callable[[], Callable[[], tuple[float, Any]]], limit: float = LIMIT) -> Measured:
    """What ``make`` makes ready (imports, compilations) is run in a fork of this process; it
    answers its own seconds and what it found."""
    ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_run, args=(make, theirs))
    child.start()
    theirs.close()
    try:
        if not ours.poll(limit):
            return Measured(reason=f"more than {limit:.0f} s")
        return Measured(*ours.recv())
    except EOFError:
        return Measured(reason="the process ended")
    finally:
        child.kill()
        child.join()


def _run(make: Callable[[], Callable[[], tuple[float, Any]]], pipe: Any) -> None:
    warnings.simplefilter("ignore")
    try:
        ready = make()
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
        before = _status("VmRSS")
        seconds, found = ready()
        pipe.send(Measured(seconds, max(_status("VmHWM") - before, 0.0), found))
    except ImportError as error:
        pipe.send(Measured(reason=f"not installed ({error.name})"))
    except Exception as error:
        first = str(error).strip().splitlines() or [""]
        pipe.send(Measured(reason=f"{type(error).__name__}: {first[0][:60]}"))


def _status(name: str) -> float:
    found = re.search(rf"{name}:\s*(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024.0 * float(found[1])


def timed(call: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Its seconds, the least of some runs where they are short, and its answer."""
    best, answer = float("inf"), None
    for _ in range(repeats):
        clock = time.perf_counter()
        answer = call()
        best = min(best, time.perf_counter() - clock)
        if best > LONG:
            break
    return best, answer


def table(head: list[str], rows: list[list[str]]) -> str:
    """As Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def megabytes(x: float) -> str:
    return f"{x / 1e6:.0f} MB" if x >= 1e6 else f"{x / 1e3:.1f} kB"
