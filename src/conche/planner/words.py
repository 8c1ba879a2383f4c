"""The advice as one paragraph."""

from __future__ import annotations

import numpy as np

from .question import Candidate, Horizon, Remedy


def paragraph(
    chosen: Candidate,
    best: Candidate,
    table: list[Candidate],
    horizon: list[Horizon],
    remedies: list[Remedy],
    fixed: bool,
) -> str:
    K = chosen["n_nodes"]
    if fixed:
        text = f"With {_nodes(K)} the predicted error is {chosen['error']:.3f}; "
        text += f"{_nodes(best['n_nodes'])} would give {best['error']:.3f}. "
        if chosen["warning"]:
            text += f"Beware: {chosen['warning']}. "
        if remedies:
            text += f"Best remedy: {remedies[0]['what']}, error {remedies[0]['error']:.3f}. "
    else:
        text = f"Use {_nodes(K)}: predicted error {chosen['error']:.3f}"
        text += f", against {table[0]['error']:.3f} for one node. " if K > 1 else ". "
    avoid = [str(row["n_nodes"]) for row in table if row["warning"] and row["n_nodes"] != K]
    if avoid:
        text += f"Avoid {', '.join(avoid)} nodes. "
    later = [row for row in horizon if np.isfinite(row["error"])]
    if {row["n_nodes"] for row in later} == {best["n_nodes"]}:
        return text + "The answer stays the same with more tasks."
    said = [f"{row['n_nodes']} for {row['n_tasks'] or 'endless'} tasks" for row in later]
    return text + f"With more tasks the best number of nodes becomes {', '.join(said)}."


def _nodes(K: int) -> str:
    return f"{K} node" if K == 1 else f"{K} nodes"
