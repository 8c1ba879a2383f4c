"""Memory of limited size: the principal directions of the past, and every block's own curvature.

All nodes together keep V, the ``rank`` principal directions of all past rows (node k its columns
V_k), and node k its own block H_k of the past's curvature H:

    past curvature  =  V^T V + blockdiag(H_k - V_k^T V_k) + ridge.

Diagonal blocks are exact, cross blocks the best of that rank. V^T V is never more than H, so what
remains of a block is never negative. A block of more than `WIDEST_BLOCK` columns keeps the diagonal
of H_k alone. How V is merged with a new task's rows is the coordinator's affair
(`conche.network.principal`); here is what a node answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...common.arrays import Array, Block, as_dense, by_columns, column_dots, gram, scale_rows
from ..scalars import PenaltyScalars
from ..scaling import Kept
from .base import Context, Meeting, Proposing, Solution
from .factor import Cholesky, robust_cholesky
from .pooled import rotation
from .ridge import Ridged, Units

WIDEST_BLOCK = 2048  # columns of a block whose curvature is kept as a matrix: 32 MB
PROBES = 64  # random directions whose curvature is kept exactly, to check what was cut


@dataclass(frozen=True)
class PrincipalMemory(Ridged["PrincipalBlock"]):
    """``rank`` directions, and the blocks; ``rank=0`` keeps the blocks alone."""

    rank: int = 0

    @property
    def meeting(self) -> Meeting:
        """The nodes merge their directions with a coordinator, if they have any."""
        return Meeting.PRINCIPAL if self.rank else Meeting.CENTRE

    @property
    def news(self) -> frozenset[str]:
        """All that changes the directions, or what they have cost."""
        return frozenset({"weigh", "merge", "stack", "witness"})

    def report(self, block: Block, kept: Kept) -> Array:
        """Also how many directions there are so far."""
        return np.append(super().report(block, kept), len(kept.get("principal", ())))

    def agree(self, report: Array, context: Context) -> Context:
        rows = round(float(report[2]) / context.n_nodes)
        return replace(super().agree(report[:2], context), past_rows=rows)

    def factorise(
        self, block: Block, weights: Array, kept: Kept, context: Context
    ) -> PrincipalBlock:
        """The task's rows and the past, in units of the ridge."""
        units = self.units(block, kept, context)
        pull = None
        if kept and (units.change is not None or self.discount != 1.0):
            before = 1.0 if units.change is None else units.change[:, None] ** 2
            pull = (self.discount * before - 1.0) * (units.size[:, None] * weights)
        sub = PrincipalBlock(self, units, pull, kept, context)
        if not self.rank:
            sub.ready(np.zeros((0, block.shape[1])))
        return sub

    def remember(
        self,
        block: Block,
        kept: Kept,
        context: Context,
        sub: PrincipalBlock,
        curvature: Array | None,
    ) -> Kept:
        """The merged directions, and the block's curvature with this task's."""
        return self.settled(block, kept, context, sub.units.size) | sub.kept(curvature)


