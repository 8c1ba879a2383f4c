"""Lossless memory: a node shows its columns once a task; who coordinates keeps sums of them.

How columns are shown is the coordinator's word (`Context.shown`):

"plain"    as they are: one owner's machines
"mixed"    rows mixed with each other, the same way on every node, which shows how columns lie to
           each other, and no row (`conche.nodes.solvers.mixing`)
"turned"   columns divided by their first deviation and turned by a rotation that stays with the
           node: where weights stay at home, and where nothing but sums over nodes may be seen. Then
           all nodes' columns are turned together, by one rotation that nobody has
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...common.arrays import Array, Block, as_dense
from ...common.linear import solve_upper
from ..layout import Layout
from ..scaling import Kept
from ..spread import ENOUGH, Look, Spread
from .base import Context, Meeting, Solver, Subproblem
from .mixing import mixed
from .pooled import rotation


@dataclass(frozen=True)
class Lossless(Solver["Shown"]):
    """A node's part; ``ridge`` and ``discounts`` are the coordinator's to use."""

    remembers: ClassVar[bool] = True
    draws: ClassVar[bool] = True

    ridge: float | None = None
    discounts: tuple[float, ...] = (1.0,)
    seed: int = 0
    scaled: bool = True  # whether columns that are turned have units of their own

    @property
    def meeting(self) -> Meeting:
        """At the coordinator, as sums."""
        return Meeting.SUMS

    @property
    def news(self) -> frozenset[str]:
        """What turns a node's coordinates."""
        return frozenset({"turn"})

    def report(self, block: Block, kept: Kept, look: Look) -> Array:
        """How many columns it has, and of how many the rotation is still to be drawn; whether
        some column's unit is still open."""
        p = block.shape[1]
        new = _without_rotation(kept, p)
        return np.array([p, new.sum(), "seen" in kept])

    def agree(self, report: Array, context: Context) -> Context:
        p, new, turning = report
        turning = bool(turning) and context.shown == "turned"
        return replace(context, n_columns=int(p), n_new=int(new), turning=turning)

    def factorise(self, block: Block, weights: Array, kept: Kept, context: Context) -> Shown:
        """Nothing is factorised: columns are made ready to be shown."""
        if context.shown == "turned":
            return Turned(block, weights, kept, self, context)
        return Shown(block, self.seed, context)

    def remember(
        self, block: Block, kept: Kept, context: Context, sub: Shown, curvature: Array | None
    ) -> Kept:
        """Units and rotation, where there are any: the past is with the coordinator."""
        return sub.kept()

    def laid_out(self, kept: Kept, layout: Layout) -> Kept:
        """New columns are turned among themselves once they are there."""
        if "unit" not in kept:
            return {}
        seen = kept.get("seen", _settled(len(kept["unit"])))
        new = {
            "unit": layout.along(kept["unit"], 0, 1.0),
            "rotation": layout.along(kept["rotation"]),
        }
        return new | {"seen": layout.along(seen, 1)}


class Shown(Subproblem):
    """A task's columns, as the coordinator gets to see them."""

    questions: tuple[str, ...] = ("columns", "target", "image")

    def __init__(self, block: Block, seed: int, context: Context):
        self.block, self.context, self.size = block, context, block.shape[1]
        self.seeds = (seed, context.task)

    def columns(self, d: Array) -> Block:
        """As they are, or mixed."""
        return self._mixed(self.block)

    def target(self, d: Array, Y: Array) -> Array:
        """The targets in the same rows: one node answers for all."""
        return self._mixed(Y)

    def image(self, d: Array, w: Array) -> Array:
        """What weights make of the columns."""
        return np.asarray(self.block @ w)

    def lift(self, d: Array) -> Array:
        return d

    def kept(self) -> Kept:
        """What the node is to keep."""
        return {}

    def _mixed(self, rows: Block) -> Block:
        return mixed(as_dense(rows), *self.seeds) if self.context.shown == "mixed" else rows


class Turned(Shown):
    """Columns in units of their own, turned: z = O^T x / unit. Weights come back in the same
    coordinates, and only the node knows what they are of its columns."""

    questions = ("draw", "turn", "transform", "columns")

    def __init__(
        self, block: Block, weights: Array, kept: Kept, solver: Lossless, context: Context
    ):
        super().__init__(block, solver.seed, context)
        self.weights: Array = weights
        self.open = _without_rotation(kept, self.size)
        assert context.look is not None
        now = context.look.spread
        seen = Spread.from_array(kept.get("seen", _settled(self.size))) if kept else None
        self.seen = now if seen is None else seen.joined(now)
        before = kept.get("unit", np.ones(self.size))
        unit = _unit(self.seen) if solver.scaled else np.ones(self.size)
        self.unit: Array = np.where(_is_open(kept, self.size), unit, before)
        self.change = before / self.unit
        known = int(np.sum(~self.open))
        old = kept["rotation"] if kept else np.zeros((self.size, 0))
        self.old = old if context.secure else old[:, :known]
        self.drawn = self._drawn()

    def _drawn(self) -> Array:
        """Of the columns that are new: a rotation of its own; or, where all nodes' are turned
        together, numbers that will be their part of one."""
        new = int(self.open.sum())
        if not self.context.secure:
            return rotation(self.seeds[0], self.context.node, new) if new else np.zeros((0, 0))
        return np.random.default_rng().standard_normal((new, self.context.n_new))

    def draw(self, d: Array) -> Array:
        """G^T G of the normal numbers that it has drawn."""
        return np.asarray(self.drawn.T @ self.drawn)

    def turn(self, d: Array, R: Array) -> Array:
        """G R^-1, and its products: a rotation as far as all nodes' add up to the identity."""
        self.drawn = solve_upper(R, self.drawn.T, turned=True).T
        return self.draw(d)

    def transform(self, d: Array) -> Array:
        """What a change of units is to the coordinates that there were."""
        return np.asarray(self.old.T @ (self.change[:, None] * self.old))

    def columns(self, d: Array) -> Block:
        return (as_dense(self.block) / self.unit) @ self._rotation()

    def _rotation(self) -> Array:
        """Of its columns, the old ones and the new."""
        whole = np.zeros((self.size, self.old.shape[1] + self.drawn.shape[1]))
        whole[:, : self.old.shape[1]] = self.old
        whole[self.open, self.old.shape[1] :] = self.drawn
        return whole

    def lift(self, d: Array) -> Array:
        """The weights are found anew: what there was goes."""
        own = self._rotation() @ d / self.unit[:, None]
        return own - self.weights

    def kept(self) -> Kept:
        kept = {"unit": self.unit, "rotation": self._rotation()}
        return kept if np.all(self.seen.settled) else kept | {"seen": self.seen.to_array()}


def _without_rotation(kept: Kept, p: int) -> Array:
    """Which columns are new."""
    return ~kept["rotation"].any(axis=1) if "rotation" in kept else np.ones(p, dtype=bool)


def _is_open(kept: Kept, p: int) -> Array:
    """Which columns' units may change: too few rows have been seen of them."""
    if not kept:
        return np.ones(p, dtype=bool)
    return ~Spread.from_array(kept["seen"]).settled if "seen" in kept else np.zeros(p, dtype=bool)


def _unit(seen: Spread) -> Array:
    """The columns' deviations; of one that has not varied, one."""
    deviation = np.sqrt(seen.variance)
    return np.where(seen.varies & (deviation > 0), deviation, 1.0)


def _settled(p: int) -> Array:
    """Of columns that have shown enough: nothing but that."""
    return np.vstack([np.full(p, float(ENOUGH)), np.zeros((4, p))])
