"""Merging directions with a task's rows, over nodes: B = [V; A] becomes V' (`conche.network.cut`).

A narrow block sends its rows once, rotated, and gets its directions back: that is less than what
would be asked about it. A wide one stays where it is, and sums over all of those say which
combinations of rows are best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..common.arrays import Array
from .base import CentralNetwork, Each, total_array
from .cut import OVERSAMPLING, Cut, Directions, Gathered, Known, exact_cut, range_cut


class Merge:
    """One merge of all nodes' rows."""

    def __init__(
        self,
        inner: CentralNetwork,
        widths: Sequence[int],
        rows: int,
        rank: int,
        seed: int,
        by_products: bool = False,
    ):
        self.inner, self.rows, self.rank, self.by_products = inner, rows, rank, by_products
        self.columns, self.sent, self.seed = sum(widths), 0, seed
        widest = rows if rows <= 2 * rank else rank + OVERSAMPLING
        self.narrow = [width <= widest for width in widths]
        self.wide = len(widths) - sum(self.narrow)
        parts = self._of_narrow() if any(self.narrow) else []
        self.ends = np.cumsum([part.shape[1] for part in parts])[:-1]
        held = np.hstack(parts) if parts else np.zeros((rows, 0))
        self.held = Gathered(held, np.random.default_rng([seed, rows]))

    def run(self) -> tuple[Directions, list[Array]]:
        """V' for all nodes, each of which now has its own; and what they say of it.

        What comes back of V' are the columns of narrow blocks.
        """
        if not self.wide:
            found = self.held.directions(self.rank)
            return found, self._tell(found.V, None)
        cut = self._cut()
        V = cut.W.T @ self.held.B
        return Directions(V, cut.squares, cut.norm), self._tell(V, cut.W)

    def _cut(self) -> Cut:
        many = self.rows > 2 * self.rank
        if many and not self.by_products:
            return range_cut(self, self.rank, self.columns)
        products = self._of_wide("gram") + self.held.B @ self.held.B.T
        if many:
            return range_cut(Known(products, self.seed), self.rank, self.columns)
        return exact_cut(products, self.rank, self.columns)

    def sketch(self, width: int) -> Array:
        """B times random columns, of all nodes together."""
        return self._of_wide("sketch", width) + self.held.sketch(width)

    def power(self, Q: Array) -> Array:
        """B B^T Q."""
        return self._of_wide("power", Q) + self.held.power(Q)

    def project(self, Q: Array) -> Array:
        """C C^T for C = Q^T B, and the squared norm of B below."""
        return self._of_wide("project", Q) + self.held.project(Q)

    def _of_narrow(self) -> list[Array]:
        """Their rows, as they are shown."""
        answers = self.inner.ask(Each("shown" if narrow else None for narrow in self.narrow))
        parts = [part for part, narrow in zip(answers, self.narrow, strict=True) if narrow]
        self.sent += sum(part.nbytes for part in parts)
        return parts

    def _of_wide(self, question: str, *about: Any) -> Array:
        """The sum of what they answer."""
        if not any(self.narrow):
            answer = self.inner.total(question, *about)
        else:
            each = Each(None if narrow else question for narrow in self.narrow)
            own = (Each(None if narrow else x for narrow in self.narrow) for x in about)
            answers = zip(self.inner.ask(each, *own), self.narrow, strict=True)
            answer = total_array([part for part, narrow in answers if not narrow])
        about_them = sum(getattr(x, "nbytes", 0) for x in about)
        self.sent += self.wide * (answer.nbytes + about_them)
        return answer

    def _tell(self, V: Array, W: Array | None) -> list[Array]:
        """Every narrow block its directions, every wide one how to find its own."""
        self.sent += V.nbytes + (0 if W is None else self.wide * W.nbytes)
        own = iter(np.split(V, self.ends, axis=1))
        told = Each(next(own) if narrow else W for narrow in self.narrow)
        how = Each("told" if narrow else "merge" for narrow in self.narrow)
        return self.inner.ask(how, told)
