"""``conche evaluate``: a model and test tasks in, the error matrix out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ParameterError
from ..options import (
    JSON,
    SEPARATOR,
    TARGET,
    TASK_COLUMN,
    WIDE,
    argument,
    command,
    flag,
    option,
    required,
    separator,
)


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Options of ``conche evaluate``."""

    model: Path = argument("A model that conche train wrote.")
    stream: str = argument("Test tasks: folder or glob, one file per task.")
    target: str = required(TARGET)
    task_column: str | None = option(TASK_COLUMN)
    separator: str = option(SEPARATOR, ",")
    offline: str | None = option("Training stream: beside it, least squares on all of it at once.")
    metric: str | None = option(
        "Instead of error rate or mean squared error: accuracy, balanced-accuracy, macro-f1, "
        "log-loss, auc; mae, r2."
    )
    json: bool = flag("--json", JSON)
    wide: bool = flag("--wide", WIDE)
    plot: Path | None = option("Draw the error matrix here.")
    report: Path | None = option("Write a page with figures and tables, in one HTML file.")


@command(Evaluate)
def evaluate(options: Evaluate) -> None:
    """Test a model on every task: the error matrix, its average, and forgetting.

    conche evaluate model.conche test/ --target pm25 --offline train/ --report report.html
    """
    from ... import evaluation
    from ...model_file import load_run
    from ...tasks import FileStream, Reading
    from ..reports import matrix, outputs, pages, streams

    if options.plot is not None:
        outputs.check_writable(options.plot, outputs.FORMATS)
    if options.report is not None:
        outputs.check_writable(options.report, outputs.PAGES)
    model, run = load_run(options.model)
    names = getattr(model, "feature_names_in_", None)
    if names is not None and options.target in names:
        raise ParameterError(f"--target {options.target}: that is a column the model predicts from")
    same: dict[str, Any] = {
        "target": options.target,
        "task_column": options.task_column,
        "missing": "keep" if model.missing == "mean" else "refuse",
        "reading": Reading(separator(options.separator)),
    }
    test = FileStream(options.stream, **same).of_model(names)
    training = None
    if options.offline is not None:
        training = FileStream(options.offline, **same).of_model(names)
    with outputs.waiting("evaluating"):
        found = evaluation.evaluate(model, run, test, training, options.metric)
    if options.json:
        streams.print_evaluation_json(found)
    else:
        streams.print_evaluation(found, options.wide)
    if options.plot is not None:  # last: a full disk must not cost the table
        matrix.draw_evaluation(found, options.plot)
        if not options.json:
            print(f"error matrix: {options.plot}")
    if options.report is not None:
        pages.write_page(options.report, model, run, options.model, found)
        if not options.json:
            print(f"report: {options.report}")
