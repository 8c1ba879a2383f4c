"""Merging directions with a task's rows, over nodes: B = [V; A] becomes V' (`conche.network.cut`).

A narrow block sends its rows once, rotated, and gets its directions back: that is less than what
would be asked about it. A wide one stays where it is, and sums over all of those say which
combinations of rows are best.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..common.arrays import Array, bytes_of, joined
from .base import CentralNetwork, Each, total_array
from .cut import OVERSAMPLING, Cut, Directions, Gathered, Known, exact_cut, range_cut


def columns_apart(V: Array, ends: Sequence[int]) -> list[Array]:
    """The columns between one end and the next."""
    return [V[:, first:last] for first, last in pairwise(ends)]


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
        sums: bool = False,
    ):
        self.inner, self.rows, self.rank, self.by_products = inner, rows, rank, by_products
        self.columns, self.sent, self.seed = sum(widths), 0, seed
        widest = rows if rows <= 2 * rank else rank + OVERSAMPLING
        self.narrow = [width <= widest and not sums for width in widths]
        self.wide = inner.hosts([not narrow for narrow in self.narrow])  # messages to wide blocks
        self.shown = sum(width for width in widths if width <= widest)  # columns of narrow blocks
        self.held = self._gathered()

    def run(self) -> tuple[Directions, float]:
        """V' for all nodes, each of which now has its own; and the largest norm of what any block
        has lost.

        What comes back of V' are the columns of narrow blocks.
        """
        if self.held is not None and not self.wide:
            found = self.held.directions(self.rank)
            return found, self._tell(found.V, None)
        cut = self._cut()
        V = None if self.held is None else cut.W.T @ self.held.B
        return Directions(V, *cut[1:]), self._tell(V, cut.W)

    def _cut(self) -> Cut:
        many = self.rows > 2 * self.rank
        if many and not self.by_products:
            return range_cut(self, self.rank, self.columns)
        products = self._sum("gram")
        if many:
            return range_cut(Known(products, self.seed), self.rank, self.columns)
        return exact_cut(products, self.rank, self.columns)

    def sketch(self, width: int) -> Array:
        """B B^T times random signs, of all nodes together."""
        return self._sum("sketch", width)

    def power(self, Q: Array) -> Array:
        """B B^T Q."""
        return self._sum("power", Q)

    def project(self, Q: Array) -> Array:
        """C C^T for C = Q^T B, and the squared norm of B below."""
        return self._sum("project", Q)

    def _gathered(self) -> Gathered | None:
        """The rows of narrow blocks, as they are shown; where all nodes are in one place, of all
        blocks: they count as sent as if they were not."""
        self.sent += 8 * self.rows * self.shown
        if self.inner.in_one_place:
            return Gathered(self.inner.ask("shown")[0], self.seed)
        if not any(self.narrow):
            return None
        answers = self.inner.ask(Each("shown" if narrow else None for narrow in self.narrow))
        parts = [part for part, narrow in zip(answers, self.narrow, strict=True) if narrow]
        self.ends = np.cumsum([0, *(part.shape[1] for part in parts)]).tolist()
        return Gathered(joined(parts, 1), self.seed)

    def _sum(self, question: str, *about: Any) -> Array:
        """What is held here, and what wide blocks answer."""
        answer = None if self.held is None else getattr(self.held, question)(*about)
        if self.held is None:
            answer = self.inner.total(question, *about)
        elif not self.inner.in_one_place:
            each = Each(None if narrow else question for narrow in self.narrow)
            own = (Each(None if narrow else x for narrow in self.narrow) for x in about)
            answer = total_array([answer, self.inner.total(each, *own)])
        about_them = sum(bytes_of(x) for x in about if hasattr(x, "shape"))
        self.sent += self.wide * (bytes_of(answer) + about_them)
        return answer

    def _tell(self, V: Array | None, W: Array | None) -> float:
        """Every narrow block its directions, every wide one how to find its own."""
        rank = 0 if V is None else V.shape[0]
        self.sent += 8 * rank * self.shown + (0 if W is None else self.wide * bytes_of(W))
        if self.inner.in_one_place:
            return float(self.inner.largest("told", V)[0])
        if V is None:
            return float(self.inner.largest("merge", W)[0])
        own = iter(columns_apart(V, self.ends))
        told = Each(next(own) if narrow else W for narrow in self.narrow)
        how = Each("told" if narrow else "merge" for narrow in self.narrow)
        return float(self.inner.largest(how, told)[0])
