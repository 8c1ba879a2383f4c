"""Secure sums: the coordinator learns what all workers' answers add up to, and no single one.

Every pair of workers agrees on a key (X25519); the one adds the key's stream of random words to
what it sends, the other subtracts it, so that what leaves a worker is uniformly random, and all
masks cancel in the sum. Words are whole numbers modulo 2^64, so real numbers become fixed-point
ones (`conche.network.words`). Against whom this helps, and against whom not: docs/security.md.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Array
from ..common.checks import flag
from ..common.extras import need
from ..errors import NetworkError, ParameterError
from ..nodes import Opening, Proposal
from ..nodes.solvers.mixing import SHARED_SECRET
from .base import Coefficients, total_array
from .words import (
    DIGITS,
    MOST_WORKERS,
    Scales,
    Shape,
    close,
    counts_of,
    digit_counts,
    form_of,
    key_of,
    number_of,
)

TRIES = 4  # at scales for one sum; two are enough, unless answers change when asked for again
FARTHEST = 400  # a scale is no power of two beyond that
TAIL = 3  # last rows of what a question is answered, which often are sums of squares below vectors
CHUNK = 1 << 14  # words that are masked together
NOTHING = memoryview(bytes(8 * CHUNK))
LABEL = b"conche secure sums"


class Veiled(NamedTuple):
    """A worker's answer, masked; or the sum of several."""

    words: Array
    shapes: tuple[Shape, ...]
    kind: Any  # what the answer is made of, without a number of it


class Veil:
    """One worker's masks: a key pair of its own, and a key with every other worker."""

    def __init__(self) -> None:
        self._private = _x25519().X25519PrivateKey.generate()
        self._keys: list[tuple[bytes, bool]] = []  # of every pair, and whether its words are added
        self._last = -1  # the last message that was masked

    def public(self) -> bytes:
        """What the others need to agree on a key with this one."""
        return bytes(self._private.public_key().public_bytes_raw())

    def meet(self, publics: Sequence[bytes]) -> None:
        """Agree on keys with all others. A text that workers share and the coordinator has not
        (CONCHE_SHARED_SECRET) goes into them, so that it cannot put keys of its own in between."""
        own, secret = self.public(), os.environ.get(SHARED_SECRET, "").encode() or None
        if len(set(publics)) != len(publics) or own not in publics:
            raise NetworkError("secure sums: the workers' keys do not belong together")
        self._keys = []
        for other in publics:
            if other != own:
                shared = self._private.exchange(_x25519().X25519PublicKey.from_public_bytes(other))
                info = LABEL + min(own, other) + max(own, other)
                self._keys.append((_derived(shared, secret, info), own < other))

    def sent(self, message: int, scales: Scales | None, answer: Any) -> Veiled:
        """An answer as it leaves this worker, for `Sums.total`."""
        arrays, kind = taken_apart(answer)
        shapes = tuple(Shape.of(array, TAIL if kind is None else 0) for array in arrays)
        return Veiled(self.hide(message, form_of(shapes).write(arrays, scales)), shapes, kind)

    def digits(self, message: int, level: int, known: Sequence[int], values: Array) -> Veiled:
        """The next digit of its numbers, if they begin as the largest do, for `Sums.largest`."""
        keys = key_of(values)
        words = digit_counts(keys, level, known or [0] * len(keys))
        return Veiled(self.hide(message, words), (), None)

    def hide(self, message: int, words: Array) -> Array:
        """The words of this message, masked. No stream of random words is ever used twice."""
        if not self._keys or message <= self._last:
            raise NetworkError(f"secure sums: message {message} after {self._last}")
        self._last = message
        hidden = words.copy()
        for key, adds in self._keys:
            _mask(hidden, np.add if adds else np.subtract, _stream(key, message))
        return hidden


