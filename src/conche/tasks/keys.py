"""Keys: what rows of one task are matched by where every node has files of its own.

The target says which keys a task has, in which order; every node puts its rows into that order.
Keys travel as digests with a salt, unless plain ones are asked for. Who has no salt learns nothing
from a digest. Nodes do have it: they know which of the target's keys they hold themselves, and a
key that can be guessed (an hour, a number below a million) they can find by trying.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Array
from ..errors import StreamError
from .key_texts import key_text, kind_of
from .tables import Table

DIGEST = 16  # bytes: two of a billion keys are the same with a chance below 1e-20
BETWEEN = "\x1f"  # between the parts of a key of several columns
SHOWN = 3  # keys that a message lists


class Keys(NamedTuple):
    """The keys of a task's rows, in order, as they travel."""

    kinds: tuple[str, ...]  # of the key's columns: number, time, text, ...
    salt: bytes | None  # None: plain keys
    values: Array  # digests (rows of bytes), or texts

    @classmethod
    def of(
        cls,
        table: Table,
        columns: Sequence[str],
        salt: bytes | None,
        rows: Array | None = None,
        tell: bool = True,
    ) -> Keys:
        """The keys of a table's rows; each may be there once. Errors ``tell`` them, or rows."""
        check_key(table, columns)
        parts = [list(map(key_text, table.spelled(name, rows))) for name in columns]
        texts = joined(parts)
        _check_once(table, texts, rows, tell)
        values = np.array(texts) if salt is None else sealed(texts, salt)
        return cls(tuple(map(kind_of, parts)), salt, values)

    def only(self, rows: Array) -> Keys:
        """Of some rows."""
        return self._replace(values=self.values[rows])

    def order(self, own: Keys) -> Array:
        """Which of ``own`` rows each of these keys is; -1: none."""
        places = {value: i for i, value in enumerate(_hashable(own.values))}
        return np.array([places.get(key, -1) for key in _hashable(self.values)], dtype=np.intp)


def check_key(table: Table, columns: Sequence[str]) -> None:
    """Refuse a table without the key."""
    for name in columns:
        check_column(table, name, "key")


def check_column(table: Table, name: str, what: str) -> None:
    """Refuse a table without a column."""
    if not table.has(name):
        said = f"no {table.noun} {name!r} for the {what}{table.hint(name)}"
        raise StreamError(f"{table.path}: {said}")


def joined(parts: Sequence[Sequence[str]]) -> list[str]:
    """One text a row of a key's columns.

    >>> joined([["7", "8.5"], ["a", "b"]])
    ['7\\x1fa', '8.5\\x1fb']
    """
    return list(parts[0]) if len(parts) == 1 else list(map(BETWEEN.join, zip(*parts, strict=True)))


def _check_once(table: Table, texts: Sequence[str], rows: Array | None, tell: bool) -> None:
    """Refuse a key that is there twice; a node's own is told as row numbers."""
    twice = [text for text, n in Counter(texts).items() if n > 1]
    if not twice:
        return
    more = f" (and {len(twice) - 1} more keys are there twice)" if len(twice) > 1 else ""
    places = [i if rows is None else int(rows[i]) for i, t in enumerate(texts) if t == twice[0]]
    if tell:
        said = f"the key {shown(twice[0])} is in {len(places)} rows"
    else:
        some = ", ".join(str(place + 1) for place in places[:SHOWN])
        said = f"rows {some}{', ...' if len(places) > SHOWN else ''} have the same key"
    raise StreamError(f"{table.path}: {said}{more}")


def differing(columns: Sequence[str], own: Sequence[str], others: Sequence[str]) -> str:
    """Which of a key's columns is of another kind than beside the target, for a message."""
    for name, here, there in zip(columns, own, others, strict=True):
        if here != there:
            return f": the key {name!r} is a {here} here, and a {there} beside the target"
    return ""


def sealed(texts: Sequence[str], salt: bytes) -> Array:
    """Keys as they travel: a row of bytes each."""
    found = b"".join(
        hashlib.blake2b(text.encode(), digest_size=DIGEST, key=salt).digest() for text in texts
    )
    return np.frombuffer(found, np.uint8).reshape(-1, DIGEST)


def _hashable(values: Array) -> list[Any]:
    if values.dtype == np.uint8:
        whole = values.tobytes()
        return [whole[i : i + DIGEST] for i in range(0, len(whole), DIGEST)]
    return list(values.tolist())


def shown(text: str) -> str:
    """A key for a person.

    >>> shown("2013\\x1f7")
    "'2013, 7'"
    """
    return repr(", ".join(text.split(BETWEEN)))
