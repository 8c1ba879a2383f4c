"""Rounds and bytes until a task's least-squares loss is within a share of what could be gained."""

from __future__ import annotations

from typing import Any

import numpy as np

import conche
from conche.common.arrays import Array
from tests.helpers.streams import drawn

from .measure import megabytes, table

LEVELS = (1e-4, 1e-8)
NODES = 8
MOST = 20_000
WAYS: dict[str, dict[str, Any]] = {
    "plain CoCoA (1/K; the same as CoCoA+ with sigma' = K)": dict(n_rounds=MOST),
    "CoLa on a ring": dict(n_rounds=MOST, network=conche.Graph("ring")),
    "adaptive steps": dict(n_rounds=2000, steps="adaptive"),
    "conjugate gradients": dict(n_rounds=500, steps="cg"),
    "Conche": dict(solver=conche.Memory(ridge=1e-9), steps="cg", n_rounds=3, fit_intercept=False),
}


def reached(X: Array, y: Array, way: dict[str, Any]) -> list[tuple[int, float] | None]:
    """Rounds and bytes for every level; None where they were not enough."""
    model = conche.CoCoARegressor(n_nodes=NODES, **way).partial_fit(X, y)
    best = 0.5 * float(np.mean((y - X @ np.linalg.lstsq(X, y, rcond=None)[0]) ** 2))
    first = 0.5 * float(np.mean(y**2))
    losses = np.array([record["loss"] for record in model.history_])
    sent = np.cumsum([record["bytes"] for record in model.history_])
    found: list[tuple[int, float] | None] = []
    for level in LEVELS:
        there = np.flatnonzero(losses - best <= level * (first - best))
        found.append((int(there[0]) + 1, float(sent[there[0]])) if len(there) else None)
    return found


def run() -> None:
    """Print the table."""
    rows = []
    for kind in ("independent", "chain", "factors"):
        X, y = drawn(400, 80, 0, kind)
        for name, way in WAYS.items():
            cells = []
            for answer in reached(X, y, way):
                cells += (
                    ["more", ""] if answer is None else [f"{answer[0]:,}", megabytes(answer[1])]
                )
            rows.append([kind, name, *cells])
    head = ["columns", "method", "rounds to 1e-4", "sent", "rounds to 1e-8", "sent"]
    print(table(head, rows), "\n", flush=True)
