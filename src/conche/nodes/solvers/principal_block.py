"""What a node of limited memory makes of a task's rows, and what it answers its coordinator."""

from __future__ import annotations

import numpy as np

from ...common.arrays import (
    Array,
    Block,
    as_dense,
    by_columns,
    column_dots,
    column_squares,
    gram,
    joined,
    like,
    parts_of,
    positive,
    scale_columns,
    scale_rows,
    space,
    times,
    zeros,
)
from ...common.linear import with_diagonal
from ..scalars import PenaltyScalars
from ..scaling import Kept
from .base import Context, Proposing, Solution
from .cholesky import Apart, Cholesky, Diagonal, robust_cholesky
from .pooled import rotation
from .probes import Probes
from .ridge import Units
from .rows import Sums, bordered_products, leverages, products
from .witness import Witness

WIDEST_BLOCK = 2048  # columns of a block whose curvature is kept as a matrix: 32 MB


class PrincipalBlock(Witness, Proposing):
    """One node's rows B = [V; A] and what it makes of them; coordinates are weights, in units of
    the ridge.

    The task's objective is  loss(A (w + d)) + 1/2 |V d|^2 + 1/2 d^T P d - s pull.d  with
    P = E_k + s. A proposal solves the whole problem as the merged directions V' know it,
    C = V'^T V' + D with D_k = E'_k + s and E'_k = E_k + A_k^T A_k + V_k^T V_k - V'_k^T V'_k:
    z = D^-1 (r - V'^T t), where the coordinator has found t = (I + V' D^-1 V'^T)^-1 V' D^-1 r
    from all nodes' `residual`.
    """

    questions = (
        *("gram", "shown", "sketch", "power", "project", "weigh", "merge", "told", "unmerged"),
        *("whole", "coarse", "residual", "probe", "witness", "growth", "bent", "cut"),
    )

    def __init__(
        self,
        units: Units,
        weights: Array,
        pull: Array | None,
        kept: Kept,
        context: Context,
        seed: int,
        sparse: bool,
        probes: int,
    ):
        self.units, self.context, self.each = units, context, context.each
        self.constant = weights[-1:, :] * float(units.size[-1])
        self.stack = context.stack
        self.A = by_columns(units.columns.whole())
        n, p = self.A.shape
        self.size = p
        self.seed, self.apart = [seed, context.task, context.node], context.apart
        self.pull = zeros(self.A, p, 1) if pull is None else pull
        change = 1.0 if units.change is None else units.change
        root = context.discount**0.5
        self.V = zeros(self.A, 0, p)
        if "principal" in kept:
            self.V = scale_columns(kept["principal"], root * change)
        self.probes = self._probes(kept, probes).in_units(context.discount, change)
        self.wide = sparse or (p if self.stack is None else self.stack.width) > WIDEST_BLOCK
        self.is_whole = False  # whether rounds know all rows B, and not only V'
        self.E = self._remaining(kept.get("remainder"), context.discount, change)
        self.factors: list[Cholesky | Diagonal | Apart] = []
        self.new_E: Array | None = None
        self.weight = like(self.V, np.full(n, context.smoothness**-0.5))  # of the task's rows
        self.asked: tuple[Array, Array] | None = None  # the gradient, from `residual` to `solve`

    def _probes(self, kept: Kept, count: int) -> Probes:
        if "probes" in kept:
            return Probes.of(kept, kept["probes"])
        drawn = Probes.drawn(self.size, self.seed, count, self.stack)
        return Probes.of(kept, like(self.V, drawn))

    # ---- what the coordinator asks to merge the directions ----

    def gram(self, d: Array) -> Array:
        """B B^T."""
        return products(self.V, scale_rows(self.A, self.weight))

    def shown(self, d: Array) -> Array:
        """B itself, rotated where nodes are apart: what a narrow block sends."""
        rows = joined([self.V, as_dense(scale_rows(self.A, self.weight))])
        return rows @ self._turn() if self.apart else rows

    def sketch(self, d: Array, width: int) -> Array:
        """B B^T times random signs, one a row."""
        m = self.V.shape[0]
        sums = Sums.drawn(self.seed[0], m + self.A.shape[0], width)
        task = sums.of(scale_rows(self.A, self.weight), m)
        return self.times((sums.of(self.V) + task).T)

    def power(self, d: Array, Q: Array) -> Array:
        """B B^T Q."""
        return self.times(self.back(Q))

    def project(self, d: Array, Q: Array) -> Array:
        """C C^T for C = Q^T B; below it, in a row of its own, the squared norm of B."""
        C, xp = self.back(Q), space(self.V)
        norm = zeros(C, 1, C.shape[1])
        squares = column_squares(scale_rows(self.A, self.weight))
        norm[0, 0] = xp.sum(self.V**2) + xp.sum(squares)
        return joined([C.T @ C, norm])

    def weigh(self, d: Array, curvature: Array) -> Array:
        """Give the task's rows the weights that they are remembered with."""
        self.weight = curvature**0.5
        return np.zeros(0)

    def merge(self, d: Array, W: Array) -> Array:
        """V' = W^T B. Answers the norm of what the block has lost by it, at most: of C the
        problem's curvature has s / (s + norm) at least, for strength s."""
        self.ready(self.back(W).T)
        return np.array([self.cut_norm])

    def told(self, d: Array, V: Array) -> Array:
        """V' as the coordinator has found it from what was `shown`; answers as `merge` does."""
        self.ready(V @ self._turn().T if self.apart else V)
        return np.array([self.cut_norm])

    def unmerged(self, d: Array) -> Array:
        """V' = B: there is room for all rows. Answers V' V'^T, and that is all: D is the ridge."""
        rows = as_dense(scale_rows(self.A, self.weight))
        self.new, self.new_E, self.cut_norm = joined([self.V, rows]), None, 0.0
        self.factors = [Diagonal(s) for s in self.each]
        return self.new @ self.new.T

    def whole(self, d: Array) -> Array:
        """Rounds with all rows, V' = B and D = P: as good as a factorisation of the problem itself,
        and for sparse columns no array is as tall as the task and as wide as the block.

        Answers B P^-1 B^T without the intercept, for every strength, and the intercept's own column
        b in a row below: its ridge is so small that it would drown the others in a sum. In the
        first task P is the ridge alone, and the answer is that for strength one.
        """
        self.is_whole, self.cut_norm = True, 0.0
        E = np.zeros(self.size) if self.E is None else self.E
        self.factors = [Diagonal(E[:, None] + s) for s in self.each]
        rows = scale_rows(self.A, self.weight)
        if self.E is None and not len(self.V):  # on all nodes: one product serves all strengths
            return bordered_products(self.V, rows, np.ones(self.size), self.context.holds_intercept)
        roots = ((E + s) ** -0.5 for s in self.each)
        own = self.context.holds_intercept
        return np.concatenate([bordered_products(self.V, rows, root, own) for root in roots])

    def ready(self, V: Array) -> None:
        """Factorise D, once for every strength, with the merged directions V'."""
        self.new, self.is_whole = V, False
        self.new_E, cut = self._left_by(V)
        if self.wide:
            self.cut_norm = max(float(space(cut).max(cut)), 0.0)
            self.factors = [Diagonal(self.new_E[:, None] + s) for s in self.each]
        else:
            fourth = space(cut).sum((cut @ cut) ** 2, axis=(-2, -1))  # no less than the 2-norm's
            self.cut_norm = float(space(cut).max(fourth)) ** 0.25
            self.factors = [self._factor(with_diagonal(self.new_E, s)) for s in self.each]

    def _factor(self, D: Array) -> Cholesky | Apart:
        factor = robust_cholesky(D)
        return factor if self.stack is None else Apart(self.stack, factor)

    def _left_by(self, V: Array) -> tuple[Array, Array]:
        """E'_k, and what of it is new: B^T B - V'^T V'."""
        cut = self._square(scale_rows(self.A, self.weight)) + self._square(self.V)
        cut -= self._square(V)
        left = cut if self.E is None else self.E + cut
        return positive(left) if self.wide else left, cut

    # ---- what it asks in the rounds ----

    def coarse(self, d: Array) -> Array:
        """V' D^-1 V'^T, for every strength."""
        halves = (factor.half(self.new.T) for factor in self.factors)
        return joined([half.T @ half for half in halves])

    def residual(self, d: Array, g: Array) -> Array:
        """V' D^-1 r."""
        self.asked = self._gradient(g, d)
        x = self.inverse(self.asked[0])
        if not self.is_whole:
            return self.new @ x
        own = np.zeros((1, x.shape[1]))  # the intercept's, which is not among the others
        if self.context.holds_intercept:
            own[0], x[-1] = x[-1] * self._border(x), 0.0
        return np.concatenate([self.times(x), own])

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        rows = self.A.shape[0] + self.V.shape[0]
        r, Pd = self.asked or self._gradient(g[:rows, :], d)
        self.asked = None
        z = self._proposed(r, g[rows:, :])
        Pz = self.penalty(z)
        zPz, qPz, dPz = column_dots(z, Pz), column_dots(q, Pz), column_dots(Pd, z)
        slack = column_dots(r, r) / self._strength(r)
        return Solution(z, PenaltyScalars(zPz, qPz, dPz, slack))

    def _proposed(self, r: Array, t: Array) -> Array:
        """D^-1 (r - V'^T t); of an intercept beside all rows the coordinator has found its own."""
        if not t.shape[0]:
            return self.inverse(r)
        if not self.is_whole:
            return self.inverse(r - self.new.T @ t)
        z = self.inverse(r - self.back(t[:-1]))
        if self.context.holds_intercept:
            z[-1] = t[-1] / self._border(z)
        return z

    def _border(self, x: Array) -> Array:
        """The root of the intercept's P, per output."""
        own = 0.0 if self.E is None else self.E[-1]
        return np.asarray(np.sqrt(own + self._strength(x)))

    def image(self, z: Array) -> Array:
        return joined([times(self.A, z), self.V @ z])

    def lift(self, d: Array) -> Array:
        return d / like(d, self.units.size)[:, None]

    # ---- what it asks in the end ----

    def wide_leverage(self, some: Block, t: Array) -> Array:
        """a.C^-1 a for some rows a, strengths x rows, where D is diagonal: nothing needs to be as
        wide as the block and as tall. Without t, V' D^-1 a."""
        E = zeros(self.V, self.size) if self.new_E is None else self.new_E
        return leverages(some, self.new, [E + s for s in self.each], t)

    def kept(self, curvature: Array | None) -> dict[str, Array]:
        """After the task."""
        merged = self.new.shape[0]
        new = {"principal": self.new} if merged else {}
        if not merged and curvature is not None:  # rank 0: nobody has merged them again
            self.weight = curvature**0.5
            self.new_E = self._left_by(self.new)[0]
        if self.new_E is not None:
            new["remainder"] = self.new_E
        if self.context.quadratic and merged:
            new |= self.probes.to_keep()
        return new

    # ---- small parts ----

    def _square(self, rows: Block) -> Array:
        """rows^T rows, or its diagonal."""
        if self.wide:
            return column_squares(rows)
        return gram(rows, wide=False) if self.stack is None else self.stack.squares(rows)

    def _turn(self) -> Array:
        own = rotation(self.seed[0], self.seed[2], self.size, self.context.holds_intercept)
        return like(self.V, own)

    def _strength(self, x: Array) -> Array:
        return like(x, np.repeat(self.each, x.shape[1] // len(self.each)))

    def _gradient(self, g: Array, d: Array) -> tuple[Array, Array]:
        """r = A^T g + V^T g' - P d + s pull, and its penalty's part P d - s pull."""
        Pd = self.penalty(d) - self._strength(d) * self.pull
        n = self.A.shape[0]
        return times(self.A.T, g[:n, :]) + self.V.T @ g[n:, :] - Pd, Pd

    def penalty(self, d: Array, strength: Array | float | None = None) -> Array:
        """P d; with another ridge than the strengths', if there is one."""
        ridge = (self._strength(d) if strength is None else strength) * d
        if self.E is None:
            return ridge
        if self.wide:
            return self.E[:, None] * d + ridge
        return (self.E @ d if self.stack is None else self.stack.times(self.E, d)) + ridge

    def _remaining(self, E: Array | None, discount: float, change: Array | float) -> Array | None:
        """E_k in this task's units; None where it is zero."""
        if E is None:
            return None
        both = like(E, np.broadcast_to(change, self.size))
        if E.ndim == 1:
            return discount * E * both * both
        if self.stack is not None:
            both = self.stack.split(both[:, None])[..., 0]
        return discount * E * both[..., None, :] * both[..., None]

    def inverse(self, r: Array) -> Array:
        """D^-1 r."""
        parts = parts_of(r, len(self.factors))
        return joined([f.solve(part) for f, part in zip(self.factors, parts, strict=True)], -1)

    def times(self, x: Array) -> Array:
        """B x."""
        return joined([self.V @ x, (self.A @ x) * self.weight[:, None]])

    def back(self, y: Array) -> Array:
        """B^T y."""
        m = self.V.shape[0]
        return self.V.T @ y[:m, :] + self.A.T @ (self.weight[:, None] * y[m:, :])
