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
    scale_rows,
)
from ..scalars import PenaltyScalars
from ..scaling import Kept
from .base import Context, Proposing, Solution
from .factor import Cholesky, Diagonal, robust_cholesky
from .leaning import Leans
from .pooled import own_generator, rotation
from .probes import FEW, PROBES, Probes
from .ridge import Units
from .rows import bordered_products, leverages, products

WIDEST_BLOCK = 2048  # columns of a block whose curvature is kept as a matrix: 32 MB


class PrincipalBlock(Leans, Proposing):
    """One node's rows B = [V; A] and what it makes of them; coordinates are weights, in units of
    the ridge.

    The task's objective is  loss(A (w + d)) + 1/2 |V d|^2 + 1/2 d^T P d - s pull.d  with
    P = E_k + s. A proposal solves the whole problem as the merged directions V' know it,
    C = V'^T V' + D with D_k = E'_k + s and E'_k = E_k + A_k^T A_k + V_k^T V_k - V'_k^T V'_k:
    z = D^-1 (r - V'^T t), where the coordinator has found t = (I + V' D^-1 V'^T)^-1 V' D^-1 r
    from all nodes' `residual`.
    """

    questions = (
        *("gram", "shown", "sketch", "power", "project", "weigh", "merge", "told", "stack"),
        *("whole", "coarse", "residual", "probe", "witness", "bent", "cut", "leverage"),
        *("lean", "lean_on", "lean_along", "lean_back"),
    )

    def __init__(
        self,
        units: Units,
        pull: Array | None,
        kept: Kept,
        context: Context,
        seed: int,
        sparse: bool,
    ):
        self.units, self.context, self.each = units, context, context.each
        self.A = by_columns(units.block)
        n, p = self.A.shape
        self.size = p
        self.seed, self.apart = [seed, context.task, context.node], context.apart
        self.pull = np.zeros((p, 1)) if pull is None else pull
        change = 1.0 if units.change is None else units.change
        root = context.discount**0.5
        self.V = kept["principal"] * (root * change) if "principal" in kept else np.zeros((0, p))
        probes = Probes.of(kept, p, self.seed, FEW if sparse else PROBES)
        self.probes = probes.in_units(context.discount, change)
        self.wide = sparse or p > WIDEST_BLOCK
        self.is_whole = False  # whether rounds know all rows B, and not only V'
        self.E = self._remaining(kept.get("remainder"), context.discount, change)
        self.factors: list[Cholesky | Diagonal] = []
        self.new_E: Array | None = None
        self.weight: Array = np.full(n, context.smoothness**-0.5)  # of the task's rows
        self.asked: tuple[Array, Array] | None = None  # the gradient, from `residual` to `solve`

    # ---- what the coordinator asks to merge the directions ----

    def gram(self, d: Array) -> Array:
        """B B^T."""
        return products(self.V, scale_rows(self.A, self.weight))

    def shown(self, d: Array) -> Array:
        """B itself, rotated where nodes are apart: what a narrow block sends."""
        rows = np.concatenate([self.V, as_dense(scale_rows(self.A, self.weight))])
        return rows @ self._turn() if self.apart else rows

    def sketch(self, d: Array, width: int) -> Array:
        """B times random columns that no other node knows."""
        omega = own_generator(*self.seed).standard_normal((self.size, width))
        return self.times(omega)

    def power(self, d: Array, Q: Array) -> Array:
        """B B^T Q."""
        return self.times(self.back(Q))

    def project(self, d: Array, Q: Array) -> Array:
        """C C^T for C = Q^T B; below it, in a row of its own, the squared norm of B."""
        C = self.back(Q)
        norm = np.zeros((1, C.shape[1]))
        norm[0, 0] = np.sum(self.V**2) + np.sum(column_squares(scale_rows(self.A, self.weight)))
        return np.concatenate([C.T @ C, norm])

    def weigh(self, d: Array, curvature: Array) -> Array:
        """Give the task's rows the weights that they are remembered with."""
        self.weight = np.sqrt(curvature)
        return np.zeros(0)

    def merge(self, d: Array, W: Array) -> Array:
        """V' = W^T B. Answers how much of C the problem's curvature has at least, for every
        strength, as far as this block knows."""
        self.ready(self.back(W).T)
        return np.array([s / (s + self.cut_norm) for s in self.each])

    def told(self, d: Array, V: Array) -> Array:
        """V' as the coordinator has found it from what was `shown`; answers as `merge` does."""
        self.ready(V @ self._turn().T if self.apart else V)
        return np.array([s / (s + self.cut_norm) for s in self.each])

    def stack(self, d: Array) -> Array:
        """V' = B: there is room for all rows. Answers V' V'^T, and that is all: D is the ridge."""
        rows = as_dense(scale_rows(self.A, self.weight))
        self.new, self.new_E, self.cut_norm = np.concatenate([self.V, rows]), None, 0.0
        self.factors = [Diagonal(np.full((self.size, 1), s)) for s in self.each]
        return np.asarray(self.new @ self.new.T)

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
            self.cut_norm = float(np.max(np.maximum(cut, 0.0), initial=0.0))
            self.factors = [Diagonal(self.new_E[:, None] + s) for s in self.each]
        else:
            self.cut_norm = float(np.sqrt(np.linalg.norm(cut.T @ cut)))  # no less than the 2-norm
            self.factors = [robust_cholesky(self.new_E + s * np.eye(self.size)) for s in self.each]

    def _left_by(self, V: Array) -> tuple[Array, Array]:
        """E'_k, and what of it is new: B^T B - V'^T V'."""
        cut = self._square(scale_rows(self.A, self.weight)) + self._square(self.V)
        cut -= self._square(V)
        left = cut if self.E is None else self.E + cut
        return np.maximum(left, 0.0) if self.wide else left, cut

    # ---- what it asks in the rounds ----

    def coarse(self, d: Array) -> Array:
        """V' D^-1 V'^T, for every strength."""
        halves = (factor.half(self.new.T) for factor in self.factors)
        return np.concatenate([half.T @ half for half in halves])

    def residual(self, d: Array, g: Array) -> Array:
        """V' D^-1 r."""
        self.asked = self._gradient(g, d)
        x = self.inverse(self.asked[0])
        if not self.is_whole:
            return np.asarray(self.new @ x)
        own = np.zeros((1, x.shape[1]))  # the intercept's, which is not among the others
        if self.context.holds_intercept:
            own[0], x[-1] = x[-1] * self._border(x), 0.0
        return np.concatenate([self.times(x), own])

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        rows = self.A.shape[0] + len(self.V)
        r, Pd = self.asked or self._gradient(g[:rows], d)
        self.asked = None
        z = self._proposed(r, g[rows:])
        Pz = self.penalty(z)
        zPz, qPz, dPz = column_dots(z, Pz), column_dots(q, Pz), column_dots(Pd, z)
        slack = column_dots(r, r) / self._strength(r)
        return Solution(z, PenaltyScalars(zPz, qPz, dPz, slack))

    def _proposed(self, r: Array, t: Array) -> Array:
        """D^-1 (r - V'^T t); of an intercept beside all rows the coordinator has found its own."""
        if not len(t):
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
        return np.concatenate([np.asarray(self.A @ z), self.V @ z])

    def lift(self, d: Array) -> Array:
        return d / self.units.size[:, None]

    # ---- what it asks in the end: how far the estimate is from the offline one ----

    def probe(self, d: Array) -> Array:
        """What the probes do to the rows."""
        return self.image(self.probes.o)

    def witness(self, d: Array, seen: Array) -> Array:
        """E o for every probe o, E what was cut between blocks before this task; ``seen`` is what
        all nodes' parts of o do to the rows. Answers, in rows: how far units have grown; o.E d;
        |d|^2; |F_k d|, where E = F^T F; |b|^2 and V' b for the b that this node owes."""
        n = self.A.shape[0]
        within = self.penalty(self.probes.o, strength=0.0)
        self.lost = self.probes.Ho - self.V.T @ seen[n:] - within
        change = 1.0 if self.units.change is None else np.max(self.units.change) ** 2
        own = self.penalty(d, strength=0.0) if self.E is not None else np.zeros_like(d)
        self.probes = self.probes.after(np.asarray(self.A.T @ seen[:n]), own)
        parts = np.maximum(d * own, 0.0) if self.wide else column_dots(d, own)[None]
        rows = (
            np.full((1, d.shape[1]), max(change, 1.0)),
            self.lost.T @ d,
            column_dots(d, d)[None],
            np.sum(np.sqrt(np.maximum(parts, 0.0)), axis=0, keepdims=True),
            column_dots(self.probes.owed, self.probes.owed)[None],
            self.new @ self.probes.owed,
        )
        return np.concatenate(rows)

    def bent(self, d: Array) -> Array:
        """o.H o' and o.o' for all pairs of probes, H with this task."""
        o = self.probes.o
        return np.concatenate([o.T @ self.probes.Ho, o.T @ o])

    def cut(self, d: Array, t: Array) -> Array:
        """|E o|^2 and E o.C^-1 E o, over all probes, for every strength. Without t, V' D^-1 E o."""
        if self.wide:
            found = self._wide_leverage(self.lost.T, t)
            squares = np.full(len(self.each), np.sum(self.lost**2))
            return np.array([squares, found.sum(axis=1)]) if len(t) else found
        x = np.tile(self.lost, (1, len(self.each)))
        if not len(t):
            return np.asarray(self.new @ self.inverse(x))
        z = self.inverse(x - self.new.T @ t)
        dots = np.array([column_dots(x, x), column_dots(x, z)])
        return np.asarray(dots.reshape(2, len(self.each), -1).sum(axis=2))

    def leverage(self, d: Array, rows: Array, t: Array) -> Array:
        """a.C^-1 a for some samples a: strengths x rows. Without t, V' D^-1 a."""
        some = self.A[rows]
        if self.wide:  # D is diagonal, and nothing needs to be as wide as the block and as tall
            return self._wide_leverage(some, t)
        a = np.tile(as_dense(some).T, (1, len(self.each)))
        if not len(t):
            return np.asarray(self.new @ self.inverse(a))
        return column_dots(a, self.inverse(a - self.new.T @ t)).reshape(len(self.each), -1)

    def _wide_leverage(self, some: Block, t: Array) -> Array:
        E = np.zeros(self.size) if self.new_E is None else self.new_E
        return leverages(some, self.new, [E + s for s in self.each], t)

    def kept(self, curvature: Array | None) -> dict[str, Array]:
        """After the task."""
        new = {"principal": self.new} if len(self.new) else {}
        if not len(self.new) and curvature is not None:  # rank 0: nobody has merged them again
            self.weight = np.sqrt(curvature)
            self.new_E = self._left_by(self.new)[0]
        if self.new_E is not None:
            new["remainder"] = self.new_E
        if self.context.quadratic and len(self.new):
            new |= self.probes.to_keep()
        return new

    # ---- small parts ----

    def _square(self, rows: Block) -> Array:
        """rows^T rows, or its diagonal."""
        return column_squares(rows) if self.wide else gram(rows, wide=False)

    def _turn(self) -> Array:
        return rotation(self.seed[0], self.seed[2], self.size, self.context.holds_intercept)

    def _strength(self, x: Array) -> Array:
        return np.repeat(self.each, x.shape[1] // len(self.each))

    def _gradient(self, g: Array, d: Array) -> tuple[Array, Array]:
        """r = A^T g + V^T g' - P d + s pull, and its penalty's part P d - s pull."""
        Pd = self.penalty(d) - self._strength(d) * self.pull
        n = self.A.shape[0]
        return np.asarray(self.A.T @ g[:n]) + self.V.T @ g[n:] - Pd, Pd

    def penalty(self, d: Array, strength: Array | float | None = None) -> Array:
        """P d; with another ridge than the strengths', if there is one."""
        ridge = (self._strength(d) if strength is None else strength) * d
        if self.E is None:
            return ridge
        return np.asarray((self.E[:, None] * d if self.wide else self.E @ d) + ridge)

    @staticmethod
    def _remaining(E: Array | None, discount: float, change: Array | float) -> Array | None:
        """E_k in this task's units; None where it is zero."""
        if E is None:
            return None
        both = np.broadcast_to(change, len(E))
        return np.asarray(discount * E * both * (both if E.ndim == 1 else both[:, None]))

    def inverse(self, r: Array) -> Array:
        """D^-1 r."""
        parts = np.split(r, len(self.factors), axis=1)
        return np.hstack([f.solve(part) for f, part in zip(self.factors, parts, strict=True)])

    def _rows_times(self, x: Array) -> Array:
        return np.asarray(self.A @ x) * self.weight[:, None]

    def times(self, x: Array) -> Array:
        """B x."""
        return np.concatenate([self.V @ x, self._rows_times(x)])

    def back(self, y: Array) -> Array:
        """B^T y."""
        m = len(self.V)
        return np.asarray(self.V.T @ y[:m] + self.A.T @ (self.weight[:, None] * y[m:]))
