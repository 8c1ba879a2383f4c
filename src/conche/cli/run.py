"""Run the command line.

Exit status: 0 done, 1 a check failed, 2 bad usage or bad input, 70 a bug of ours, 130 interrupted,
143 terminated.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import typer

from ..common.launch import end_all, launched_rank, wait_for_all
from ..common.words import in_line, one_line
from ..errors import ConcheError, NodeError
from . import commands  # noqa: F401  # each hangs itself on the app
from .app import app
from .stops import Stopped
from .words import in_options

BAD_INPUT, BUG = 2, 70  # 70 is EX_SOFTWARE of sysexits.h


def run(arguments: Sequence[str]) -> NoReturn:
    """Run one command and exit; a failure is one line on stderr, and with --debug its traceback."""
    warnings.showwarning = _warn
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # we tell one of several ourselves
    if launched_rank():  # on MPI only the first rank speaks
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    try:
        wanted = [argument for argument in arguments if argument != "--debug"]
        defaults = {"train": configured(wanted)} if "train" in wanted[:1] else None
        work = app(wanted, prog_name="conche", standalone_mode=False, default_map=defaults)
        status = work() if callable(work) else work  # not callable: --help and --version
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in arguments:
            traceback.print_exception(error)
        _fail(error)
    sys.exit(status or 0)


def configured(arguments: Sequence[str]) -> dict[str, Any]:
    """The options of a file that ``--config`` names: defaults for those that are not given."""
    from .commands.train import Train
    from .record import read_record

    for i, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == "--config" and (equals or i + 1 < len(arguments)):
            return read_record(Path(value if equals else arguments[i + 1]), Train)
    return {}


def _fail(error: BaseException) -> NoReturn:
    """One line and the exit status.

    Of several ranks the first speaks, and ends all of them; another one speaks only if the first
    does not, because nothing is wrong there.
    """
    said, status = _verdict(error)
    rank = launched_rank()
    if isinstance(error, NodeError):  # all ranks know: the first speaks, and fails, for all
        if not rank:
            _tell(said)
        wait_for_all()
        sys.exit(0 if rank else status)
    if rank:
        time.sleep(2)
        said = f"{said} (rank {rank})"
    _tell(said)
    end_all(status)
    sys.exit(status)


def _verdict(error: BaseException) -> tuple[str, int]:
    """What to say, and whose fault it is: the user's, who gets status 2, or ours."""
    if isinstance(error, BrokenPipeError):  # nobody reads on, and that is all right
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "", 0
    if hasattr(error, "format_message"):  # of the option parser, whose classes typer hides
        said = " ".join(str(error.format_message()).split())
        if said.startswith("Got unexpected extra argument"):  # the shell has listed the files
            said += "; a pattern such as 'months/*.csv' needs quotes"
        return said, BAD_INPUT
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return str(error) or Stopped.word, getattr(error, "status", Stopped.status)
    if isinstance(error, MemoryError):
        return "not enough memory for that", BAD_INPUT
    if isinstance(error, ConcheError | OSError):
        return in_options(one_line(error)), BAD_INPUT
    name, message = type(error).__name__, " ".join(str(error).split())
    return f"this is a bug in Conche ({name}: {message}); --debug shows the traceback", BUG


def _tell(said: str) -> None:
    if said:  # the option parser has nothing to add where it has just shown the help
        print(f"conche: {said}", file=sys.stderr, flush=True)


def _warn(message: Any, category: Any, *where: Any, **more: Any) -> None:
    """Our own warnings, one line each; overflows show in the results, or end the run."""
    if not issubclass(category, RuntimeWarning | DeprecationWarning | FutureWarning):
        _tell(in_options(in_line(str(message))))
