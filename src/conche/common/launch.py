"""Several processes of one job: which of them this is, and how they end together."""

from __future__ import annotations

import os
import sys
import time


def launched_rank() -> int | None:
    """This process's rank as its launcher told it, before any MPI is imported; None without one."""
    for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def launched_size() -> int | None:
    """How many processes its launcher says there are; None without one."""
    for name in ("PMI_SIZE", "PMIX_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def wait_for_all() -> None:
    """Until every rank of the job, if this is one, is here: the launcher ends a job with its first
    rank that fails, and another may have something to say yet."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None:
        mpi.COMM_WORLD.Barrier()


def end_all(status: int) -> None:
    """End every rank of the job, if this is one; others may be waiting for us in a sum."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.COMM_WORLD.Get_size() > 1:
        sys.stderr.flush()
        time.sleep(0.5)  # the launcher drops what it has not passed on when the job is aborted
        mpi.COMM_WORLD.Abort(status)
