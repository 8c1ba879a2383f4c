"""Real numbers as words modulo 2^64, whose sums cannot overflow.

A *wide* number has eight words of 48 bits each, with its sign: a whole multiple of 2^-176, below
2^192. Sums of up to 2^15 of them are exact: a word is below 2^48 in size, so their sum is below
2^63. Few numbers are sent this way, those that are no part of a long vector.

The entries of a long vector share a *scale* s and have one word each, round(x 2^s). With it every
worker sends the largest of its |x|, as a wide number, and the coordinator sees their sum B. Every
entry of the sum is B at most; s serves where B 2^s is at most 2^62, so no sum wraps (rounding adds
2^14 at most), and at least 2^52, so that rounding to words costs no more than 2^-53 of B a worker:
what doubles themselves round to. Where s does not serve, the words are thrown away and asked for
again with one that does. What the coordinator learns beside the sum is B.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Array

LIMBS, BITS, UNIT = 8, 48, 176  # words of a wide number, bits of a word, and 2^-UNIT is its unit
LARGEST = 2.0**180  # what is sent as a number; beyond, or no number at all, as POISON
POISON = 2.0**188  # in a sum: one of the terms was no number
MOST_WORKERS = 1 << 15
LOW, GOAL, HIGH = 52, 57, 62  # log2 of B 2^s: at least, to aim at, and at most
FEW = 16  # numbers that are sent wide, and columns that have scales of their own
TAIL = 3  # last rows, which may have other units than those above them
DIGITS = 8  # of a double's order, 8 bits each
PACKED = 4  # counts in a word, 16 bits each
Scales = tuple[int, ...]


class Shape(NamedTuple):
    """Of an array that is sent."""

    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, array: Array) -> Shape:
        """This one's."""
        return cls(array.dtype.str, array.shape)


class Form:
    """What a message of arrays of these shapes looks like: wide numbers first (few entries, and a
    bound for every group of entries that share a scale), then the groups' words."""

    def __init__(self, shapes: Sequence[Shape]):
        self.shapes = tuple(shapes)
        sizes = [int(np.prod(shape)) for _, shape in self.shapes]
        self.size = sum(sizes)
        self.few: list[int] = []  # places of entries that are sent wide
        self.groups: list[Array] = []  # places of entries that share a scale
        for first, (_, shape) in zip(np.cumsum([0, *sizes]), self.shapes, strict=False):
            for places in _cut(shape):
                if len(places) <= FEW:
                    self.few += (first + places).tolist()
                else:
                    self.groups.append(first + places)

    def write(self, arrays: Sequence[Array], scales: Scales | None) -> Array:
        """The words of these arrays; without scales, of the wide numbers alone."""
        flat = np.concatenate([np.asarray(a, dtype=float).ravel() for a in arrays] or [np.zeros(0)])
        flat = np.where(np.abs(flat) <= LARGEST, flat, np.where(flat != 0, POISON, 0.0))
        bounds = [float(np.max(np.abs(flat[places]))) for places in self.groups]
        parts = [_wide([*flat[self.few].tolist(), *bounds])]
        if scales is not None and len(scales) == len(self.groups):
            parts += [_narrow(flat[g], s) for g, s in zip(self.groups, scales, strict=True)]
        return np.concatenate(parts)

    def read(self, words: Array, scales: Scales | None) -> tuple[list[Array] | None, Scales]:
        """The arrays that the words are the sums of, None where the scales do not serve; and those
        that would."""
        count = len(self.few) + len(self.groups)
        numbers = _from_wide(words[: count * LIMBS])
        bounds = numbers[len(self.few) :]
        better = tuple(map(_goal, bounds))
        given = scales if scales is not None and len(scales) == len(bounds) else None
        if bounds and (given is None or not all(map(_serves, bounds, given))):
            return None, better
        flat = np.empty(self.size)
        flat[self.few] = [_number(x) for x in numbers[: len(self.few)]]
        ends = np.cumsum([count * LIMBS, *(len(places) for places in self.groups)])
        parts = zip(self.groups, pairwise(ends), bounds, given or (), strict=True)
        for places, (first, last), bound, s in parts:
            own = words[first:last].astype(np.uint64).view(np.int64)
            flat[places] = np.ldexp(own.astype(float), -s) if bound < POISON / 2 else np.nan
        return list(self._arrays(flat)), better

    def _arrays(self, flat: Array) -> Iterator[Array]:
        first = 0
        for dtype, shape in self.shapes:
            last = first + int(np.prod(shape))
            yield flat[first:last].reshape(shape).astype(dtype)
            first = last


