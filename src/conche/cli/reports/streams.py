"""Training, evaluation and predictions, as people see them."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from ...common.arrays import Array
from ...common.atomic import write_atomically
from ...common.extras import need
from ...common.words import counted, number, shortened
from ...evaluation import RIDGE, Evaluation, Predictions, mean_of
from ...training import Report, Stream
from ..console import Console
from ..progress import quiet_progress
from .objects import print_object

MANY = 12  # rows of an error matrix
LONGEST_NAME = 22  # of a task, where a table has to fit 80 columns
FEW_VALUES = 20  # of a target, which may be labels


def hints(stream: Stream, y: Any, labels: bool) -> None:
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


class Learning:
    """One line a task, and a bar with the time that is left. Lines fit 80 columns, unless they may
    be ``wide``; ``silent`` shows the bar alone, on a terminal's standard error."""

    def __init__(
        self,
        names: Sequence[str],
        seen: int,
        labels: bool,
        wide: bool = False,
        silent: bool = False,
    ):
        self.names, self.seen, self.silent = names, seen, silent
        self.what = "error rate" if labels else "mean squared error"
        longest = max(len("task"), *(len(name) for name in names))
        self.width = longest if wide else min(longest, LONGEST_NAME)
        self.console = Console(highlight=False, quiet=silent)

    @contextmanager
    def shown(self) -> Iterator[Report]:
        """Around the learning, which reports every task."""
        names, seen = self.names, self.seen
        if len(names) > 1:
            self._say(f"{len(names)} tasks, {names[0]} to {names[-1]}")
        if seen:
            self._say(f"going on after {names[seen - 1]}: {seen} of {len(names)} were learnt")
        legend = f"before, after: {self.what}; gap: how far above offline the objective is"
        self._say(legend, style="dim")
        self._say(
            f"{'task':<{self.width}}  {'samples':>8}  {'before':>8}  {'after':>8}  "
            f"{'seconds':>7}  {'MB sent':>8}  {'gap':>7}",
            style="dim",
        )
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        shared = None if self.silent else self.console
        with quiet_progress(*columns, TimeRemainingColumn(), console=shared) as progress:
            bar = progress.add_task("learning", total=len(names), completed=seen)

            def report(name: str, record: Mapping[str, Any], new: list[str]) -> None:
                self._row(name, record, new)
                progress.advance(bar)

            yield report

    def _row(self, name: str, record: Mapping[str, Any], new: list[str]) -> None:
        if new:
            more = f", {new[1]}" + (", ..." if len(new) > 2 else "") if len(new) > 1 else ""
            self._say(f"{name}: {counted(len(new), 'new column')}: {new[0]}{more}")
        self._say(
            f"{shortened(name, self.width):<{self.width}}  {record['samples']:>8}  "
            f"{number(record['before']):>8}  {number(record['after']):>8}  "
            f"{record['seconds']:>7.2f}  {record['bytes'] / 1e6:>8.2f}  "
            f"{_above(record['gap']):>7}"
        )

    def _say(self, text: str, **style: Any) -> None:
        self.console.print(text, markup=False, soft_wrap=True, **style)


def _above(gap: float) -> str:
    """How far the offline objective is above its minimum, as a share of it."""
    if np.isinf(gap):
        return "unknown"
    return "0" if gap < 1e-9 else f"{gap:.2%}"


def trained(model: Any, out: Path, notes: Sequence[str] = ()) -> None:
    """The last lines: what was written, after what should be known of it."""
    sizes = model.partition_.sizes
    width = f"{min(sizes)} to {max(sizes)}" if min(sizes) < max(sizes) else str(min(sizes))
    console = Console(highlight=False)
    for note in notes:
        console.print(note, markup=False, soft_wrap=True)
    if (ridge := model.told_ridge()) is not None:
        console.print(f"ridge: as {ridge}", markup=False, soft_wrap=True)
    console.print(
        f"{out}: {type(model).__name__}, {counted(model.n_tasks_seen_, 'task')}, "
        f"{counted(len(sizes), 'node')} of {width} columns",
        markup=False,
        soft_wrap=True,
    )


def print_evaluation(found: Evaluation, wide: bool = False) -> None:
    """The error matrix, or as much of it as fits across a screen, and what it comes to."""
    console = Console(highlight=False)
    values, T = found.values, len(found.tasks)
    most = max(T, 2) if wide else _room(found, console.width)
    shown = range(T) if most >= T else _some(T, most)
    rows = range(len(values)) if wide or len(values) <= MANY else _some(len(values), MANY)
    title = f"{found.metric.title} on each test task, after each task that was learnt"
    if len(shown) < T or len(rows) < len(values):
        title += f"\n({len(shown)} of {T} are shown; --wide and --json have all)"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    table.add_column("after", no_wrap=True)
    for j in shown:
        name = found.tasks[j] if wide else shortened(found.tasks[j], LONGEST_NAME)
        table.add_column(escape(name), justify="right", no_wrap=True)
    table.add_column("average", justify="right", style="bold", no_wrap=True)
    for i in rows:
        name = found.learnt[i] or f"{i + 1}"
        name = name if wide else shortened(name, LONGEST_NAME)
        cells = [number(values[i, j]) for j in shown]
        own = escape(name) if len(values) > 1 else "all"
        table.add_row(own, *cells, number(mean_of(values[i])))
    for method, beside in found.yardsticks.items():
        cells = [number(beside[j]) for j in shown]
        table.add_row(method, *cells, number(mean_of(beside)), style="dim")
    Console(highlight=False, width=10_000 if wide else None).print(table)
    forgetting = "" if found.forgetting is None else f", forgetting {found.forgetting:+.3f}"
    console.print(f"average {number(found.average)}{forgetting}", soft_wrap=True)
    for method, beside in found.yardsticks.items():
        own = ", with the model's own ridge" if method == RIDGE else ""
        said = f"{method} on all tasks at once{own}: {number(mean_of(beside))}"
        console.print(said, soft_wrap=True)
    if len(values) < 2 < T:
        said = "the model's file has the last estimate alone: nothing can be said of forgetting"
        console.print(said, style="dim", soft_wrap=True)


def _room(found: Evaluation, width: int) -> int:
    """How many test tasks fit beside the names and the average: at least two."""
    names = [shortened(name, LONGEST_NAME) for name in (*found.tasks, *found.learnt)]
    key = max(map(len, (*found.yardsticks, "after", *names[len(found.tasks) :])))
    each = max(8, *(len(name) for name in names[: len(found.tasks)])) + 3
    return max((width - key - 4 - 11) // each, 2)


def _some(count: int, most: int) -> Array:
    return np.unique(np.linspace(0, count - 1, most).astype(int))


def print_evaluation_json(found: Evaluation) -> None:
    """One object: average, forgetting, metric, tasks, the last row (``errors``, or ``scores`` where
    more is better), the whole matrix, and if asked for ``offline`` (with the model's own ridge) and
    ``least_squares``; null where nothing is defined."""
    row = "errors" if found.metric.better < 0 else "scores"
    fields: dict[str, Any] = {
        "average": found.average,
        "forgetting": found.forgetting,
        "metric": found.metric.title,
        "tasks": found.tasks,
        row: found.values[-1].tolist(),
        "matrix": found.values.tolist(),
    }
    if found.least_squares is not None:
        for name, beside in (("offline", found.offline), ("least_squares", found.least_squares)):
            fields[name] = None if beside is None else mean_of(beside)
            fields[f"{name}_{row}"] = beside
    print_object(fields)


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
