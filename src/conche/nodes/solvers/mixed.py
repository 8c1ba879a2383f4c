"""Lossless memory by sums: all columns meet at the coordinator, turned by a rotation nobody knows.

Where all columns together are no more than the rank, nothing of the past needs to be cut, and one
node that has them all solves a task in one step (`conche.nodes.solvers.pooled`). Where the
coordinator is to see sums over nodes alone, they come to it as one:

    Y = sum_k B_k O_k,    B_k = [V_k; A_k],    O = [O_1; ...; O_K] orthogonal,

V_k the node's columns of a root of the past, A_k those of the task, both in units of the ridge.
Penalty and residuals are the same in any rotated coordinates. Node k draws normal numbers of its
own; the sum over nodes of their products says by which triangle all are to be divided to become
orthogonal together. What results is uniform over all rotations whatever that triangle is, so Y
shows the inner products of rows over all nodes' columns, and nothing else. O is drawn anew in
every task. Where columns change their unit between two tasks, who has kept the past's rows from
the last one can still tell how, and so which they are (docs/security.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...common.arrays import (
    Array,
    Block,
    as_dense,
    gram,
    is_here,
    joined,
    like,
    scale_columns,
    space,
    zeros,
)
from ...common.linear import diagonal, solve_upper
from ..layout import Layout
from ..scaling import Kept
from ..spread import Look
from .base import Context, Meeting, Solver, Subproblem
from .cholesky import Cholesky
from .information import Information, triangle
from .one_node import ByGram, ByRoot, OneNode, Together
from .pooled import own_generator
from .ridge import Ridged, Units, may_change
from .stretched import Stretched

HARMLESS = 1e-4  # reciprocal condition of a Gram matrix whose root is as good as that of its rows


@dataclass(frozen=True)
class MixedMemory(Ridged["MixedBlock"]):
    """A node's part: it keeps its ridge, and its columns of a root of the past."""

    draws: ClassVar[bool] = True

    @property
    def meeting(self) -> Meeting:
        """At the coordinator, mixed."""
        return Meeting.MIXED

    @property
    def news(self) -> frozenset[str]:
        """What turns a node's coordinates, and what it is to keep."""
        return frozenset({"turn", "rows", "keep"})

    def coordinator(self) -> Solver[Any]:
        """One node that has all columns."""
        return Whole()

    def report(self, block: Block, kept: Kept, look: Look) -> Array:
        """Also whether its ridge may be another than the last task's."""
        may = bool(kept) and may_change(kept)
        return np.append(super().report(block, kept, look), may)

    def agree(self, report: Array, context: Context) -> Context:
        return replace(super().agree(report[:3], context), turning=bool(report[3]))

    def factorise(self, block: Block, weights: Array, kept: Kept, context: Context) -> MixedBlock:
        """Nothing is factorised here: the rows are made ready to be sent."""
        units = self.units(block, kept, context)
        change = np.ones(block.shape[1]) if units.change is None else units.change
        V = zeros(weights, 0, block.shape[1])
        if "principal" in kept:
            V = scale_columns(kept["principal"], change)
        pull = like(weights, ((context.discount * change**2 - 1.0) * units.size)[:, None]) * weights
        drawn = None
        if context.apart:
            plain = block.shape[1] - context.holds_intercept
            rng = np.random.default_rng()  # from the system: not even a seed may tell
            if not context.secure:
                rng = own_generator(self.seed, context.task, context.node, block.shape[1])
            drawn = like(weights, rng.standard_normal((plain, mixed_columns(context))))
        return MixedBlock(units, V, pull, drawn, context)

    def laid_out(self, kept: Kept, layout: Layout) -> Kept:
        new = dict(super().laid_out(kept, layout))
        if "principal" in kept:
            new["principal"] = layout.along(kept["principal"], 1)
        return new

    def remember(
        self, block: Block, kept: Kept, context: Context, sub: MixedBlock, curvature: Array | None
    ) -> Kept:
        """The ridge, and the new root."""
        new = self.settled(block, kept, context, sub.units.size)
        return new | {"principal": sub.past(curvature)}


def mixed_columns(context: Context) -> int:
    """Of all nodes. The intercept's is left alone: a constant is no secret, and far longer than
    the others, which would drown beside it."""
    return context.n_columns - context.intercept


