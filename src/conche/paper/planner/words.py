"""The advice as one paragraph."""

from __future__ import annotations

import numpy as np

from ...common.words import counted, number
from .question import Candidate, Horizon, Remedy


def paragraph(
    chosen: Candidate,
    best: Candidate,
    table: list[Candidate],
    horizon: list[Horizon],
    remedies: list[Remedy],
    fixed: bool,
) -> str:
    """The advice in words; ``fixed`` where the number of nodes was given and not chosen."""
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
    else:
        text = (
            f"Use {counted(K, 'node')}: Algorithm 1's predicted error is {number(chosen['error'])}"
        )
        text += f", against {number(table[0]['error'])} for one node. " if K > 1 else ". "
    avoid = [str(row["n_nodes"]) for row in table if row["warning"] and row["n_nodes"] != K]
    if avoid:
        more = f" and {len(avoid) - 8} more" if len(avoid) > 8 else ""
        text += f"Avoid {', '.join(avoid[:8])}{more} nodes. "
    later = [row for row in horizon if np.isfinite(row["error"])]
    if not later:
        return text + "With more tasks every number of nodes fails."
    if {row["n_nodes"] for row in later} == {best["n_nodes"]}:
        return text + "The answer stays the same with more tasks."
    changes = [f"{row['n_nodes']} for {row['n_tasks'] or 'endless'} tasks" for row in later]
    return text + f"With more tasks the best number of nodes becomes {', '.join(changes)}."
