"""An elastic net over nodes: every node offers the columns that may get a weight, and the
coordinator finds the best weights of all of them together.

The stream's problem after some tasks is scikit-learn's on all samples so far, times their number N,

    sum_t loss(A_t w) + N alpha rho |w|_1 + N alpha (1 - rho) / 2 |w|^2,

and a column whose gradient stays below N alpha rho has weight zero. So a node looks at all of its
columns, and offers those that break that condition: their entries, in rows that all nodes have
mixed the same way (`conche.nodes.solvers.mixing`). Up to ``rank`` columns all are offered at once,
and what the coordinator keeps of a task (`conche.network.elastic_net`) is all that there is to
know: the estimate is that of all tasks at once. Beyond, a node keeps of columns that were not
offered so far their own squares, and what the past wants of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from ...common.arrays import Array, Block, as_dense, by_columns, column_squares, scale_rows
from ..layout import Layout
from ..scaling import Kept
from ..spread import Look
from .base import Context, Meeting, Solver, Subproblem
from .l1 import Penalty
from .mixing import mixed

# of the largest alpha, which leaves no weight; the first is the model's until one has been better
STRENGTHS = (0.1, 0.5, 0.2, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
OFFERED = 512  # columns that all nodes together offer at first, at most
LEAST_OFFERED = 8  # of them, that one node may


@dataclass(frozen=True)
class CandidateSolver(Solver["CandidateBlock"]):
    """``alpha`` and ``l1_ratio`` as in scikit-learn's ``ElasticNet``; the coordinator keeps up to
    ``rank`` columns of the past."""

    remembers: ClassVar[bool] = True

    alpha: float | None  # None: as many as there are `STRENGTHS`, of which the stream chooses
    l1_ratio: float
    rank: int
    seed: int = 0

    @property
    def meeting(self) -> Meeting:
        """The coordinator solves for all that is offered."""
        return Meeting.CANDIDATES

    @property
    def news(self) -> frozenset[str]:
        """What a node has offered it does not offer again; and what it is to keep."""
        return frozenset({"offer", "settle"})

    def kind_of_steps(self, asked: str) -> str:
        """One for all: the coordinator's proposals are solutions."""
        return "elastic-net newton"

    def strengths(self, quadratic: bool) -> tuple[float, ...]:
        """Of the penalty, where it is not given."""
        return STRENGTHS if self.alpha is None else (1.0,)

    def penalty(self, count: float, largest: float, each: Sequence[float], outputs: int) -> Penalty:
        """Of a stream with so many samples so far, for all outputs, where ``each`` are the
        strengths that are tried."""
        alpha = np.array([self.alpha_at(count, largest, strength) for strength in each])
        strengths = count * np.repeat(alpha, outputs // len(alpha))
        return Penalty.like_theirs(strengths, self.l1_ratio)

    def alpha_of(self, kept: Kept, strength: float) -> float:
        """As given, or as it was chosen."""
        count, largest = (float(kept[name][0]) for name in ("count", "largest"))
        return self.alpha_at(count, largest, strength)

    def alpha_at(self, count: float, largest: float, strength: float) -> float:
        """As given; or the share ``strength`` of the one that leaves no weight. ``largest`` is that
        of the first task times the root of its samples: what noise alone pulls at a column, a
        sample, falls with the root of their number, and so does the best alpha."""
        return largest / count**0.5 * strength if self.alpha is None else self.alpha

    def coordinator(self) -> CandidateCentre:
        """What becomes of the coordinator's state when columns come or go."""
        return CandidateCentre()

    def precision(self, dtype: str) -> str:
        """Double, whatever the data are."""
        return "float64"

    def report(self, block: Block, kept: Kept, look: Look) -> Array:
        """Whether scales have changed; and the number of columns."""
        return np.array([float("ratio" in kept), block.shape[1]])

    def agree(self, report: Array, context: Context) -> Context:
        return replace(context, turning=bool(report[0]), n_columns=int(report[1]))

    def factorise(
        self, block: Block, weights: Array, kept: Kept, context: Context
    ) -> CandidateBlock:
        """Nothing is factorised: columns are made ready to be looked at."""
        return CandidateBlock(block, weights.shape[1], kept, self, context)

    def centre_fits(self, name: str, array: Array, size: int) -> bool:
        """Rows, their targets, and the columns that they are of."""
        if name == "among":
            return array.ndim == 1 and bool(np.all((array >= 0) & (array < size)))
        if name in ("count", "largest"):
            return array.shape == (1,) and bool(array[0] >= 0)
        return array.ndim == 2 and (name != "weights" or len(array) == size)

    def remember(
        self,
        block: Block,
        kept: Kept,
        context: Context,
        sub: CandidateBlock,
        curvature: Array | None,
    ) -> Kept:
        """What the past wants of columns that the coordinator does not keep; with room for all,
        nothing."""
        return sub.to_keep

    def laid_out(self, kept: Kept, layout: Layout) -> Kept:
        new = {name: layout.along(kept[name]) for name in ("square", "wanted") if name in kept}
        if "ratio" in kept:
            new["ratio"] = layout.along(kept["ratio"], 0, 1.0)
        return new

    def rescaled(self, kept: Kept, ratio: Array) -> Kept:
        """The coordinator is told when the task begins."""
        new = {**kept, "ratio": kept.get("ratio", 1.0) * ratio}
        if "square" in kept:
            new["square"] = kept["square"] / ratio**2
            new["wanted"] = kept["wanted"] / ratio[:, None]
        return new


class CandidateCentre(Solver[Subproblem]):
    """The coordinator's part of the state: rows of the past for some columns."""

    def factorise(self, block: Block, weights: Array, kept: Kept, context: Context) -> Subproblem:
        raise AssertionError("the coordinator has no block")  # its network does the work

    def laid_out(self, kept: Kept, layout: Layout) -> Kept:
        """The columns by their new numbers; those that are gone leave the rows."""
        if "among" not in kept:
            return kept
        place = np.full(
            int(max(layout.rows.max(initial=-1), kept["among"].max(initial=-1))) + 1, -1
        )
        place[layout.rows] = layout.places
        among = place[kept["among"].astype(int)]
        stays = among >= 0
        return {**kept, "among": among[stays].astype(float), "rows": kept["rows"][:, stays]}


class Offer(NamedTuple):
    """What a node answers: columns, and how far all others are from getting a weight."""

    numbers: Array  # of the columns, in the node's own order
    square: Array  # of each, over the past, as far as the coordinator does not know
    wanted: Array  # columns x outputs: what the past wants of it, likewise
    pull: Array  # columns x outputs: what the task wants of it
    columns: Array  # n x columns, mixed; or none of the rows, where they come later
    most: Array  # per output: the largest pull on a column that is not offered
    sign: float  # of how rows are mixed: the same on all nodes

    def to_array(self) -> Array:
        """As it travels: a column for every column, and one for the rest."""
        outputs, below = len(self.most), 2 + 2 * len(self.most)
        whole = np.zeros((below + len(self.columns), len(self.numbers) + 1))
        whole[0, :-1], whole[1, :-1] = self.numbers, self.square
        whole[2 : 2 + outputs, :-1], whole[2 + outputs : below, :-1] = self.wanted.T, self.pull.T
        whole[below:, :-1] = self.columns
        whole[0, -1], whole[2 : 2 + outputs, -1] = self.sign, self.most
        return whole

    @classmethod
    def from_array(cls, whole: Array, outputs: int) -> Offer:
        """Back from `to_array`."""
        left, rest = whole[:, :-1], whole[:, -1]
        numbers, square, wanted, pull, columns = np.split(
            left, [1, 2, 2 + outputs, 2 + 2 * outputs]
        )
        most = rest[2 : 2 + outputs]
        return cls(
            numbers[0].astype(int), square[0], wanted.T, pull.T, columns, most, float(rest[0])
        )


class CandidateBlock(Subproblem):
    """A node's columns; coordinates are the weights of those that it has offered, in that order."""

    questions = ("offer", "again", "target", "image", "ratios", "settle")

    def __init__(
        self, block: Block, outputs: int, kept: Kept, solver: CandidateSolver, context: Context
    ):
        self.block = sparse.csc_array(block) if sparse.issparse(block) else by_columns(block)
        self.outputs, self.context, self.size = outputs, context, 0
        p = block.shape[1]
        self.ratio = kept.get("ratio")
        self.square = kept.get("square", np.zeros(p)) * context.discount
        self.wanted = kept.get("wanted", np.zeros((p, outputs))) * context.discount
        self.chosen = np.zeros(0, dtype=int)
        self.seeds = (solver.seed, context.task)
        self.first = max(OFFERED // context.n_nodes, LEAST_OFFERED)
        self.pull = np.zeros((p, outputs))  # of the last direction on all columns
        self.to_keep: dict[str, Array] = {}

    def offer(self, d: Array, g: Array, l1: Array, asked: Array) -> Array:
        """The columns that are ``asked`` for, and others that the direction g pulls by more than
        l1: the farthest first, at most as many as there are already."""
        self.pull = np.asarray(self.block.T @ g)
        far = np.abs(self.pull + self.wanted)
        if self.context.holds_intercept:
            far[-1] = 0.0
        old = np.setdiff1d(asked.astype(int), self.chosen)
        far[self.chosen], far[old] = 0.0, 0.0
        over = (far - l1).max(axis=1, initial=-np.inf)
        room = max(self.first, len(self.chosen) + len(old))
        new = np.argpartition(-over, min(room, len(over)) - 1)[:room] if len(over) else old
        new = np.concatenate([old, np.sort(new[over[new] > 0])])
        self.chosen = np.concatenate([self.chosen, new])
        far[new] = 0.0
        most = far.max(axis=0, initial=0.0)
        if self.context.quadratic:
            return self._offered(new, most, np.ones((len(g), 1)))
        nothing = np.zeros((0, len(new)))  # the rows come `again`, with their weights
        return Offer(
            new, self.square[new], self.wanted[new], self.pull[new], nothing, most, 0.0
        ).to_array()

    def again(self, d: Array, root: Array, number: Array) -> Array:
        """All that was offered so far, in rows multiplied with ``root`` and mixed anew; with
        several columns of roots, one after the other."""
        return self._offered(self.chosen, np.zeros(self.outputs), root, int(number[0]))

    def target(self, d: Array, g: Array, root: Array, number: Array) -> Array:
        """A direction in the same rows: one node answers for all."""
        g = g / root
        if not self.context.apart:
            return g
        return np.hstack([self._mixed(part, number[0], i) for i, part in self._parts(g, root)])

    def _offered(self, which: Array, most: Array, root: Array, number: int = 0) -> Array:
        every = len(which) == self.block.shape[1] and bool(np.all(np.diff(which) > 0))
        own, sign = self.block if every else self.block[:, which], 0.0
        plain = root.shape[1] == 1 and bool(np.all(root == 1))
        parts = [as_dense(own if plain else scale_rows(own, column)) for column in root.T]
        if self.context.apart:
            parts = [self._mixed(part, number, i) for i, part in enumerate(parts)]
            sign = float(self._mixed(np.ones((len(root), 1)), number, 0)[0, 0])
        columns = np.vstack(parts) if len(parts) > 1 else parts[0]
        told = Offer(
            which, self.square[which], self.wanted[which], self.pull[which], columns, most, sign
        )
        return told.to_array()

    def _mixed(self, rows: Array, number: float, i: int) -> Array:
        return mixed(rows, *self.seeds, int(number), i)

    @staticmethod
    def _parts(g: Array, root: Array) -> Iterator[tuple[int, Array]]:
        """The columns of g that share their rows' roots, by the number of those."""
        if root.shape[1] == 1:
            yield 0, g
        else:
            yield from ((i, g[:, [i]]) for i in range(g.shape[1]))

    def image(self, d: Array, z: Array) -> Array:
        """What a move of the weights that it has offered does to the predictions."""
        return np.asarray(self.block[:, self.chosen] @ z)

    def ratios(self, d: Array) -> Array:
        """By how much every column's scale has changed since the last task."""
        return np.ones(self.block.shape[1]) if self.ratio is None else self.ratio

    def settle(self, d: Array, g: Array, root: Array, back: Array) -> Array:
        """After the last round: what to keep of columns that the coordinator does not. Of the
        task's rows, weighed with ``root``, the squares and what the final direction g wants; of
        columns that it has let go (``back``: number, square, wanted), what it knew of them."""
        rows = scale_rows(self.block, root[:, 0])
        square = self.square + column_squares(rows)
        wanted = self.wanted + np.asarray(self.block.T @ g)
        square[self.chosen], wanted[self.chosen] = 0.0, 0.0
        let_go = back[0].astype(int)
        square[let_go], wanted[let_go] = back[1], back[2:].T
        self.to_keep = {"square": square, "wanted": wanted}
        return np.zeros(0)

    def lift(self, d: Array) -> Array:
        whole = np.zeros((self.block.shape[1], self.outputs))
        if len(d):
            whole[self.chosen] = d
        return whole
