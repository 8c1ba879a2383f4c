"""Training, evaluation and predictions, as people see them."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from ...common.atomic import write_atomically
from ...common.extras import need
from ...common.words import counted, number
from ...errors import ParameterError
from ...evaluation import Evaluation, Predictions, mean_of
from ...tasks import FileStream
from ...training import Report
from ..progress import quiet_progress
from .objects import print_object

MANY = 6  # tasks that fit across a screen
FEW_VALUES = 20  # of a target, which may be labels


def check_writable(path: Path, suffixes: Sequence[str] = ()) -> None:
    """Before hours of work: is there a folder to write in, and is the suffix one we know?"""
    if suffixes and path.suffix.lower() not in suffixes:
        raise ParameterError(f"{path}: the name must end in {', '.join(suffixes)}")
    if path.is_dir():
        raise ParameterError(f"{path}: is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: no such folder to write {path.name} in")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path.parent}: {path.name} cannot be written here")


def hints(stream: FileStream, y: Any, labels: bool) -> None:
    """What users may not have meant, said before they wait for it."""
    console = Console(highlight=False, style="dim")
    for note in stream.notes:
        console.print(note, markup=False, soft_wrap=True)
    few = np.unique(y) if y.dtype.kind in "biuf" and not labels else np.arange(0)
    if 2 <= len(few) <= min(FEW_VALUES, len(y) // 5) and np.all(few == np.round(few)):
        console.print(
            f"the target {stream.target!r} has {len(few)} values, all whole numbers: --classify "
            f"would learn them as labels",
            markup=False,
            soft_wrap=True,
        )


@contextmanager
def learning(names: Sequence[str], seen: int, labels: bool) -> Iterator[Report]:
    """One line a task, and a bar with the time that is left."""
    console = Console(highlight=False)
    what = "error rate" if labels else "mean squared error"
    width = max(len("task"), *(len(name) for name in names))
    if len(names) > 1:
        console.print(f"{len(names)} tasks, {names[0]} to {names[-1]}", markup=False)
    if seen:
        said = f"going on after {names[seen - 1]}: {seen} of {len(names)} were learnt"
        console.print(said, markup=False, soft_wrap=True)
    console.print(
        f"{'task':<{width}}  {'samples':>8}  {'before':>9}  {'after':>9}  {'seconds':>8}  "
        f"{'MB sent':>8}  {'above offline':>13}    ({what} before and after it was learnt)",
        style="dim",
        soft_wrap=True,
    )
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with quiet_progress(*columns, TimeRemainingColumn(), console=console) as progress:
        bar = progress.add_task("learning", total=len(names), completed=seen)

        def report(name: str, record: Mapping[str, Any], new: list[str]) -> None:
            if new:
                more = f", {new[1]}" + (", ..." if len(new) > 2 else "") if len(new) > 1 else ""
                said = f"{name}: {counted(len(new), 'new column')}: {new[0]}{more}"
                console.print(said, markup=False, soft_wrap=True)
            console.print(
                f"{name:<{width}}  {record['samples']:>8}  {number(record['before']):>9}  "
                f"{number(record['after']):>9}  {record['seconds']:>8.2f}  "
                f"{record['bytes'] / 1e6:>8.2f}  {_above(record['gap']):>13}",
                markup=False,
                soft_wrap=True,
            )
            progress.advance(bar)

        yield report


def _above(gap: float) -> str:
    """How far the offline objective is above its minimum, as a share of it."""
    if np.isinf(gap):
        return "unknown"
    return "0" if gap < 1e-9 else f"{gap:.2%}"


def trained(model: Any, out: Path) -> None:
    """The last line: what was written."""
    sizes = model.partition_.sizes
    width = f"{min(sizes)} to {max(sizes)}" if min(sizes) < max(sizes) else str(min(sizes))
    console = Console(highlight=False)
    console.print(
        f"{out}: {type(model).__name__}, {counted(model.n_tasks_seen_, 'task')}, "
        f"{counted(len(sizes), 'node')} of {width} columns",
        markup=False,
        soft_wrap=True,
    )


def print_evaluation(found: Evaluation) -> None:
    """The error matrix, or as much of it as fits across a screen, and what it comes to."""
    console = Console(highlight=False)
    values, T = found.values, len(found.tasks)
    shown = range(T) if T <= MANY else np.unique(np.linspace(0, T - 1, MANY).astype(int))
    rows = range(len(values)) if len(values) <= MANY else shown
    title = f"{found.metric.title} on each test task, after each task that was learnt"
    if T > MANY:
        title += f" ({MANY} of {T} are shown; --json has all)"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    table.add_column("after", no_wrap=True)
    for j in shown:
        table.add_column(escape(found.tasks[j]), justify="right")
    table.add_column("average", justify="right", style="bold")
    for i in rows:
        if i >= len(values):
            continue
        name = escape(found.learnt[i]) or f"{i + 1}"
        cells = [number(values[i, j]) for j in shown]
        table.add_row(name if len(values) > 1 else "all", *cells, number(mean_of(values[i])))
    if found.offline is not None:
        cells = [number(found.offline[j]) for j in shown]
        table.add_row("offline", *cells, number(mean_of(found.offline)), style="dim")
    console.print(table)
    forgetting = "" if found.forgetting is None else f", forgetting {found.forgetting:+.3f}"
    beside = ""
    if found.offline is not None:
        beside = f"; offline, all tasks at once: {number(mean_of(found.offline))}"
    console.print(f"average {number(found.average)}{forgetting}{beside}", soft_wrap=True)
    if len(values) < 2 < T:
        said = "the model's file has the last estimate alone: nothing can be said of forgetting"
        console.print(said, style="dim", soft_wrap=True)


def print_evaluation_json(found: Evaluation) -> None:
    """One object: average, forgetting, metric, tasks, the last row (``errors``, or ``scores`` where
    more is better), the whole matrix, and offline if asked for; null where nothing is defined."""
    row = "errors" if found.metric.better < 0 else "scores"
    fields: dict[str, Any] = {
        "average": found.average,
        "forgetting": found.forgetting,
        "metric": found.metric.title,
        "tasks": found.tasks,
        row: found.values[-1].tolist(),
        "matrix": found.values.tolist(),
    }
    if found.offline is not None:
        fields["offline"] = mean_of(found.offline)
        fields[f"offline_{row}"] = found.offline
    print_object(fields)


def draw_evaluation(found: Evaluation, path: Path) -> None:
    """The error matrix, and beside it the mean error over tasks; as a PNG, SVG or PDF."""
    plt = need("matplotlib.pyplot", "cli", "drawing")
    errors = found.values
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    wide = np.nanmax(errors) > 20 * max(np.nanmin(errors), 1e-300) and np.nanmin(errors) > 0
    image = left.imshow(
        errors,
        aspect="auto",
        cmap="cividis",
        interpolation="nearest",
        norm="log" if wide else None,
        extent=(0.5, errors.shape[1] + 0.5, len(errors) + 0.5, 0.5),
    )
    fig.colorbar(image, ax=left, label=found.metric.title)
    left.set(xlabel="test task", ylabel="tasks learnt", title=f"{found.metric.title} of each task")
    steps = np.arange(1, len(errors) + 1)
    means = [mean_of(row) for row in errors]
    right.plot(steps, means, color="#0072B2", marker="o", ms=3, label="this model")
    if found.offline is not None:
        level = mean_of(found.offline)
        right.axhline(level, color="black", ls="--", lw=1.2, label=f"offline: {number(level)}")
    right.set(xlabel="tasks learnt", ylabel=f"{found.metric.title}, mean over all test tasks")
    if wide:
        right.set_yscale("log")
    right.grid(alpha=0.25)
    right.legend()
    buffer = io.BytesIO()
    fig.savefig(buffer, format=path.suffix[1:].lower(), dpi=130)
    plt.close(fig)
    write_atomically(path, buffer.getvalue())


def write_predictions(found: Sequence[Predictions], model: Any, out: Path | None) -> None:
    """One row per sample, to a CSV or Parquet file or as CSV to the screen; of several files, with
    a first column that says which."""
    columns: dict[str, Any] = {}
    if len(found) > 1:
        columns["file"] = np.repeat([one.file for one in found], [len(one.values) for one in found])
    columns |= {name: np.concatenate([one.kept[name] for one in found]) for name in found[0].kept}
    values = np.concatenate([one.values for one in found])
    if values.ndim == 2:
        columns |= {f"prediction{j}": values[:, j] for j in range(values.shape[1])}
    else:
        columns["prediction"] = values
    if found[0].probabilities is not None:
        probabilities = np.concatenate([one.probabilities for one in found])
        for label, p in zip(model.classes_.tolist(), probabilities.T, strict=True):
            columns[f"p({label})"] = p
    if out is None:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(v.tolist() for v in columns.values()), strict=True))
        return
    pa, pa_csv, parquet = (
        need(f"pyarrow{part}", "files", "writing Parquet and CSV")
        for part in ("", ".csv", ".parquet")
    )
    table = pa.table({name: pa.array(array) for name, array in columns.items()})
    buffer = io.BytesIO()
    if out.suffix.lower() == ".parquet":
        parquet.write_table(table, buffer)
    else:
        pa_csv.write_csv(table, buffer)
    write_atomically(out, buffer.getvalue())
    print(f"{out}: {table.num_rows} predictions")
