"""The command line, as a user runs it."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

CONCHE = [sys.executable, "-m", "conche"]


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """In a process of its own."""
    command = [*CONCHE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)


class Done(NamedTuple):
    """What is left of a command that was run in this process."""

    returncode: int
    stdout: str
    stderr: str


def run_here(*arguments: object, cwd: Path | None = None) -> Done:
    """In this process: starting another takes longer than most of the work."""
    from conche.cli import main

    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["conche", *map(str, arguments)]),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return Done(int(ended.value.code or 0), out.getvalue(), err.getvalue())
