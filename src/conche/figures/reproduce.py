"""`conche reproduce`: make the figures, show how it goes, and say whether they are right."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..progress import quiet_progress
from .checks import Finding, check, passed
from .run import Figure, make
from .spec import Spec, SpecError, built_in, read_spec


def listing() -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("name", "paper", "what it shows", "trials"):
        table.add_column(
            name, justify="right" if name == "trials" else "left", no_wrap=name != "what it shows"
        )
    for name in built_in():
        quick, paper = (read_spec(name, scale) for scale in ("quick", "paper"))
        table.add_row(name, paper.source, paper.title, f"{quick.trials} / {paper.trials}")
    table.caption = "trials at --scale quick / paper"
    return table


def chosen(names: Sequence[str], scale: str) -> dict[str, Spec]:
    """The figures asked for, each once; all are read before any is made."""
    wanted: list[str] = []
    for name in names:
        wanted += built_in() if name == "all" else [name]
    specs = {name: read_spec(name, scale) for name in dict.fromkeys(wanted)}
    folders = [spec.name for spec in specs.values()]
    for name in folders:
        if folders.count(name) > 1:
            raise SpecError(f"two specs are called {name}: they would share a folder")
    return specs


def reproduce(
    names: Sequence[str], scale: str, out: Path, jobs: int, seed: int, check_too: bool,
    data: Path | None,
) -> bool:  # fmt: skip
    """Make the figures; False where a check failed."""
    console = Console()
    specs = chosen(names, scale)
    reports: list[tuple[Spec, list[Finding]]] = []
    for name, spec in specs.items():
        command = f"conche reproduce {name} --scale {scale} --seed {seed}"
        figure = _make(console, spec, out, seed, jobs, data, command)
        if check_too:
            reports.append((spec, check(figure, scale)))
            _report(console, *reports[-1])
    if reports:
        failed = [spec.name for spec, findings in reports if not passed(findings)]
        verdict = f"FAILED: {', '.join(failed)}" if failed else "all passed"
        console.print(f"{len(reports)} checked: {verdict}", highlight=False)
        return not failed
    return True


def _make(
    console: Console, spec: Spec, out: Path, seed: int, jobs: int, data: Path | None, command: str
) -> Figure:
    clock = time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with quiet_progress(*columns) as progress:
        bar = progress.add_task(spec.name, total=None)
        figure, there = make(
            spec, out, seed=seed, jobs=jobs, data=data, command=command,
            begin=lambda total: progress.update(bar, total=total),
            tick=lambda done: progress.advance(bar, done),
        )  # fmt: skip
    took = "was there already" if there else f"{time.perf_counter() - clock:.0f} s"
    note = f" [{figure.note}]" if figure.note else ""
    console.print(
        f"{spec.name}: {spec.title}{note}\n    {out / spec.name / 'figure.png'} ({took})",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip
    return figure


def _report(console: Console, spec: Spec, findings: list[Finding]) -> None:
    marks = {True: "[green]pass[/green]", False: "[bold red]FAIL[/bold red]", None: "  - "}
    for finding in findings:
        console.print(
            f"    {marks[finding.holds if finding.holds is None else bool(finding.holds)]}  "
            f"{finding.statement}: [dim]{finding.detail}[/dim]",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
    console.print(
        f"    {spec.name}: {'pass' if passed(findings) else 'FAIL'}", highlight=False, style="bold"
    )
