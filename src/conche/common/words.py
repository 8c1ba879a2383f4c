"""Numbers and counts as people read them, the same in tables, plots and sentences."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import numpy as np


def number(x: float | None) -> str:
    """An error as people read it."""
    if x is None or np.isnan(x):
        return "-"
    return "unbounded" if np.isinf(x) else f"{x:.3f}" if x < 1e4 else f"{x:.1e}"


def size(count: float) -> str:
    """So many bytes.

    >>> size(512), size(1_500_000)
    ('512 B', '1.5 MB')
    """
    for unit, many in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= many:
            return f"{count / many:.3g} {unit}"
    return f"{count:.0f} B"


def counted(count: int, noun: str) -> str:
    """So many of something.

    >>> counted(1, "task"), counted(8, "node")
    ('1 task', '8 nodes')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def too_large(what: str) -> str:
    """Why numbers cannot be learnt from that are far beyond any unit.

    >>> too_large("column 'a'")
    "column 'a' is too large: its squares overflow; scale it"
    """
    return f"{what} is too large: its squares overflow; scale it"


TOO_LARGE = too_large("some column")  # which one, is found where they have names


def one_line(error: BaseException) -> str:
    """What an exception says, in one line; its name where it says nothing."""
    return in_line(str(error)) or type(error).__name__


def in_line(text: str) -> str:
    r"""A text in one line, without anything that a terminal would obey.

    >>> in_line("Row 3:\n\x1b[31mred")
    'Row 3: [31mred'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def shortened(name: str, most: int) -> str:
    """A name of at most so many letters: its middle is left out, because ends tell names apart.

    >>> shortened("sensors-2013-03-morning", 15)
    'sensors…morning'
    """
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end]}…{name[len(name) - end :]}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint to a name that is nearly this one, to put behind a message.

    >>> did_you_mean("Tempreature", ["pressure", "temperature"])
    "; did you mean 'temperature'?"
    """
    by_small = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_small, 1)
    return f"; did you mean {by_small[near[0]]!r}?" if near else ""
