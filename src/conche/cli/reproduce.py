"""`conche reproduce`: make the figures, show how it goes, and say whether they are right."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import JustifyMethod
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..errors import SpecError
from ..paper.figures import (
    Figure,
    Finding,
    Machine,
    Spec,
    built_in,
    check,
    make,
    passed,
    read_spec,
)
from .console import Console
from .progress import quiet_progress

MARKS = {True: "[green]pass[/green]", False: "[bold red]FAIL[/bold red]", None: "  - "}


def listing() -> Table:
    """The paper's figures, one row each."""
    table = Table(box=box.SIMPLE_HEAD, caption="trials at --scale quick / paper")
    for name in ("name", "paper", "what it shows", "trials"):
        justify: JustifyMethod = "right" if name == "trials" else "left"
        table.add_column(name, justify=justify, no_wrap=name != "what it shows")
    for name in built_in():
        quick, paper = (read_spec(name, scale) for scale in ("quick", "paper"))
        table.add_row(name, paper.source, paper.title, f"{quick.trials} / {paper.trials}")
    return table


def reproduce(
    names: Sequence[str],
    scale: str,
    out: Path,
    jobs: int,
    seed: int,
    check_too: bool,
    data: Path | None,
    device: str | None = None,
) -> bool:
    """Make the figures; False where a check failed.

    Parameters
    ----------
    names : figures, ``"all"``, or paths of specs.
    scale : ``"quick"`` or ``"paper"``.
    out, jobs, seed, data, device : as `conche.paper.figures.make` takes them.
    check_too : whether to compare with theory and with the paper's words.
    """
    console = Console()
    reports: dict[str, bool] = {}
    for name, spec in _chosen(names, scale).items():
        command = f"conche reproduce {name} --scale {scale} --seed {seed}"
        if device is not None:
            command += f" --device {device}"
        figure = _make(console, spec, out, seed, Machine(jobs, device), data, command)
        if check_too:
            findings = check(figure, scale)
            _report(console, spec, findings)
            reports[spec.name] = passed(findings)
    failed = [name for name, fine in reports.items() if not fine]
    if reports:
        verdict = f"FAILED: {', '.join(failed)}" if failed else "all passed"
        console.print(f"{len(reports)} checked: {verdict}", highlight=False)
    return not failed


def _chosen(names: Sequence[str], scale: str) -> dict[str, Spec]:
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


def _make(
    console: Console,
    spec: Spec,
    out: Path,
    seed: int,
    machine: Machine,
    data: Path | None,
    command: str,
) -> Figure:
    """Make one figure, with a progress bar, and say where it is."""
    clock = time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with quiet_progress(*columns) as progress:
        bar = progress.add_task(spec.name, total=None)
        figure, there = make(
            spec,
            out,
            seed=seed,
            machine=machine,
            data=data,
            command=command,
            begin=lambda total: progress.update(bar, total=total),
            tick=lambda done: progress.advance(bar, done),
        )
    took = "was there already" if there else f"{time.perf_counter() - clock:.0f} s"
    note = f" [{figure.note}]" if figure.note else ""
    text = f"{spec.name}: {spec.title}{note}\n    {out / spec.name / 'figure.png'} ({took})"
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    return figure


def _report(console: Console, spec: Spec, findings: list[Finding]) -> None:
    """One line for every finding, and the verdict."""
    for statement, holds, detail in findings:
        mark = MARKS[None if holds is None else bool(holds)]
        text = f"    {mark}  {statement}: [dim]{detail}[/dim]"
        console.print(text, highlight=False, soft_wrap=True)
    verdict = "pass" if passed(findings) else "FAIL"
    console.print(f"    {spec.name}: {verdict}", highlight=False, style="bold")
