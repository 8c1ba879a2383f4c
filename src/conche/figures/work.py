"""A figure's work: the rows of its table, and units of trials that fill them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..simulation.model import Array


@dataclass(frozen=True)
class Row:
    """One point of a figure. ``heavy``: some |n - p_k| <= 4, where the error's variance is
    infinite and a standard error says nothing."""

    panel: str
    x: float
    curve: str
    theory: float | None = None
    heavy: bool = False


@dataclass(frozen=True)
class Unit:
    """A batch of trials for some rows: ``run()`` gives trials x rows. A pure function."""

    name: str
    rows: tuple[int, ...]
    trials: range
    cost: float  # rough seconds, for the progress bar
    run: Callable[[], Array]


@dataclass(frozen=True)
class Work:
    rows: list[Row]
    units: list[Unit]
    note: str = ""  # what the figure says of itself, if anything


Settings = dict[str, Any]
