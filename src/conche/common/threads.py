"""BLAS's own threads: when they help, and when they are in the way."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _blas() -> Any:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """BLAS held to one thread, in the whole process."""
    controller = _blas()
    return (
        controller.limit(limits=1, user_api="blas") if controller.lib_controllers else nullcontext()
    )
