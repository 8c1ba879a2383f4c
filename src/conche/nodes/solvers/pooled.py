"""Lossless memory: all columns meet at the coordinator, turned so that none can be read there.

Where all columns together are no more than the rank, nothing of the past needs to be cut. Every
node sends its columns in units of their ridge, multiplied with a rotation of its own,

    A_k diag(lambda)^-1/2 O_k,

and the coordinator solves the task as one node would: recursive least squares. Penalty and
residuals are the same in any rotated coordinates, so the estimate is that of all columns on one
node, for every number of nodes, in one round. In one process there is nothing to hide, and O_k = I.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...common.arrays import Array, Block, like, zeros
from ..layout import Layout
from ..scaling import Kept
from ..spread import Look
from .base import Context, Meeting, Solver, Subproblem
from .information import Information
from .one_node import ByGram, OneNode, Together
from .ridge import Ridged, Units, may_change
from .stretched import Stretched

SECRET = "CONCHE_SECRET"  # a node's environment may add to what its rotation is drawn from
_AT_HOME: ContextVar[str] = ContextVar("at_home", default="")  # and so may a secret of its own


@dataclass(frozen=True)
class PooledMemory(Ridged["PooledBlock"]):
    """A node's part: it knows its ridge and its rotation, and keeps them."""

    stretches: ClassVar[bool] = True

    @property
    def meeting(self) -> Meeting:
        """At the coordinator."""
        return Meeting.POOL

    def coordinator(self) -> Solver[Any]:
        """One node that has all columns."""
        return Turned()

    def report(self, block: Block, kept: Kept, look: Look) -> Array:
        """Also whether its coordinates may change: an open ridge; or a rotation yet to come."""
        may, plain = bool(kept) and may_change(kept), bool(kept) and "rotation" not in kept
        return np.append(super().report(block, kept, look), [may, plain])

    def agree(self, report: Array, context: Context) -> Context:
        turning = bool(report[3]) or (context.apart and bool(report[4]))
        context = super().agree(report[:3], context)
        return replace(context, turning=True) if turning else context

    def factorise(self, block: Block, weights: Array, kept: Kept, context: Context) -> PooledBlock:
        """Nothing is factorised here: the columns are made ready to be sent."""
        before = kept.get("rotation")
        if before is not None and "new" in kept:
            before = self._turned(before, np.flatnonzero(kept["new"]), context.node)
        after = before
        if after is None and context.apart:
            after = rotation(self.seed, context.node, block.shape[1], context.holds_intercept)
        return PooledBlock(self.units(block, kept, context), before, after, first=not kept)

    def _turned(self, before: Array, new: Array, node: int) -> Array:
        """The rotation, with one of their own for columns that are new. The coordinator knows the
        past of the old ones and that these have none: turned together with them, they could be
        told apart all the same."""
        whole = before.copy()
        whole[np.ix_(new, new)] = rotation(self.seed, node, len(new))
        return whole

    def laid_out(self, kept: Kept, layout: Layout) -> Kept:
        new = dict(super().laid_out(kept, layout))
        if "rotation" in kept:
            new["rotation"] = layout.both(kept["rotation"]) + np.diag(layout.is_new.astype(float))
        return new

    def remember(
        self, block: Block, kept: Kept, context: Context, sub: PooledBlock, curvature: Array | None
    ) -> Kept:
        """The ridge and the rotation; the past itself is at the coordinator."""
        new = self.settled(block, kept, context, sub.units.size)
        return new if sub.after is None else new | {"rotation": sub.after}


@dataclass(frozen=True)
class Turned(OneNode):
    """One node that has all columns, which others may have turned.

    Until there are samples enough to tell a column's scale, columns in units of the ridge may be of
    very different sizes. Turned into each other, small ones keep half as many digits in a Gram
    matrix as they have in its root; and a later ridge may show them all.
    """

    def factorise(
        self, block: Block | Stretched, weights: Array, kept: Kept, context: Context
    ) -> Together:
        """By a root of the past while that is so, and by what is cheaper afterwards."""
        past = Information.known(kept)
        if context.apart and context.open_ridge:
            nothing = Information(zeros(weights, 0, block.shape[1]), True)
            past = nothing if past is None else past.as_root()
            return super().factorise(block, weights, _knowing(kept, past), context)
        if context.apart and past is not None and past.is_root:
            gram = Information(past.matrix.T @ past.matrix)
            found = super().factorise(block, weights, _knowing(kept, gram), context)
            if isinstance(found, ByGram):
                return found
        return super().factorise(block, weights, kept, context)


def _knowing(kept: Kept, past: Information) -> Kept:
    """The same with the past in another form."""
    return {name: kept[name] for name in kept if name == "before"} | past.to_keep()


class PooledBlock(Subproblem):
    """A block on its way; coordinates are rotated weights in units of the ridge."""

    questions = ("columns", "transform")

    def __init__(self, units: Units, before: Array | None, after: Array | None, first: bool):
        self.units, self.before, self.after, self.first = units, before, after, first
        self.size = len(units.size)

    def columns(self, d: Array) -> Block | Stretched:
        """What the coordinator gets to see; in one process it is the columns themselves."""
        if self.after is None:
            return self.units.columns
        block = self.units.columns.whole()
        return block @ like(block, self.after)

    def transform(self, d: Array) -> Array:
        """T with (old coordinates) = T (new ones); empty where they have not changed, its diagonal
        alone where nothing turns."""
        if self.first or (self.units.change is None and self.before is self.after):
            return np.zeros(0)
        T = np.eye(self.size) if self.units.change is None else np.diag(self.units.change)
        if self.before is None and self.after is None:
            return np.diag(T)
        T = T if self.before is None else self.before.T @ T
        return T if self.after is None else np.asarray(T @ self.after)

    def lift(self, d: Array) -> Array:
        own = d if self.after is None else like(d, self.after) @ d
        return own / like(own, self.units.size)[:, None]


def rotation(seed: int, node: int, p: int, intercept: bool = False) -> Array:
    """A random rotation, uniform over all of them, that the node's own secret decides.

    What is sent then shows the inner products between samples over the node's columns and nothing
    else of them. The seed alone is known to everybody: where the coordinator must not be able to
    undo the rotation, the node's environment has a CONCHE_SECRET that nobody else knows.
    """
    turned = p - 1 if intercept else p  # a constant is no secret, and far longer than the others
    Q, R = np.linalg.qr(own_generator(seed, node, p).standard_normal((turned, turned)))
    whole = np.eye(p)
    whole[:turned, :turned] = Q * np.sign(np.diag(R))
    return whole


def own_generator(*seeds: int) -> np.random.Generator:
    """Random numbers that the node's own secret decides, beside the seeds."""
    secret = os.environ.get(SECRET, "") + _AT_HOME.get()
    return np.random.default_rng([*seeds, *secret.encode()])


@contextmanager
def own_secret(secret: str) -> Iterator[None]:
    """Inside, random numbers follow from this secret as well."""
    before = _AT_HOME.set(secret)
    try:
        yield
    finally:
        _AT_HOME.reset(before)
