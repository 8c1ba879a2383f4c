"""``--report``: a model and what it came to, as one HTML file."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from ...estimators.base import LinearModel
from ...evaluation import Evaluation, evaluate
from ...explore.model import description
from ...explore.report import write_report
from ...model_file import Run
from ...tasks import FileStream
from ..record import seconds_of
from .outputs import waiting


def write_page(
    path: Path,
    model: LinearModel,
    run: Run | None,
    file: Path,
    found: Evaluation | None,
    on: str = "test",
) -> None:
    """Everything there is to show of a model, with the command that was typed."""
    command = shlex.join(["conche", *sys.argv[1:]])
    took = seconds_of(file)
    shown = description(model, run, file, seconds=took, found=found, command=command, on=on)
    write_report(shown, path)


def write_training_page(
    path: Path, model: LinearModel, run: Run, file: Path, stream: FileStream
) -> None:
    """The same after training, with the errors on the tasks that were learnt, which are read once
    more; not where nodes are elsewhere and nobody else reads their columns."""
    found = None
    if model.network == "local":
        with waiting("looking at all tasks again"):
            found = evaluate(model, run, stream)
    write_page(path, model, run, file, found, "training")
