"""Ranks of one MPI job: what they share, and how they end together."""

from __future__ import annotations

import sys
from typing import Any

from threadpoolctl import threadpool_limits

from ..common.launch import end_all
from ..common.threads import available


def mpi_type(dtype: Any) -> Any:
    """MPI's own name for a kind of numbers."""
    from mpi4py.util.dtlib import from_numpy_dtype

    return from_numpy_dtype(dtype)


def mpi_module() -> Any:
    """mpi4py, which is imported where it is needed."""
    from mpi4py import MPI

    return MPI


def share_cores(comm: Any) -> tuple[int, int]:
    """Ranks of one machine share its cores; each with all of them would fight. Answers how many
    this one has, and which of the ranks it is, so that they share its GPUs too."""
    near = comm.Split_type(mpi_module().COMM_TYPE_SHARED)
    cores = max(1, available() // near.Get_size())
    threadpool_limits(cores, user_api="blas")
    place = int(near.Get_rank())
    near.Free()
    return cores, place


def guard() -> None:
    """From here on an error that nobody catches on one rank ends all of them, after it is told;
    without it, the others would wait for that rank in a sum for ever."""
    if getattr(sys.excepthook, "ends_all", False):
        return
    tell = sys.excepthook

    def told(*error: Any) -> None:
        tell(*error)
        end_all(1)

    told.ends_all = True  # type: ignore[attr-defined]  # a mark for the next call
    sys.excepthook = told
