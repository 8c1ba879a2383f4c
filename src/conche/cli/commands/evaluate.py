"""``conche evaluate``: a model and test tasks in, the error matrix out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ParameterError
from ..options import (
    JSON,
    NETWORK,
    PLAIN_KEYS,
    ROWS,
    SEPARATOR,
    TARGET,
    TASK_COLUMN,
    WIDE,
    argument,
    command,
    flag,
    option,
    refuse_for_nodes,
    refuse_said,
    separator,
    target_of,
)

if TYPE_CHECKING:
    from ...estimators.base import LinearModel
    from ...node_stream import NodeStream
    from ...training import Stream


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Options of ``conche evaluate``."""

    model: Path = argument("A model that conche train wrote.")
    stream: str = argument("Test tasks: folder or glob, one file per task. Or a .toml file.")
    target: str | None = option(TARGET)
    task_column: str | None = option(TASK_COLUMN)
    separator: str = option(SEPARATOR, ",")
    offline: str | None = option(
        "Training stream: beside it, what all of it at once gives: ridge and least squares."
    )
    metric: str | None = option(
        "Instead of error rate or mean squared error: accuracy, balanced-accuracy, macro-f1, "
        "log-loss, auc; mae, r2."
    )
    network: str = option(NETWORK, "local")
    rows: str = option(ROWS, "all")
    plain_keys: bool = flag("--plain-keys", PLAIN_KEYS)
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
    from ...tasks.stream_file import is_description
    from ..reports import matrix, outputs, pages, streams

    if options.plot is not None:
        outputs.check_writable(options.plot, outputs.FORMATS)
    if options.report is not None:
        outputs.check_writable(options.report, outputs.PAGES)
    there = None
    if is_description(options.stream):
        there = _there(options)
    model, run = load_run(options.model, "local" if there is None else there.network)
    test: Stream
    test, training = _streams(options, model) if there is None else (there.of_model(model), None)
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


def _there(options: Evaluate) -> NodeStream:
    """Test tasks whose nodes have files of their own; placed before a model is."""
    from ...node_stream import NodeStream

    refuse_said(options, ("target", "task_column"))
    if options.offline is not None:
        raise ParameterError("--offline: least squares needs all columns in one place")
    network, rows = options.network, options.rows
    return NodeStream(options.stream, network, rows=rows, plain_keys=options.plain_keys)


def _streams(options: Evaluate, model: LinearModel) -> tuple[Stream, Stream | None]:
    """The test tasks, and the training tasks beside them, if asked for."""
    from ...tasks import FileStream, Reading

    names = getattr(model, "feature_names_in_", None)
    missing = "keep" if model.missing == "mean" else "refuse"
    refuse_for_nodes(options)
    target = target_of(options)
    if names is not None and target in names:
        raise ParameterError(f"--target {target}: that is a column the model predicts from")
    same: dict[str, Any] = {
        "target": target,
        "task_column": options.task_column,
        "missing": missing,
        "reading": Reading(separator(options.separator)),
    }
    test = FileStream(options.stream, **same).of_model(names)
    if options.offline is None:
        return test, None
    return test, FileStream(options.offline, **same).of_model(names)