class MixedBlock(Subproblem):
    """Rows on their way. Where nodes are apart, coordinates are those of all nodes together, mixed;
    in one process there is nothing to hide, and they are the node's own."""

    questions = ("draw", "turn", "rows", "constant", "pull", "keep")

    def __init__(self, units: Units, V: Array, pull: Array, drawn: Array | None, context: Context):
        self.units, self.V, self._pull, self.drawn = units, V, pull, drawn
        self.context = context
        self.size = len(units.size) if drawn is None else context.n_columns
        self.new: Array | None = None  # the new root, where the coordinator has found it

    def draw(self, d: Array) -> Array:
        """G^T G of the normal numbers that it has drawn."""
        assert self.drawn is not None
        return gram(self.drawn, wide=False)

    def turn(self, d: Array, R: Array) -> Array:
        """G R^-1, and its products again: those of all nodes are a rotation as far as they add up
        to the identity."""
        assert self.drawn is not None
        self.drawn = solve_upper(R, self.drawn.T, turned=True).T
        return self.draw(d)

    def rows(self, d: Array, R: Array) -> Array:
        """The past's rows and the task's, in coordinates that R turns for the last time; where they
        are mixed, without the intercept's, beside which fixed-point numbers would lose digits."""
        if self.drawn is None:
            return self._all_rows()
        self.turn(d, R)
        return self._all_rows()[:, : self.drawn.shape[0]] @ self.drawn

    def constant(self, d: Array) -> Array:
        """The intercept's column of those rows."""
        rows = self._all_rows()
        return rows[:, -1:] if self.context.holds_intercept else zeros(rows, len(rows), 1)

    def pull(self, d: Array) -> Array:
        """What a change of the ridge does to the old estimate, in the same coordinates."""
        if self.drawn is None:
            return self._pull
        mixed = self.drawn.T @ self._pull[: self.drawn.shape[0], :]
        if not self.context.intercept:
            return mixed
        own = self._pull[-1:, :]
        return joined([mixed, own if self.context.holds_intercept else 0 * own])

    def keep(self, d: Array, V: Array) -> Array:
        """The new root, as the coordinator has found it."""
        self.new = self._received(V.T).T
        return np.zeros(0)

    def past(self, curvature: Array | None) -> Array:
        """The new root; where all rows so far are fewer than columns, it is those."""
        if self.new is not None:
            return self.new
        rows = as_dense(self.units.columns.whole())
        if curvature is not None:
            rows = rows * like(rows, curvature**0.5)[:, None]
        return joined([self.context.discount**0.5 * self.V, rows])

    def lift(self, d: Array) -> Array:
        own = self._received(d)
        return own / like(own, self.units.size)[:, None]

    def _all_rows(self) -> Array:
        return joined([self.V, as_dense(self.units.columns.whole())])

    def _received(self, d: Array) -> Array:
        """O d."""
        if self.drawn is None:
            return d
        own = self.drawn @ d[: self.drawn.shape[1], :]
        return joined([own, d[-1:, :]]) if self.context.holds_intercept else own


class Corrected(ByGram):
    """The same as what the rows themselves say: columns that are mixed cannot be brought to one
    length, without which normal equations lose more digits."""

    V: Array  # the past's rows

    def inverse(self, r: Array, g: Array, d: Array) -> Array:
        return self.corrected(self.V, self.by_factors(r), g, d)

    def root(self) -> Array | None:
        """Of the past and the task: by Cholesky, which is far quicker than orthogonal
        transformations, where it loses no digits to speak of."""
        if self.tau != 1.0:
            return None
        size = diagonal(self.all_of_it) ** 0.5
        if not bool(space(size).all(size > 0)) or not is_here(size):
            return None
        factor = Cholesky.of(self.all_of_it / size / size[:, None], worst=HARMLESS)
        if factor is None or factor.L is None:
            return None
        return np.asarray(np.tril(factor.L).T * size)


class Rooted(ByRoot):
    """By orthogonal transformations."""

    def root(self) -> Array | None:
        """Of the past and the task, which it has."""
        return self.R if self.tau == 1.0 else None


@dataclass(frozen=True)
class Whole(OneNode):
    """What the coordinator does with the rows: kept["root"] are those of the past, kept["pull"] is
    what a changed ridge does to the old estimate."""

    def factorise(
        self, block: Block | Stretched, weights: Array, kept: Kept, context: Context
    ) -> Together:
        """By the Gram matrix where that serves to correct itself, by a root of it otherwise."""
        block, p = Stretched.of(block), block.shape[1]
        V, pull = kept.get("root", zeros(weights, 0, p)), kept.get("pull", zeros(weights, p, 1))
        V = context.discount**0.5 * V
        by_gram = Corrected.of(block, Information(gram(V, wide=False)), pull, context)
        if by_gram is not None:
            by_gram.V = V
            return by_gram
        return Rooted(block, Information(V, True), pull, context)

    def remember(
        self, block: Block, kept: Kept, context: Context, sub: Together, curvature: Array | None
    ) -> Kept:
        """A root of the past and the task, where there are more rows than it has."""
        V = kept.get("root", zeros(block, 0, block.shape[1]))
        if len(V) + len(block) <= block.shape[1]:
            return {}
        root = sub.root() if curvature is None and isinstance(sub, Corrected | Rooted) else None
        if root is None:
            rows = block if curvature is None else block * like(block, curvature**0.5)[:, None]
            root = triangle(joined([context.discount**0.5 * V, rows]))
        return {"root": root}
