"""Secure sums on Ray: what the driver gets of a worker's answers is masked.

A worker that fails takes its keys with it. So whoever takes its place makes new ones, all others
too, and the sum is asked for again: workers answer what they noted, under other masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..common.arrays import Array
from ..nodes import NodeState
from .base import Coefficients
from .ray_crew import Crew
from .ray_worker import First, Worker
from .secure import Sums, Veil, Veiled, without_sums
from .words import Scales


class SecureWorker(Worker):
    """A worker that masks what it answers."""

    veil: Veil | None = None
    own: tuple[int, Any] | None = None  # the last answer, and its number
    ended: tuple[list[Coefficients], list[NodeState]] | None = None

    def key(self) -> bytes:
        """Make a new key pair; answers its public half."""
        self.veil = Veil()
        return self.veil.public()

    def meet(self, publics: Sequence[bytes]) -> None:
        """Agree on keys with all other workers."""
        assert self.veil is not None
        self.veil.meet(publics)

    def masked(
        self, message: int, scales: Scales | None, number: int, method: str, *call: Any
    ) -> Veiled | None:
        """The answer to the call of that number; nothing before there are keys."""
        answer = self._own(number, method, *call)
        return None if self.veil is None else self.veil.sent(message, scales, answer)

    def digits(
        self, message: int, level: int, known: Sequence[int], number: int, method: str, *call: Any
    ) -> Veiled | None:
        """The same, of an answer of which the largest is wanted: its next digit."""
        answer = self._own(number, method, *call)
        return None if self.veil is None else self.veil.digits(message, level, known, answer)

    def _own(self, number: int, method: str, *call: Any) -> Any:
        """As `once`, which may be noting what is made of it: the answer, to be masked again."""
        if self.own is None or self.own[0] != number:
            self.own = (number, getattr(self, method)(*call))
        return self.own[1]

    def account(
        self, first: First, curvature: Array | None, moves: Sequence[Array] | None
    ) -> list[Array]:
        """End the task; what every node adds to the intercept and to rounding, summed."""
        shares, states = super().end(first, curvature, moves)
        kept, sums = without_sums(shares)
        self.ended = kept, states
        return sums

    def end(
        self, first: First, curvature: Array | None, moves: Sequence[Array] | None
    ) -> tuple[list[Coefficients], list[NodeState]]:
        """What is left to be handed over after `account`."""
        assert self.ended is not None
        return self.ended

    def forget(self) -> None:
        super().forget()
        self.own = self.ended = None


class SecureCrew(Crew):
    """Workers whose sums are secure, where that is asked for."""

    secure: bool
    _sums: Sums
    _rounds: int  # of the task so far

    def _worker(self) -> type[Worker]:
        return SecureWorker if self.secure else Worker

    def _meet(self) -> None:
        """New keys for all workers: until none has failed in the meantime."""
        before = -1
        while self.failures != before:
            before = self.failures
            publics = self._all("key", [()] * len(self.workers))
            self._all("meet", [(publics,)] * len(self.workers))

    def _added(
        self, method: str, calls: Sequence[tuple[Any, ...]], about: Array | None = None
    ) -> Any:
        if not self.secure:
            return super()._added(method, calls)
        self._number += 1
        name, before, number = method, "", self._number
        if method == "total":
            name = f"total {calls[0][1]}"
        elif method == "propose":  # later ones are far smaller, in every task alike
            name, before = (f"round {self._rounds - ago}" for ago in (0, 1))

        def ask(scales: Scales | None) -> Veiled:
            return self._masked("masked", (scales, number, method), calls)

        return self._sums.total(name, ask, about, before)

    def _largest(self, method: str, calls: Sequence[tuple[Any, ...]]) -> Array:
        if not self.secure:
            return super()._largest(method, calls)
        self._number += 1
        number = self._number

        def ask(level: int, known: Sequence[int]) -> Veiled:
            return self._masked("digits", (level, tuple(known), number, method), calls)

        return self._sums.largest(ask)

    def _masked(self, how: str, about: tuple[Any, ...], calls: Sequence[tuple[Any, ...]]) -> Veiled:
        """The sum of what all workers send; again, with new keys, where one has been replaced."""
        while True:
            before, message = self.failures, self._sums.next_message()
            told = {id(call): (message, *about, *call) for call in calls}
            answer: Veiled | None = super()._added(how, [told[id(call)] for call in calls])
            if answer is not None and self.failures == before:
                return answer
            self._meet()
