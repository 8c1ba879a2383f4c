"""The advice in words: what memory buys, and which number of nodes."""

from __future__ import annotations

import numpy as np

from ..common.words import counted, number, size
from .memory import MemoryPlan
from .question import Candidate, Horizon, Remedy


def bought(error: float, memory: MemoryPlan) -> str:
    """What memory buys, against Algorithm 1's error on as many nodes: one sentence."""
    K, kept = counted(memory.n_nodes, "node"), size(memory.kept_bytes)
    if memory.coordinator_bytes:
        kept += f" a node and {size(memory.coordinator_bytes)} at the coordinator"
    else:
        kept += " a node"
    if memory.error > 1.005 * error:
        return (
            f"On {K} memory does not pay: {number(memory.error)} where Algorithm 1 has "
            f"{number(error)}, for {kept}."
        )
    if memory.error >= 0.995 * error:
        return (
            f"On {K} memory buys next to nothing: {number(memory.error)} where Algorithm 1 has "
            f"{number(error)}, for {kept}."
        )
    if np.isnan(error):
        than = "where Algorithm 1 promises none"
    elif error > 2 * memory.error:
        than = f"instead of {number(error)}"
    else:
        than = f"{1 - memory.error / error:.0%} less than Algorithm 1's {number(error)}"
    return f"On {K} memory buys an error of {number(memory.error)}, {than}, for {kept}."


def of_nodes(
    chosen: Candidate,
    best: Candidate,
    table: list[Candidate],
    horizon: list[Horizon],
    remedies: list[Remedy],
    fixed: bool,
) -> str:
    """Which number of nodes; ``fixed`` where it was given and not chosen."""
    K = chosen["n_nodes"]
    if fixed:
        text = (
            f"With {counted(K, 'node')} Algorithm 1's predicted error is {number(chosen['error'])}"
        )
        other = f"; {counted(best['n_nodes'], 'node')} would give {number(best['error'])}. "
        text += other if best is not chosen else ", the least of all. "
        if chosen["warning"]:
            text += f"Beware: {chosen['warning']}. "
        if remedies:
            text += f"Best remedy: {remedies[0]['what']}, error {number(remedies[0]['error'])}. "
    elif not np.isfinite(chosen["error"]):
        return (
            "Algorithm 1's error is unbounded on every number of nodes: some block has within 1 "
            "of as many columns as some task has samples."
        )
    else:
        text = (
            f"Use {counted(K, 'node')}: Algorithm 1's predicted error is {number(chosen['error'])}"
        )
        text += f", against {number(table[0]['error'])} for one node. " if K > 1 else ". "
    avoid = [str(row["n_nodes"]) for row in table if row["warning"] and row["n_nodes"] != K]
    if avoid:
        more = f" and {len(avoid) - 8} more" if len(avoid) > 8 else ""
        text += f"Avoid {', '.join(avoid[:8])}{more} {'node' if avoid == ['1'] else 'nodes'}. "
    later = [row for row in horizon if np.isfinite(row["error"])]
    if not later:
        return text + "With more tasks every number of nodes fails."
    if {row["n_nodes"] for row in later} == {best["n_nodes"]}:
        return text + "The answer stays the same with more tasks."
    changes = [f"{row['n_nodes']} for {row['n_tasks'] or 'endless'} tasks" for row in later]
    return text + f"With more tasks the best number of nodes becomes {', '.join(changes)}."
