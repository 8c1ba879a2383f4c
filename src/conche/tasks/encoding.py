"""Texts and dates as numbers: what stands in a table for a column that has none itself.

A text column ``wind`` becomes ``wind=north``, ``wind=south``, ...: zeros and ones, one for every
value; a column ``time`` of dates becomes ``time.days``, or its parts in the calendar. The names say
all that is needed to read them again, so a model needs nothing else to predict from texts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Array

DAY = 86_400_000_000  # microseconds
CALENDAR = "year", "month", "day", "weekday", "hour"
MOST_VALUES = 1000  # of a text column that nobody has named: beyond, it is no category


class Part(NamedTuple):
    """A column that stands for some of another: its value, or its part in the calendar."""

    column: str
    part: str
    is_date: bool


def part_of(name: str, texts: frozenset[str], dates: frozenset[str]) -> Part | None:
    """What a name means in a table with these columns; None: nothing of the kind.

    >>> part_of("a=b=c", frozenset({"a=b"}), frozenset())
    Part(column='a=b', part='c', is_date=False)
    """
    if texts and "=" in name:
        for place in (i for i, sign in enumerate(name) if sign == "="):
            if name[:place] in texts:
                return Part(name[:place], name[place + 1 :], False)
    column, dot, part = name.rpartition(".")
    if dot and column in dates and part in ("days", *CALENDAR):
        return Part(column, part, True)
    return None


def text_of(name: str) -> str:
    """The text that a column of zeros and ones is a value of, by its name; "": it is none."""
    text, sign, _ = name.partition("=")
    return text if sign else ""


def values_beside(names: Iterable[str], there: Collection[str]) -> dict[str, str]:
    """Of the columns that are not ``there`` those that are zero nevertheless, each with a column
    that is there: another value of the same text, which shows that the text is known.

    >>> values_beside(["a", "sky=grey", "wind=north"], ["sky=rain"])
    {'sky=grey': 'sky=rain'}
    """
    known = {text: name for name in there if (text := text_of(name))}
    if not known:
        return {}
    absent = (name for name in names if name not in there)
    return {name: known[text_of(name)] for name in absent if text_of(name) in known}


def as_numbers(column: Any, what: Part, compute: Any) -> Array:
    """Those of a pyarrow column; NaN where nothing is known. ``compute`` is pyarrow's."""
    if not what.is_date:
        return _filled(compute.equal(column, what.part))
    if what.part == "days":
        return _filled(column.cast("timestamp[us]", safe=False).cast("int64")) / DAY
    # a date has no hour, and a time with a zone has that of its zone
    times = column.cast("timestamp[us]") if str(column.type).startswith("date") else column
    named = {"weekday": "day_of_week"}  # where pyarrow has another word
    return _filled(getattr(compute, named.get(what.part, what.part))(times))


def _filled(column: Any) -> Array:
    return np.asarray(column.to_numpy(), dtype=float)  # None, and what pyarrow calls null, is NaN
