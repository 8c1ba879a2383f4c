"""What a model's file holds, as people see it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from ...common.words import counted, number, shortened, size
from ...estimators.base import LinearModel
from ...explore.known import known_of
from ...model_file import Run
from ..console import Console
from ..record import seconds_of
from .streams import LONGEST_NAME

MANY = 12  # rows of the history that are shown without --json
SOME = 3  # files at home


def known_beside(model: LinearModel, run: Run | None, file: Path) -> dict[str, Any]:
    """`known_of` it, with the seconds that its record has."""
    return known_of(model, run, file, seconds_of(file))


def print_known(known: dict[str, Any], wide: bool = False) -> None:
    """A few lines, the nodes, and the history."""
    console = Console(highlight=False)

    def say(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    target = "" if known["target"] is None else f", target {known['target']!r}"
    say(f"{known['file']}: {known['class']}{target}")
    count = counted(known["tasks"], "task")
    say(f"{count}, {known['samples']:,} samples, {known['columns']:,} columns")
    if known["classes"] is not None:
        some = ", ".join(map(str, known["classes"][:8])) + (", ..." * (len(known["classes"]) > 8))
        say(f"{len(known['classes'])} classes: {some}")
    given = ", ".join(f"{name}={value}" for name, value in known["options"].items())
    say(f"options: {given or 'the defaults'}")
    if known["ridge"] is not None:
        say(f"ridge: as {known['ridge']}")
    kept = f"{size(known['kept_bytes'])} of the past are kept"
    if known["homes"] is not None:
        files = known["home_files"] or known["homes"]
        more = f", and {len(files) - SOME} more (--json has all)" if len(files) > SOME else ""
        kept = f"weights are with the nodes, in {', '.join(files[:SOME])}{more}"
    say(f"file {size(known['file_bytes'])}; {kept}")
    say("")
    for k, node in enumerate(known["nodes"][:MANY]):
        some = ", ".join(node["some"]) + (", ..." * (node["columns"] > len(node["some"]) > 0))
        say(f"node {k}: {counted(node['columns'], 'column')}{f' ({some})' if some else ''}")
    if len(known["nodes"]) > MANY:
        say(f"... and {len(known['nodes']) - MANY} more nodes")
    _print_history(known["history"], wide)


def _print_history(history: list[dict[str, Any]], wide: bool) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("task", no_wrap=True)
    for name in ("samples", "before", "after", "seconds", "MB sent"):
        table.add_column(name, justify="right")
    few = wide or len(history) <= MANY
    shown = history if few else [*history[: MANY // 2], *history[-MANY // 2 :]]
    for i, record in enumerate(shown):
        if not few and i == MANY // 2:
            table.add_row("...")
        sent = f"{record['bytes'] / 1e6:.2f}"
        errors = number(record["before"]), number(record["after"])
        name = record.get("name", str(record["task"]))
        name = escape(name if wide else shortened(name, LONGEST_NAME))
        took = f"{record['seconds']:.2f}" if record["seconds"] > 0 else "-"
        table.add_row(name, f"{record['samples']:,}", *errors, took, sent)
    Console(highlight=False, width=10_000 if wide else None).print(table)
