"""Real numbers as words modulo 2^64, whose sums cannot overflow.

A *wide* number has eight words of 48 bits each, with its sign: a whole multiple of 2^-176, below
2^208. Sums of up to 2^15 of them are exact: a word is below 2^48 in size, so their sum is below
2^63. Few numbers are sent this way, those that are no part of a long vector.

The entries of a long vector share a *scale* s and have one word each, round(x 2^s). With it every
worker sends the largest of its |x|, as a wide number, and the coordinator sees their sum B. Every
entry of the sum is B at most; s serves where B 2^s is at most 2^62, so no sum wraps (rounding adds
2^14 at most), and at least 2^48, so that rounding to words costs no more than 2^-49 of B a worker;
the aim is 2^57, where it costs a sixteenth of what doubles round to themselves. Where s does not
serve, the words are thrown away and asked for again with one that does. What the coordinator learns
beside the sum is B.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Array

LIMBS, BITS, UNIT = 8, 48, 176  # words of a wide number, bits of a word, and 2^-UNIT is its unit
LIMB, SHIFTS = (1 << BITS) - 1, range(0, BITS * LIMBS, BITS)
LARGEST = 2.0**170  # what is sent as a number; beyond, or no number at all, as POISON
POISONED = 190
POISON = 2.0**POISONED  # in a sum: one of the terms was no number
MOST_WORKERS = 1 << 15
LOW, GOAL, HIGH = 48, 57, 62  # log2 of B 2^s: at least, to aim at, and at most
FEW = 16  # numbers that are sent wide; a longer column has a scale of its own
DIGITS = 8  # of a double's order, 8 bits each
PACKED = 4  # counts in a word, 16 bits each
Scales = tuple[int, ...]


class Shape(NamedTuple):
    """Of an array that is sent."""

    dtype: str
    shape: tuple[int, ...]
    tail: int = 0  # last rows that may be of other sizes than those above them

    @classmethod
    def of(cls, array: Array, tail: int = 0) -> Shape:
        """This one's."""
        return cls(array.dtype.str, array.shape, tail)


class Form:
    """What a message of arrays of these shapes looks like: wide numbers first (a bound for every
    group of entries that share a scale, and few entries), then the groups' words."""

    def __init__(self, shapes: Sequence[Shape]):
        self.shapes = tuple(shapes)
        sizes = [math.prod(one.shape) for one in self.shapes]
        self.firsts = np.cumsum([0, *sizes]).tolist()  # where every array begins, and all end
        self.few: list[int] = []  # places of entries that are sent wide
        self.groups: list[Array | slice] = []  # places of entries that share a scale
        counts: list[int] = []
        for first, one in zip(self.firsts, self.shapes, strict=False):
            for places in _cut(one):
                if len(places) <= FEW:
                    self.few += (first + places).tolist()
                else:
                    self.groups.append(_as_slice(first + places))
                    counts.append(len(places))
        head = LIMBS * (len(self.few) + len(self.groups))
        self.ends = np.cumsum([head, *counts]).tolist()  # of wide numbers' words, and each group's

    def write(self, arrays: Sequence[Array], scales: Scales | None) -> Array:
        """The words of these arrays; where there are no scales yet, of their bounds alone."""
        flats = [np.asarray(array, dtype=float).ravel() for array in arrays]
        flat = flats[0] if len(flats) == 1 else np.concatenate(flats or [np.zeros(0)])
        own = [flat[places] for places in self.groups]
        bounds = [_bound(x) for x in own]
        if len(scales or ()) != len(own):  # those of a longer message, or none yet
            scales = None
        if own and scales is None:
            return _wide(bounds).view(np.uint64)
        head = _wide([*bounds, *map(_sent, flat[self.few].tolist())])
        words = np.empty(self.ends[-1], dtype=np.int64)
        words[: len(head)] = head
        parts = zip(own, scales or (), bounds, pairwise(self.ends), strict=True)
        for x, s, bound, (first, last) in parts:
            words[first:last] = _narrow(x, s, bound)
        return words.view(np.uint64)

    def read(self, words: Array, scales: Scales | None) -> tuple[list[Array] | None, Scales]:
        """The arrays that the words are the sums of, None where the scales do not serve; and those
        that would."""
        numbers = _from_wide(words[: self.ends[0]])
        bounds = numbers[: len(self.groups)]
        better = tuple(map(_goal, bounds))
        given = scales if scales is not None and len(scales) == len(bounds) else None
        if bounds and (given is None or not all(map(_serves, bounds, given))):
            return None, better
        flat = np.empty(self.firsts[-1])
        flat[self.few] = [_number(x) for x in numbers[len(bounds) :]]
        parts = zip(self.groups, pairwise(self.ends), bounds, given or (), strict=True)
        for places, (first, last), bound, s in parts:
            whole = words[first:last].view(np.int64)
            flat[places] = whole * 2.0**-s if bound < POISON / 2 else np.nan
        each = zip(self.shapes, pairwise(self.firsts), strict=True)
        return [
            flat[first:last].reshape(one.shape).astype(one.dtype, copy=False)
            for one, (first, last) in each
        ], better


