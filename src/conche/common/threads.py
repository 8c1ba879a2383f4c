"""Threads: how many are ours to use, and when BLAS's own are in the way.

BLAS's threads wait for more work for a while after each product, and every product waits for the
slowest of them. On small tasks that costs more than it gains, and on cores that others use as well
several times as much (docs/scaling.md). So a small task is learnt with one BLAS thread.

NumPy and SciPy often come with a BLAS each, and the threads of the one are still waiting when the
other begins. So SciPy's, which factorises, has one thread unless that takes long, even where
products have several.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

WORTH_ALL_CORES = 1 << 22  # entries of X: 32 MB
WORTH_ALL_PRODUCTS = 3 << 30  # of a Gram matrix of its shorter side: 60 ms
WORTH_ALL_FACTORS = 2048  # rows of what is factorised: 60 ms
SETTINGS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"


def available() -> int:
    """Cores that this process may use; fewer where the environment says so."""
    asked = [os.environ.get(name, "") for name in SETTINGS]
    numbers = [int(text) for text in asked if text.isdecimal() and int(text) > 0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min([cores or 1, *numbers])


def deserved(X: Any, n_threads: int | None = None) -> int:
    """BLAS threads for a task with these columns."""
    stored = getattr(X, "nnz", None)
    if stored is None:
        entries = X.shape[0] * X.shape[1]
        large = entries >= WORTH_ALL_CORES or entries * min(X.shape) >= WORTH_ALL_PRODUCTS
    else:
        large = stored >= WORTH_ALL_CORES
    return (n_threads or available()) if large else 1


def deserved_by_factors(X: Any, n_threads: int | None = None) -> int:
    """BLAS threads for factors of a task with these columns."""
    return (n_threads or available()) if min(X.shape) >= WORTH_ALL_FACTORS else 1


def factoring(n: int) -> int:
    """BLAS threads for factors of a matrix of so many rows."""
    return available() if n >= WORTH_ALL_FACTORS else 1


@contextmanager
def blas_threads(most: int, factors: int | None = None) -> Iterator[None]:
    """BLAS held to so many threads, in the whole process; SciPy's own, where it has one, to so many
    for ``factors``. Of several that are under way at once, the lowest counts. Never more than there
    were."""
    limit = (most, most if factors is None else min(most, factors))
    hold = _hold()
    hold.change(limit, 1)
    try:
        yield
    finally:
        hold.change(limit, -1)


class _Hold:
    """BLAS's libraries, how many threads they had, and all limits in force."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        folders = [Path(library.filepath).parent.name for library in self.libraries]
        self.of_scipy = [folder.startswith("scipy") for folder in folders]
        self.before: list[int] = []
        self.limits: dict[tuple[int, int], int] = {}

    def change(self, limit: tuple[int, int], by: int) -> None:
        """One more, or one less, who wants no more threads than that: of all, and of SciPy's."""
        with self.lock:
            if not self.limits:
                self.before = [library.num_threads for library in self.libraries]
            self.limits[limit] = self.limits.get(limit, 0) + by
            self.limits = {limit: count for limit, count in self.limits.items() if count}
            each = zip(self.libraries, self.before, self.of_scipy, strict=True)
            for library, had, scipys in each:
                library.set_num_threads(min([had, *(limit[scipys] for limit in self.limits)]))


@cache
def _hold() -> _Hold:
    return _Hold()


if hasattr(os, "register_at_fork"):  # nobody in a forked child will give back its parent's lock
    os.register_at_fork(after_in_child=_hold.cache_clear)
