"""What a check finds, and the ways to phrase it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ...common.arrays import Array
from .work import Figure


class Finding(NamedTuple):
    """One statement, whether it holds, and the numbers that say so. None: it does not apply."""

    statement: str
    holds: bool | None
    detail: str


Statements = Callable[[Figure], Iterator[Finding]]


def passed(findings: list[Finding]) -> bool:
    """Whether nothing that applies fails."""
    return all(finding.holds is None or bool(finding.holds) for finding in findings)


def below(a: float, b: float, what: str) -> Finding:
    """a below b."""
    return Finding(what, bool(a < b), f"{a:.4g} against {b:.4g}")


def all_below(a: Array, b: Array, what: str) -> Finding:
    """Every entry of a below its partner in b; the closest pair is shown."""
    worst = int(np.argmax(np.asarray(a) / np.asarray(b)))
    held = bool(np.all(np.asarray(a) < np.asarray(b)))
    return Finding(what, held, f"closest {a[worst]:.4g} against {b[worst]:.4g}")


def near(value: float, printed: float, slack: float, what: str) -> Finding:
    """Within ``slack`` of what the paper prints."""
    held = bool(abs(value - printed) <= slack)
    return Finding(what, held, f"{value:.4f}, the paper has {printed:g}")


def setting(figure: Figure, name: str, panel: int = 0) -> Array:
    """The values of a setting."""
    return np.atleast_1d(figure.spec.panels[panel][name])


def simulated(figure: Figure, panel: str, curve: str) -> Array:
    """The simulated errors of a curve."""
    return figure.curve(panel, curve)[1]
