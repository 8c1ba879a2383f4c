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
from ...node_stream import NodeStream
from ...training import Stream
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
    shown = description(model, run, file, seconds=took, found=found, on=on)
    write_report(shown, path, command)


def write_training_page(
    path: Path, model: LinearModel, run: Run, file: Path, stream: Stream
) -> None:
    """The same after training, with the errors on the tasks that were learnt, which are read once
    more: here, or by nodes that have files of their own. Not where nodes are elsewhere and were
    sent their columns."""
    found = None
    if model.network == "local" or isinstance(stream, NodeStream):
        with waiting("looking at all tasks again"):
            found = evaluate(model, run, stream)
    write_page(path, model, run, file, found, "training")
