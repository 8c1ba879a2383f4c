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
from .tables import Table

DIGEST = 16  # bytes: two of a billion keys are the same with a chance below 1e-20
BETWEEN = "\x1f"  # between the parts of a key of several columns
SHOWN = 3  # keys that a message lists


class Keys(NamedTuple):
    """The keys of a task's rows, in order, as they travel."""

    kinds: tuple[str, ...]  # of the key's columns: number or text
    salt: bytes | None  # None: plain keys
    values: Array  # digests (rows of bytes), or texts

    @classmethod
    def of(
        cls, table: Table, columns: Sequence[str], salt: bytes | None, rows: Array | None = None
    ) -> Keys:
        """The keys of a table's rows; each may be there once."""
        check_key(table, columns)
        parts = [table.values(name, rows) for name in columns]
        kinds = tuple("number" if part.dtype.kind in "biuf" else "text" for part in parts)
        texts = key_texts(parts)
        twice = [(text, n) for text, n in Counter(texts).items() if n > 1]
        if twice:
            more = f" (and {len(twice) - 1} more keys are there twice)" if len(twice) > 1 else ""
            raise StreamError(
                f"{table.path}: the key {shown(twice[0][0])} is in {twice[0][1]} rows{more}"
            )
        return cls(kinds, salt, np.array(texts) if salt is None else sealed(texts, salt))

    def only(self, rows: Array) -> Keys:
        """Of some rows."""
        return self._replace(values=self.values[rows])

    def order(self, own: Keys, columns: Sequence[str], where: str) -> Array:
        """Which of ``own`` rows each of these keys is; -1: none."""
        for name, here, there in zip(columns, own.kinds, self.kinds, strict=True):
            if here != there:
                raise StreamError(
                    f"{where}: the key {name!r} is a {here} here, and a {there} beside the target"
                )
        places = {value: i for i, value in enumerate(_hashable(own.values))}
        return np.array([places.get(key, -1) for key in _hashable(self.values)], dtype=np.intp)


def check_key(table: Table, columns: Sequence[str]) -> None:
    """Refuse a table without the key."""
    for name in columns:
        if not table.has(name):
            said = f"no {table.noun} {name!r} for the key{table.hint(name)}"
            raise StreamError(f"{table.path}: {said}")


def key_texts(parts: Sequence[Array]) -> list[str]:
    """One text a row; 7 and 7.0 are the same number, however a file has stored it.

    >>> key_texts([np.array([7.0, 8.5]), np.array(["a", "b"])])
    ['7\\x1fa', '8.5\\x1fb']
    """
    columns = [[_text(value) for value in part.tolist()] for part in parts]
    return columns[0] if len(columns) == 1 else list(map(BETWEEN.join, zip(*columns, strict=True)))


def _text(value: Any) -> str:
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    return str(value)


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