@lru_cache(maxsize=64)
def form_of(shapes: tuple[Shape, ...]) -> Form:
    """The form of a message; rounds have the same again and again."""
    return Form(shapes)


def _cut(one: Shape) -> Iterator[Array]:
    """Places of entries that share a scale: columns, but where they are short; and the last rows
    apart."""
    rows = one.shape[0] if one.shape else 1
    columns = math.prod(one.shape[1:])
    places = np.arange(rows * columns).reshape(rows, columns)
    body = max(rows - one.tail, 0)
    if rows * columns <= FEW:
        yield places.ravel()
        return
    if body:
        yield from places[:body].T if body > FEW else [places[:body].ravel()]
    yield from places[body:]


def _as_slice(places: Array) -> Array | slice:
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if last - first + 1 == len(places) else places


def _sent(x: float) -> float:
    return x if abs(x) <= LARGEST else POISON


def _bound(x: Array) -> float:
    """The largest |x|; POISON where it is no number, or too large."""
    return _sent(max(float(x.max()), -float(x.min())))


def _narrow(x: Array, s: int, bound: float) -> Array:
    """Words; where the scale cannot serve, any: nobody is to read them, and if they were zero, the
    sum would be that of the other workers alone."""
    if bound == POISON or bound > 2.0 ** (HIGH - s):
        return np.frombuffer(os.urandom(8 * len(x)), np.int64)
    scaled = x * 2.0**s
    return np.rint(scaled, out=scaled)


def _wide(numbers: Sequence[float]) -> Array:
    """LIMBS words each, of BITS bits; all have the number's sign."""
    words = []
    for x in numbers:
        whole, sign = _multiple(abs(x)), -1 if x < 0 else 1
        words += [sign * (whole >> shift & LIMB) for shift in SHIFTS]
    return np.array(words, dtype=np.int64)


def _multiple(x: float) -> int:
    """How many units fit x. What stands for no number is any that is so large, for the others'
    numbers to drown in."""
    if x == POISON:
        return (1 << (POISONED + UNIT)) + secrets.randbits(POISONED + UNIT)
    part, power = math.frexp(x)
    shift = power + UNIT - 53
    whole = int(part * 2.0**53)
    return whole << shift if shift >= 0 else whole >> -shift


def _from_wide(words: Array) -> list[float]:
    rows = words.view(np.int64).reshape(-1, LIMBS).tolist()
    wholes = (sum(w << shift for w, shift in zip(row, SHIFTS, strict=True)) for row in rows)
    return [float(whole / (1 << UNIT)) for whole in wholes]


def _number(x: float) -> float:
    return x if abs(x) < POISON / 2 else np.nan


def _serves(bound: float, s: int) -> bool:
    if bound == 0 or bound >= POISON / 2:
        return True
    return 2.0**LOW <= math.ldexp(bound, s) <= 2.0**HIGH


def _goal(bound: float) -> int:
    return 0 if bound == 0 else GOAL - math.frexp(bound)[1]


def close(guess: Scales, better: Scales) -> bool:
    """Whether a guess would have served where these are better."""
    if len(guess) != len(better):
        return False
    return all(LOW < GOAL + a - b < HIGH for a, b in zip(guess, better, strict=True))


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
