"""What a plan looks like: a table, a paragraph, a plot, or JSON."""

from __future__ import annotations

import dataclasses
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from ...common.atomic import write_atomically
from ...common.extras import need
from ...common.words import counted, number, size
from ...planner import Plan
from ..console import Console
from .objects import print_object


def print_plan(plan: Plan) -> None:
    """Both methods, Algorithm 1's candidates and remedies if any, the advice, what it assumes."""
    console = Console()
    _print_methods(plan, console)
    console.print(plan.method, style="bold", highlight=False)
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("nodes", "columns", "error", "radius"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for row in plan.table:
        sizes = sorted(set(row["partition"]))
        best = row["n_nodes"] == plan.n_nodes
        table.add_row(
            str(row["n_nodes"]),
            "/".join(f"{s:,}" for s in sizes),
            number(row["error"]),
            number(np.maximum(row["spectral_radius"], 0.0)),
            row["warning"] or ("<- advised" if best and not plan.given else ""),
            style="bold" if best else None,
        )
    console.print(table)
    if plan.remedies:
        remedies = Table(box=box.SIMPLE_HEAD)
        remedies.add_column(f"remedies for {counted(plan.n_nodes, 'node')}")
        remedies.add_column("predicted error", justify="right", no_wrap=True)
        for remedy in plan.remedies:
            remedies.add_row(remedy["what"], number(remedy["error"]))
        console.print(remedies)
    console.print(plan.text, highlight=False, markup=False)
    if plan.measured:
        return
    assumed = "Assumed: " + "; ".join(plan.assumptions) + "."
    console.print(assumed, style="dim", highlight=False, markup=False)


def _print_methods(plan: Plan, console: Console) -> None:
    """Two rows: what memory buys."""
    memory, plain = plan.memory, plan.rounds
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("", no_wrap=True)
    for name in ("error", "nodes", "a node keeps", "sent a task", "exchanges", "seconds a task"):
        table.add_column(name, justify="right", no_wrap=" " not in name)
    for name, error, row in (
        ("Algorithm 1", plan.error, plain),
        ("Conche method", memory.error, memory),
    ):
        took = f"{row.seconds:.2g}"
        sizes = size(row.kept_bytes), size(row.bytes)
        table.add_row(name, number(error), str(row.n_nodes), *sizes, str(row.exchanges), took)
    console.print(table)
    lost = f", {memory.loss:.1%} of the error lost by it" if memory.loss > 0 else ""
    least = f"rank {memory.smallest_rank} would lose no more than {memory.loss_limit:.1%}"
    if memory.smallest_rank >= memory.rank and memory.loss <= memory.loss_limit:
        least = f"a smaller one would lose more than {memory.loss_limit:.1%}"
    said = f"Conche method: rank {memory.rank}{lost}"
    said += "." if not memory.rank and memory.loss <= memory.loss_limit else f"; {least}."
    if memory.discount < 1:
        said += (
            f" If only the newest task counts, discount {memory.discount:.2f}: "
            f"{number(memory.newest)} there, {number(memory.newest_undiscounted)} without."
        )
    console.print(said, highlight=False)
    console.print()


def print_json(plan: Plan) -> None:
    """One object: n_nodes, error, candidates, and the rest of the plan. Infinity is null."""
    fields = dataclasses.asdict(plan)
    fields["candidates"] = fields.pop("table")
    print_object(fields)


def draw_plan(plan: Plan, path: Path) -> None:
    """The error against the number of nodes, as a PNG, SVG or PDF."""
    plt = need("matplotlib.pyplot", "cli", "drawing")
    rows = [row for row in plan.table if math.isfinite(row["error"])]
    nodes, errors = [r["n_nodes"] for r in rows], [r["error"] for r in rows]
    fig, axis = plt.subplots(figsize=(8, 4.8), layout="constrained")
    label = "Algorithm 1" if rows else None
    axis.plot(nodes, errors, color="#0072B2", marker="o", ms=5, label=label)
    warned = [row for row in rows if row["warning"]]
    if warned:
        at, height = [r["n_nodes"] for r in warned], [r["error"] for r in warned]
        axis.plot(at, height, ls="", marker="X", ms=9, color="#D55E00", label="avoid")
    unbounded = [row["n_nodes"] for row in plan.table if not math.isfinite(row["error"])]
    for i, K in enumerate(unbounded):
        label = None if i else "not foreseen" if plan.measured else "unbounded"
        axis.axvline(K, color="#D55E00", ls=":", lw=1.5, label=label)
    if math.isfinite(plan.memory.error):
        which = f"rank {plan.memory.rank}" if plan.memory.loss > 0 else "any number of nodes"
        label = f"Conche method, {which}: {number(plan.memory.error)}"
        axis.axhline(plan.memory.error, color="#CC79A7", ls="-.", lw=1.5, label=label)
    if math.isfinite(plan.centralised):
        axis.axhline(plan.centralised, color="black", ls="--", lw=1, label="one node")
    if math.isfinite(plan.error):
        what = "given" if plan.given else "advised"
        label = f"{what}: {counted(plan.n_nodes, 'node')}, {number(plan.error)}"
        look = dict(ls="", marker="*", ms=18, color="#009E73")
        axis.plot(plan.n_nodes, plan.error, label=label, **look)
    axis.set(
        xlabel="number of nodes", ylabel="predicted error over all tasks\n(squared, as energy)"
    )
    axis.set_title(f"{plan.method}\n{plan.setting}", fontsize=10)
    if not rows:
        axis.set_ylim(0, 2 * plan.memory.error)
    _ticks(axis, [row["n_nodes"] for row in plan.table])
    if errors and max(errors) > 20 * min(errors):
        axis.set_yscale("log")
    axis.grid(alpha=0.25)
    axis.legend(fontsize=9)
    buffer = io.BytesIO()
    fig.savefig(buffer, format=path.suffix[1:].lower(), dpi=130)
    plt.close(fig)
    write_atomically(path, buffer.getvalue())


def _ticks(axis: Any, nodes: list[int]) -> None:
    """A tick for every candidate; a label wherever there is room for it."""
    axis.set_xscale("log", base=2)
    axis.minorticks_off()
    room = (math.log2(nodes[-1]) or 1.0) / 24  # two dozen labels fit side by side
    labels, last = [], -math.inf
    for K in nodes:
        free = math.log2(K) - last >= room * max(len(str(K)) / 2, 1)
        labels.append(str(K) if free else "")
        last = math.log2(K) if free else last
    axis.set_xticks(nodes, labels)