@lru_cache(maxsize=64)
def form_of(shapes: tuple[Shape, ...]) -> Form:
    """The form of a message; rounds have the same again and again."""
    return Form(shapes)


def _cut(shape: tuple[int, ...]) -> Iterator[Array]:
    """Places of entries that may share a scale: of few columns each its own, of many all; but the
    last rows apart, which often are sums of squares below vectors."""
    rows = shape[0] if shape else 1
    columns = int(np.prod(shape[1:]))
    places = np.arange(rows * columns).reshape(rows, columns)
    body = max(rows - TAIL, 0)
    if rows * columns <= FEW:
        yield places.ravel()
        return
    if body:
        yield from places[:body].T if columns <= FEW else [places[:body].ravel()]
    yield from places[body:]


def _narrow(x: Array, s: int) -> Array:
    """Words of a scale that may turn out not to serve: then they are not read."""
    limit = 2.0**HIGH
    return np.rint(np.clip(np.ldexp(x, s), -limit, limit)).astype(np.int64).view(np.uint64)


def _wide(numbers: Sequence[float]) -> Array:
    """LIMBS words each."""
    words = np.zeros((len(numbers), LIMBS), dtype=np.int64)
    mask = (1 << BITS) - 1
    for row, x in zip(words, numbers, strict=True):
        top, bottom = abs(x).as_integer_ratio()
        whole, sign = (top << UNIT) // bottom, -1 if x < 0 else 1
        row[:] = [sign * ((whole >> (BITS * i)) & mask) for i in range(LIMBS)]
    return words.ravel().view(np.uint64)


def _from_wide(words: Array) -> list[float]:
    rows = words.astype(np.uint64).view(np.int64).reshape(-1, LIMBS).tolist()
    return [float(sum(w << (BITS * i) for i, w in enumerate(row)) / (1 << UNIT)) for row in rows]


def _number(x: float) -> float:
    return x if abs(x) < POISON / 2 else np.nan


def _serves(bound: float, s: int) -> bool:
    if bound == 0 or bound >= POISON / 2:
        return True
    return 2.0**LOW <= float(np.ldexp(bound, s)) <= 2.0**HIGH


def _goal(bound: float) -> int:
    return 0 if bound == 0 else GOAL - int(np.frexp(bound)[1])


# ---- the order of numbers, digit by digit ----


def key_of(values: Array) -> list[int]:
    """Whole numbers in the order of these, which are zero or above."""
    return [int(key) for key in np.ascontiguousarray(values, dtype=float).ravel().view(np.uint64)]


def number_of(keys: Sequence[int]) -> Array:
    """Back from `key_of`."""
    return np.array(keys, dtype=np.uint64).view(float)


def digit_counts(keys: Sequence[int], level: int, prefixes: Sequence[int]) -> Array:
    """One count of 1, at the next digit of every number that begins with its prefix."""
    counts = np.zeros((len(keys), 256), dtype=np.uint64)
    for count, key, prefix in zip(counts, keys, prefixes, strict=True):
        if key >> (64 - 8 * level) == prefix:
            count[(key >> (56 - 8 * level)) & 255] = 1
    shifts = 16 * np.arange(PACKED, dtype=np.uint64)
    packed: Any = np.sum(counts.reshape(len(keys), -1, PACKED) << shifts, axis=-1, dtype=np.uint64)
    return np.asarray(packed.ravel())


def counts_of(words: Array) -> Array:
    """The counts of all workers, for every entry, from the sum of their words."""
    shifts = 16 * np.arange(PACKED, dtype=np.uint64)
    return ((words.reshape(-1, 256 // PACKED, 1) >> shifts) & np.uint64(0xFFFF)).reshape(-1, 256)
