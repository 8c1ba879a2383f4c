"""Run the command line. Exit status 0 done, 1 a check failed, 2 bad usage or bad input."""

from __future__ import annotations

import os
import sys
import time
import warnings
from typing import Any

import typer

from ..network.base import NodeError
from ..network.mpi import end_all, launched_rank, wait_for_all
from . import streams, study  # noqa: F401  # their commands
from .app import app


def main() -> None:
    """Run the command line; bad input is one line on stderr and exit status 2."""
    warnings.showwarning = _warn
    if launched_rank():  # on MPI only the first rank speaks
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except Exception as error:
        _fail(error)


def _fail(error: Exception) -> None:
    """One line and exit status 2. Of several ranks the first speaks, and ends all of them; another
    one speaks only if the first does not, because nothing is wrong there."""
    line = f"conche: {_one_line(error)}"
    rank = launched_rank()
    if isinstance(error, NodeError):  # all ranks know: the first speaks, and fails, for all
        if not rank:
            print(line, file=sys.stderr, flush=True)
        wait_for_all()
        sys.exit(0 if rank else 2)
    if rank:
        time.sleep(2)
        line = f"{line} (rank {rank})"
    print(line, file=sys.stderr)
    end_all(2)
    sys.exit(2)


def _warn(message: Any, category: Any, *where: Any, **more: Any) -> None:
    """Our own warnings, one line each; overflows show in the results, or end the run."""
    if not issubclass(category, RuntimeWarning | DeprecationWarning | FutureWarning):
        print(f"conche: {' '.join(str(message).split())}", file=sys.stderr)


def _one_line(error: Exception) -> str:
    """What is wrong, for the errors that a user can cause; any other is ours, and is raised."""
    if hasattr(error, "format_message"):  # of the option parser
        message = str(error.format_message())
    elif isinstance(error, typer.Abort):
        message = "interrupted"
    elif isinstance(error, MemoryError):
        message = "not enough memory for that"
    elif isinstance(error, ValueError | ArithmeticError | OSError | RuntimeError):
        message = str(error)
    else:
        raise error
    return " ".join(message.split())