class PrincipalBlock(Proposing):
    """One node's rows B = [V; A] and what it makes of them; coordinates are weights, in units of
    the ridge.

    The task's objective is  loss(A (w + d)) + 1/2 |V d|^2 + 1/2 d^T P d - s pull.d  with
    P = H_k - V_k^T V_k + s. A proposal solves the whole problem as the merged directions V' know
    it, C = V'^T V' + D with D_k = H_k + A_k^T A_k - V'_k^T V'_k + s: z = D^-1 (r - V'^T t), where
    the coordinator has found t = (I + V' D^-1 V'^T)^-1 V' D^-1 r from all nodes' `residual`.
    """

    questions = (
        *("gram", "shown", "sketch", "power", "project", "weigh", "merge", "stack"),
        *("least", "coarse", "residual", "probe", "witness", "bent", "cut", "leverage"),
    )

    def __init__(
        self,
        solver: PrincipalMemory,
        units: Units,
        pull: Array | None,
        kept: Kept,
        context: Context,
    ):
        self.units, self.context, self.each = units, context, context.each
        self.A = by_columns(units.block)
        n, p = self.A.shape
        self.size = p
        self.seed, self.apart = [solver.seed, context.task, context.node], context.apart
        self.pull = np.zeros((p, 1)) if pull is None else pull
        change = 1.0 if units.change is None else units.change
        root = solver.discount**0.5
        self.V = kept["principal"] * (root * change) if "principal" in kept else np.zeros((0, p))
        self.probes, self.curved = _probes(kept, p, self.seed, solver.discount, change)
        self.H = _past(kept, p, solver.discount, change)
        self.weight: Array = np.full(n, context.smoothness**-0.5)  # of the task's rows

    # ---- what the coordinator asks to merge the directions ----

    def gram(self, d: Array) -> Array:
        """B B^T."""
        VA = self._rows_times(self.V.T).T
        AA = gram(scale_rows(self.A, self.weight), wide=True)
        return np.block([[self.V @ self.V.T, VA], [VA.T, AA]])

    def shown(self, d: Array) -> Array:
        """B itself, rotated where nodes are apart: what a narrow block sends."""
        rows = np.concatenate([self.V, as_dense(scale_rows(self.A, self.weight))])
        if self.apart:
            rows = rows @ rotation(self.seed[0], self.seed[2], self.size)
        return rows

    def sketch(self, d: Array, width: int) -> Array:
        """B times random columns that no other node knows."""
        omega = np.random.default_rng(self.seed).standard_normal((self.size, width))
        return self._times(omega)

    def power(self, d: Array, Q: Array) -> Array:
        """B B^T Q."""
        return self._times(self._back(Q))

    def project(self, d: Array, Q: Array) -> Array:
        """C C^T for C = Q^T B; below it, in a row of its own, the squared norm of B."""
        C = self._back(Q)
        norm = np.zeros((1, C.shape[1]))
        norm[0, 0] = np.sum(self.V**2) + np.sum(_squares(scale_rows(self.A, self.weight)))
        return np.concatenate([C.T @ C, norm])

    def weigh(self, d: Array, curvature: Array) -> Array:
        """Give the task's rows the weights that they are remembered with."""
        self.weight = np.sqrt(curvature)
        return np.zeros(0)

    def merge(self, d: Array, W: Array) -> Array:
        """V' = W^T B."""
        self.ready(self._back(W).T)
        return np.zeros(0)

    def stack(self, d: Array) -> Array:
        """V' = B: there is room for all rows."""
        rows = as_dense(scale_rows(self.A, self.weight))
        self.ready(np.concatenate([self.V, rows]))
        return np.zeros(0)

    def ready(self, V: Array) -> None:
        """Factorise D, once for every strength, with the merged directions V."""
        self.new = V
        rows = scale_rows(self.A, self.weight)
        if self.H.ndim == 1:
            left = np.maximum(self.H + _squares(rows) - np.sum(V**2, axis=0), 0.0)
            self.cut_norm = float(np.max(left - np.maximum(self._remaining(), 0.0), initial=0.0))
            self.factors: list[Cholesky | _Diagonal] = [
                _Diagonal(left[:, None] + s) for s in self.each
            ]
            return
        new = gram(rows, wide=False) - V.T @ V
        cut = new + self.V.T @ self.V
        self.cut_norm = float(np.sqrt(np.linalg.norm(cut.T @ cut)))  # no less than the 2-norm
        left = self.H + new
        self.factors = [robust_cholesky(left + s * np.eye(self.size)) for s in self.each]

    # ---- what it asks in the rounds ----

    def least(self, d: Array) -> Array:
        """How much of C the problem's curvature has at least, as far as this block knows."""
        return np.array([s / (s + self.cut_norm) for s in self.each])

    def coarse(self, d: Array) -> Array:
        """V' D^-1 V'^T, for every strength."""
        return np.concatenate([self.new @ factor.solve(self.new.T) for factor in self.factors])

    def residual(self, d: Array, g: Array) -> Array:
        """V' D^-1 r."""
        return np.asarray(self.new @ self._inverse(self._gradient(g, d)[0]))

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        rows = self.A.shape[0] + len(self.V)
        r, Pd = self._gradient(g[:rows], d)
        z = self._inverse(r - self.new.T @ g[rows:] if len(g) > rows else r)
        Pz = self._penalty(z)
        zPz, qPz, dPz = column_dots(z, Pz), column_dots(q, Pz), column_dots(Pd, z)
        slack = column_dots(r, r) / self._strength(r)
        return Solution(z, PenaltyScalars(zPz, qPz, dPz, slack))

    def image(self, z: Array) -> Array:
        return np.concatenate([np.asarray(self.A @ z), self.V @ z])

    def lift(self, d: Array) -> Array:
        return d / self.units.size[:, None]

    # ---- what it asks in the end: how far the estimate is from the offline one ----

    def probe(self, d: Array) -> Array:
        """What the probes do to the rows."""
        return self.image(self.probes)

    def witness(self, d: Array, seen: Array) -> Array:
        """E o for every probe o, E what was cut between blocks before this task; ``seen`` is what
        all nodes' parts of o do to the rows. Answers o.E d; |d|^2; and how far units have grown."""
        n = self.A.shape[0]
        within = self._penalty(self.probes, strength=0.0)
        self.lost = self.curved - self.V.T @ seen[n:] - within
        self.now_curved = self.curved + np.asarray(self.A.T @ seen[:n])
        change = 1.0 if self.units.change is None else np.max(self.units.change) ** 2
        growth = np.full((1, d.shape[1]), max(change, 1.0))
        return np.concatenate([self.lost.T @ d, column_dots(d, d)[None], growth])

    def bent(self, d: Array) -> Array:
        """o.H o' and o.o' for all pairs of probes, H with this task."""
        return np.concatenate([self.probes.T @ self.now_curved, self.probes.T @ self.probes])

    def cut(self, d: Array, t: Array) -> Array:
        """|E o|^2 and E o.C^-1 E o, over all probes, for every strength. Without t, V' D^-1 E o."""
        x = np.tile(self.lost, (1, len(self.each)))
        if not len(t):
            return np.asarray(self.new @ self._inverse(x))
        z = self._inverse(x - self.new.T @ t)
        dots = np.array([column_dots(x, x), column_dots(x, z)])
        return np.asarray(dots.reshape(2, len(self.each), -1).sum(axis=2))

    def leverage(self, d: Array, rows: Array, t: Array) -> Array:
        """a.C^-1 a for some samples a: strengths x rows. Without t, V' D^-1 a."""
        a = np.tile(as_dense(self.A[rows]).T, (1, len(self.each)))
        if not len(t):
            return np.asarray(self.new @ self._inverse(a))
        return column_dots(a, self._inverse(a - self.new.T @ t)).reshape(len(self.each), -1)

    def kept(self, curvature: Array | None) -> dict[str, Array]:
        """After the task."""
        weight = np.ones(len(self.weight)) if curvature is None else np.sqrt(curvature)
        rows = scale_rows(self.A, weight)
        own = _squares(rows) if self.H.ndim == 1 else gram(rows, wide=False)
        new = {"diagonal" if self.H.ndim == 1 else "curvature": self.H + own}
        if len(self.new):
            new["principal"] = self.new
        if self.context.quadratic and len(self.new):
            new |= {"probes": self.probes, "curved": self.now_curved}
        return new

    # ---- small parts ----

    def _strength(self, x: Array) -> Array:
        return np.repeat(self.each, x.shape[1] // len(self.each))

    def _gradient(self, g: Array, d: Array) -> tuple[Array, Array]:
        """r = A^T g + V^T g' - P d + s pull, and its penalty's part P d - s pull."""
        Pd = self._penalty(d) - self._strength(d) * self.pull
        n = self.A.shape[0]
        return np.asarray(self.A.T @ g[:n]) + self.V.T @ g[n:] - Pd, Pd

    def _penalty(self, d: Array, strength: Array | float | None = None) -> Array:
        ridge = (self._strength(d) if strength is None else strength) * d
        if self.H.ndim == 1:
            return np.asarray(np.maximum(self._remaining(), 0.0)[:, None] * d + ridge)
        return np.asarray(self.H @ d - self.V.T @ (self.V @ d) + ridge)

    def _remaining(self) -> Array:
        """The diagonal of H_k - V_k^T V_k."""
        return np.asarray(self.H - np.sum(self.V**2, axis=0))

    def _inverse(self, r: Array) -> Array:
        parts = np.split(r, len(self.factors), axis=1)
        return np.hstack([f.solve(part) for f, part in zip(self.factors, parts, strict=True)])

    def _rows_times(self, x: Array) -> Array:
        return np.asarray(self.A @ x) * self.weight[:, None]

    def _times(self, x: Array) -> Array:
        """B x."""
        return np.concatenate([self.V @ x, self._rows_times(x)])

    def _back(self, y: Array) -> Array:
        """B^T y."""
        m = len(self.V)
        return np.asarray(self.V.T @ y[:m] + self.A.T @ (self.weight[:, None] * y[m:]))


@dataclass(frozen=True)
class _Diagonal:
    """A diagonal matrix that is solved with."""

    entries: Array

    def solve(self, b: Array) -> Array:
        return np.asarray(b / self.entries)


def _squares(rows: Block) -> Array:
    """Of every column's length."""
    if isinstance(rows, np.ndarray):
        return np.einsum("ij,ij->j", rows, rows)
    return np.asarray(rows.multiply(rows).sum(axis=0)).ravel()


def _past(kept: Kept, p: int, discount: float, change: Array | float) -> Array:
    """H_k as a matrix, or its diagonal, in this task's units."""
    if p > WIDEST_BLOCK:
        return discount * kept.get("diagonal", np.zeros(p)) * np.square(change)
    H = discount * kept.get("curvature", np.zeros((p, p)))
    both = np.broadcast_to(change, p)
    return np.asarray(H * both * both[:, None])


def _probes(
    kept: Kept, p: int, seed: list[int], discount: float, change: Array | float
) -> tuple[Array, Array]:
    """The probes o and H o, in this task's units; new ones before the first task."""
    if "probes" not in kept:
        probes = np.random.default_rng([*seed, 1]).standard_normal((p, PROBES))
        return probes, np.zeros((p, PROBES))
    columns = np.reshape(change, (-1, 1))
    return kept["probes"] / columns, discount * kept["curved"] * columns
