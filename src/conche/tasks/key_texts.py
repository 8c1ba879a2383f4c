"""The parts of a key as texts: the same text where they are the same key, however two files have
written or stored them.

Every value is looked at by itself, so that no other row of its file has a say:

    7   7.0   007                                              a number, exactly, of any length
    2013-03-01   2013-03-01 00:00   2013-03-01T00:00:00.000    a time
    2013-03-01T01:00+01:00   2013-03-01 00:00:00Z              a time with a zone: as in UTC
    00:30   00:30:00                                           a time of day
    anything else                                              a text, to the letter

No text of one kind is one of another kind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np

from ..common.arrays import Array

NUMBER = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
DAY = r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
HOUR, SECONDS = r"([01][0-9]|2[0-3])", r"(?::([0-5][0-9])(?:\.([0-9]{1,9}))?)?"
MINUTES = rf":([0-5][0-9]){SECONDS}"
ZONE = r"(?: ?(Z|[+-][0-9]{2}(?::?[0-9]{2})?))?"
CLOCK = re.compile(HOUR + MINUTES)
TIME = re.compile(rf"{DAY}(?:[T ]{HOUR}(?:{MINUTES})?{ZONE})?")
KINDS = (
    ("number", NUMBER),
    ("time", re.compile(f"{DAY}T[0-9:.]+")),
    ("time with a zone", re.compile(f"{DAY}T[0-9:.]+Z")),
    ("time of day", re.compile("[0-9]{2}:[0-9:.]+")),
)


def key_text(text: str) -> str:
    """What a value is matched by.

    >>> [key_text(text) for text in ("7", "007.0", "-0", "8.50", "12345678901234567890123", "1e5")]
    ['7', '7', '0', '8.5', '12345678901234567890123', '1e5']
    >>> key_text("2013-03-01"), key_text("2013-03-01 00:30:00.500"), key_text("2013-02-30")
    ('2013-03-01T00:00:00', '2013-03-01T00:30:00.5', '2013-02-30')
    >>> key_text("2013-03-01T00+01:00"), key_text("2013-03-01 00:00:00Z"), key_text("00:30")
    ('2013-02-28T23:00:00Z', '2013-03-01T00:00:00Z', '00:30:00')
    """
    bare = text.strip()
    if NUMBER.fullmatch(bare):
        return _number(bare)
    if found := TIME.fullmatch(bare):
        return _time(*found.groups()) or text
    if found := CLOCK.fullmatch(bare):
        hour, minute, second, part = found.groups()
        return f"{hour}:{minute}:{second or '00'}{_after_point(part)}"
    return text


def kind_of(texts: Sequence[str]) -> str:
    """Of what `key_text` has made of a column: all of its values are of one kind, or it is text.

    >>> kind_of(["7", "8.5"]), kind_of(["7", "other"]), kind_of(["2013-03-01T00:00:00"])
    ('number', 'text', 'time')
    """
    for name, pattern in KINDS:
        if all(map(pattern.fullmatch, texts)):
            return name
    return "text"


def exact_texts(values: Array) -> list[str] | None:
    """Values that are stored as such, as texts; None: some have more digits than their type keeps,
    and may stand for several numbers.

    >>> exact_texts(np.array([7.0, 1e-7])), exact_texts(np.array([2.0**53]))
    (['7', '0.0000001'], None)
    """
    if values.dtype.kind != "f":
        return [str(value) for value in values.tolist()]
    if np.any(np.abs(values) >= 2.0 ** (np.finfo(values.dtype).nmant + 1)):
        return None
    return [np.format_float_positional(value, trim="-") for value in values]


def _number(text: str) -> str:
    whole, _, part = text.removeprefix("-").partition(".")
    found = (whole.lstrip("0") or "0") + _after_point(part)
    return f"-{found}" if text.startswith("-") and found != "0" else found


def _time(
    day: str,
    hour: str | None,
    minute: str | None,
    second: str | None,
    part: str | None,
    zone: str | None,
) -> str | None:
    """In UTC where the zone is known; None: there is no such day."""
    try:
        time = datetime.fromisoformat(f"{day}T{hour or '00'}:{minute or '00'}:{second or '00'}")
        time -= _ahead(zone)
    except (ValueError, OverflowError):
        return None
    return f"{time.isoformat()}{_after_point(part)}{'Z' if zone else ''}"


def _ahead(zone: str | None) -> timedelta:
    """How much a zone is ahead of UTC."""
    if zone is None or zone == "Z":
        return timedelta()
    digits = zone[1:].replace(":", "").ljust(4, "0")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -ahead if zone.startswith("-") else ahead


def _after_point(part: str | None) -> str:
    """The digits after the point, without zeros that say nothing."""
    part = (part or "").rstrip("0")
    return f".{part}" if part else ""
