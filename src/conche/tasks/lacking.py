"""Rows of the target that some node does not have: how many, and what has become of them."""

from __future__ import annotations

from collections.abc import Sequence

from ..common.arrays import Array


class Lacking:
    """Of all tasks that were looked at, each counted once."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}  # of each task's target
        self._left: dict[str, int] = {}  # of those, how many were left out
        self._gone: dict[str, list[int]] = {}  # how many each node does not have

    def note(self, task: str, n_rows: int, gone: Sequence[Array], left: int) -> None:
        """What a task's nodes do not have, and how many rows all of them have left out."""
        self._rows[task], self._left[task] = n_rows, left
        self._gone[task] = [len(rows) for rows in gone]

    def said(self, nodes: Sequence[str]) -> list[str]:
        """A line for a person; none where nothing was lacking.

        >>> from numpy import arange
        >>> filled, common = Lacking(), Lacking()
        >>> filled.note("may", 744, [arange(0), arange(332)], 0)
        >>> filled.said(["north", "south"])
        ["rows that a node does not have were filled: 332 of 744 on 'south'"]
        >>> common.note("may", 744, [arange(0), arange(332)], 332)
        >>> common.said(["north", "south"])
        ['332 of 744 rows were left out, which some node does not have']
        """
        rows, left = sum(self._rows.values()), sum(self._left.values())
        if left:
            return [f"{left:,} of {rows:,} rows were left out, which some node does not have"]
        sums = [sum(counts) for counts in zip(*self._gone.values(), strict=True)]
        each = [f"{n:,} of {rows:,} on {name!r}" for name, n in zip(nodes, sums, strict=False) if n]
        return [f"rows that a node does not have were filled: {', '.join(each)}"] if each else []