class Sums:
    """The coordinator's side: it chooses scales, and reads what the masked words add up to."""

    def __init__(self) -> None:
        self._scales: dict[str, Scales] = {}  # of sums of this name, about something of size one
        self._steady: dict[str, bool] = {}  # whether those of the last sum served the next
        self._message = 0

    def forget(self) -> None:
        """Another stream: its numbers are of other sizes."""
        self._scales, self._steady = {}, {}

    def next_message(self) -> int:
        """A number that no message has had."""
        self._message += 1
        return self._message

    def total(
        self,
        name: str,
        ask: Callable[[Scales | None], Veiled],
        about: Array | None = None,
        before: str = "",
    ) -> Any:
        """The sum of answers that ``ask`` gets in words of these scales.

        Scales are guessed from the last sum of that name, or of the name ``before`` where this is
        the first, as if answers grew with what they are ``about``; and the bounds that come with
        the words say whether they serve. Where the last guess did not, the bounds come alone first:
        they are few.
        """
        size = size_of(about)
        like = name if name in self._scales else before
        guess = tuple(max(-FARTHEST, min(s - size, FARTHEST)) for s in self._scales.get(like, ()))
        scales = guess if self._steady.get(like) else None
        for _ in range(TRIES):
            answer = ask(scales)
            found, scales = form_of(answer.shapes).read(answer.words, scales)
            self._scales[name] = tuple(s + size for s in scales)
            self._steady[name] = close(guess, scales)
            if found is not None:
                return put_together(found, answer.kind)
        raise NetworkError(f"secure sums: {name} has no scale that serves")

    def largest(self, ask: Callable[[int, Sequence[int]], Veiled]) -> Array:
        """The largest of numbers that are zero or above: ``ask`` gets, for every entry, how many
        that begin with the given digits go on with each."""
        known: list[int] = []
        for level in range(DIGITS):
            counts = counts_of(ask(level, known).words)
            known = known or [0] * len(counts)
            tops = [int(np.flatnonzero(count)[-1]) for count in counts]
            known = [(prefix << 8) | top for prefix, top in zip(known, tops, strict=True)]
        return number_of(known)


def size_of(about: Array | None) -> int:
    """The power of two that an array is as large as; 0 without one."""
    if about is None:
        return 0
    largest = max(float(about.max()), -float(about.min()))
    return math.frexp(largest)[1] if 0 < largest < np.inf else 0


def check_secure(secure: Any) -> bool:
    """What a user says about secure sums, refused where they cannot be."""
    if flag("secure", secure):
        _x25519()
    return bool(secure)


def check_count(n_workers: int) -> None:
    """Refuse numbers of workers that cannot have secure sums."""
    if n_workers < 2:
        raise ParameterError("secure sums need two workers: the sum of one is what it sends")
    if n_workers > MOST_WORKERS:
        raise ParameterError(f"secure sums are for {MOST_WORKERS} workers at most")


def without_sums(shares: Sequence[Coefficients]) -> tuple[list[Coefficients], list[Array]]:
    """Nodes' shares without what is needed as a sum alone; and those sums."""
    kept = [one._replace(offset=0 * one.offset, reach=0 * one.reach) for one in shares]
    parts = ([one.offset for one in shares], [one.reach for one in shares])
    return kept, [total_array(part) for part in parts]


def taken_apart(answer: Any) -> tuple[list[Array], Any]:
    """An answer's arrays, and what they are put together to."""
    if isinstance(answer, Proposal):
        return [answer.image, *answer.scalars.values()], type(answer.scalars)
    if isinstance(answer, Opening):
        return [answer.predictions, answer.report, np.array([float(answer.mark)])], Opening
    return (answer, list) if isinstance(answer, list) else ([answer], None)


def put_together(arrays: list[Array], kind: Any) -> Any:
    """Back from `taken_apart`."""
    if kind is Opening:
        return Opening(arrays[0], arrays[1], int(arrays[2][0]))
    if kind is None or kind is list:
        return arrays if kind is list else arrays[0]
    return Proposal(arrays[0], kind(*arrays[1:]))


def _x25519() -> Any:
    return need("cryptography.hazmat.primitives.asymmetric.x25519", "secure", "secure sums")


def _derived(shared: bytes, secret: bytes | None, info: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), 32, secret, info).derive(shared)


def _stream(key: bytes, message: int) -> Any:
    """Random bytes: AES in counter mode, where a message has 2^64 blocks of its own."""
    ciphers = _ciphers()
    counter = ciphers.modes.CTR(message.to_bytes(8, "big") + bytes(8))
    return ciphers.Cipher(ciphers.algorithms.AES(key), counter).encryptor()


def _mask(words: Array, how: Any, stream: Any) -> None:
    """A part at a time, which stays near the processor."""
    for first in range(0, len(words), CHUNK):
        part = words[first : first + CHUNK]
        random = np.frombuffer(stream.update(NOTHING[: part.nbytes]), np.uint64)
        how(part, random, out=part)


@cache
def _ciphers() -> Any:
    from cryptography.hazmat.primitives import ciphers

    return ciphers
