"""A figure before and after: the rows of its table, the work that fills them, the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...common.arrays import Array
from ...errors import ParameterError
from .spec import Spec

Settings = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One point of a figure.

    ``heavy``: some |n - p_k| <= 4, where the error's variance is infinite and a standard error
    says nothing.
    """

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
    """All of a figure's rows, and the units that fill them."""

    rows: list[Row]
    units: list[Unit]
    note: str = ""  # what the figure says of itself, if anything


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure that has been made: its spec, its rows, and what was simulated for each."""

    spec: Spec
    rows: list[Row]
    simulated: Array
    stderr: Array
    note: str = ""

    def curve(self, panel: str, name: str) -> tuple[Array, Array, Array]:
        """x, simulated and stderr of one curve."""
        which = [i for i, r in enumerate(self.rows) if (r.panel, r.curve) == (panel, name)]
        if not which:
            raise ParameterError(f"{self.spec.name} has no curve {name!r} in panel {panel}")
        x = np.array([self.rows[i].x for i in which])
        return x, self.simulated[which], self.stderr[which]

    def curves(self, panel: str) -> list[str]:
        """The names of a panel's curves, in their order."""
        return list(dict.fromkeys(r.curve for r in self.rows if r.panel == panel))
