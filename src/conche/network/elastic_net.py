"""An elastic net's coordinator: it solves for all columns that nodes have offered, and remembers.

A round is two exchanges: nodes are told the direction and offer columns that it pulls at; they are
told how their columns' weights would move, and answer what that does to the predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import cast

import numpy as np

from ..common.arrays import Array, bytes_of
from ..errors import NodeError
from ..nodes import NodeState, Proposal
from ..nodes.scalars import Scalars
from ..nodes.solvers import Context
from ..nodes.solvers.candidates import CandidateSolver, Offer
from ..nodes.solvers.l1 import Penalty
from ..nodes.solvers.mixing import SHARED_SECRET
from ..nodes.solvers.past import DualPoint, Learning, Past
from .base import Coefficients, Each, Lost, Placed
from .pooled import PooledNetwork

FLATTEST = 1e-10  # of a loss's largest curvature: a sample's is never taken to be less


class CandidateNetwork(PooledNetwork):
    """A central network whose nodes offer columns. After theirs, ``placed`` has the coordinator's
    state: the past of columns that were offered, and all weights."""

    _context: Context
    _learning: Learning

    def factorise(self, context: Context) -> None:
        state = self._state
        assert state is not None and self.setup is not None
        self.inner.factorise(context)
        self._context, self.overhead, self._sent = context, 0, 0
        self._ends = np.cumsum([0, *self.setup.partition.weight_counts()]).tolist()
        self._offered = [np.zeros(0, dtype=int) for _ in self._ends[1:]]
        self._curvature = np.ones((context.n_samples, 1))
        self._rounds = 0
        past = Past.known(state.kept, state.weights.shape[1]).weighed(context.discount)
        if context.turning:
            ratio = np.concatenate(self.inner.ask("ratios"))
            self.overhead += bytes_of(ratio)
            past = past._replace(rows=past.rows / ratio[past.among])
            state = replace(state, weights=state.weights * ratio[:, None])
        self._before, before = state.weights, state.kept.get("count", np.zeros(1))
        self._count = context.discount * float(before[0]) + context.weight
        fixed = None if self._solver().alpha is None else np.ones(1)
        self._largest = state.kept.get("largest", fixed)
        self._learning = Learning(
            past,
            state.weights,
            Penalty(np.inf, 0.0) if self._largest is None else self._penalty(self._largest),
            context.n_samples,
            self._ends[1] - 1 if context.intercept else None,
        )

    def refresh(self, curvature: Array, round_number: int) -> bool:
        """Rows are to have the roots of the loss's curvature, for every output its own."""
        self._curvature = np.maximum(curvature, FLATTEST / self._context.smoothness)
        return True

    def propose(self, g: Array) -> Proposal:
        """The best weights of all columns that were offered so far."""
        self._sent = 0
        learning, point = self._learning, self._dual_point(g)
        most, pull = self._collect(point.apply(g, self._constant()), g)
        z = learning.solve()
        image = self.inner.total("image", self._each(z))
        self._sent += bytes_of(z) + self.hosts() * bytes_of(image)
        own = learning.pulls(point) if pull is None else pull
        return Proposal(image, learning.scalars(point, own, most))

    def _collect(self, towards: Array, g: Array) -> tuple[Array, Array | None]:
        """More columns, and the task's rows of all. Answers the largest pull on any column that is
        not among them; and what the task wants of each, where rows do not say it."""
        asked = Each(self._asked()) if self._rounds == 0 else Each([np.zeros(0)] * self._nodes)
        most = self._more(towards, asked)
        if np.any(np.isinf(self._learning.penalty.l1)):  # the first task, which says how large
            self._largest = self._found(most)
            self._learning.penalty = self._penalty(self._largest)
            most = self._more(towards, Each([np.zeros(0)] * self._nodes))
        pull, root = None, np.sqrt(self._curvature)
        if not self._context.quadratic:
            pull = np.zeros_like(self._learning.own)
            for k, offer in enumerate(self._offers("again", root, self._turn())):
                pull[self._learning.places[self._ends[k] + offer.numbers]] = offer.pull
        if self._rounds == 0 or not self._context.quadratic:
            self._learning.rest = self._target(g, root)
        self._rounds += 1
        return most, pull

    def _turn(self) -> Array:
        """Rows of other weights are mixed another way: of a task with a quadratic loss there is one
        kind."""
        return np.array([0.0 if self._context.quadratic else float(self._rounds)])

    def _target(self, g: Array, root: Array) -> Array:
        """The direction in mixed rows, of which one node answers for all."""
        one = Each(["target", *[None] * (self._nodes - 1)])
        self._sent += 2 * bytes_of(g)
        return self.inner.ask(one, g, root, self._turn())[0]

    def _more(self, towards: Array, asked: Each) -> Array:
        """Columns that nodes offer; answers the largest pull on any other."""
        l1 = np.broadcast_to(self._learning.penalty.l1, towards.shape[1])
        self._told = self._offers("offer", towards, l1, asked)
        self._sent += self.hosts() * (bytes_of(towards) + bytes_of(l1))
        return np.asarray(np.max([offer.most for offer in self._told], axis=0))

    def _penalty(self, largest: Array) -> Penalty:
        outputs = self._before.shape[1]
        return self._solver().penalty(self._count, float(largest[0]), self._context.each, outputs)

    def _found(self, most: Array) -> Array:
        """The alpha that leaves no weight, times the root of the samples: all columns were pulled
        at with none."""
        pulls = [np.abs(offer.pull + offer.wanted) for offer in self._told]
        if self._learning.free is not None:
            pulls[0][self._told[0].numbers == self._learning.free] = 0.0
        largest = max(float(most.max()), *(float(pull.max(initial=0.0)) for pull in pulls))
        return np.array([largest / (self._count**0.5 * self._solver().l1_ratio) or 1.0])

    def _offers(self, question: str, *about: Array | Each) -> list[Offer]:
        """What the nodes answer, taken note of."""
        outputs = self._before.shape[1]
        arrays = self.inner.ask(question, *about)
        self._sent += sum(bytes_of(array) for array in arrays)
        offers = [Offer.from_array(array, outputs) for array in arrays]
        if any(offer.sign != offers[0].sign for offer in offers):
            raise NodeError(
                f"nodes mix their rows differently: {SHARED_SECRET} must be the same for all"
            )
        if question == "offer":
            pairs = zip(self._offered, offers, strict=True)
            self._offered = [np.concatenate([old, offer.numbers]) for old, offer in pairs]
        pairs = zip(self._ends, offers, strict=False)
        numbers = np.concatenate([first + offer.numbers for first, offer in pairs])
        square = np.concatenate([offer.square for offer in offers])
        wanted = np.concatenate([offer.wanted for offer in offers])
        self._learning.add(numbers, square, wanted, np.hstack([o.columns for o in offers]))
        return offers

    def _asked(self) -> list[Array]:
        """What every node is to offer first: columns with a past or a weight, the intercept; where
        there is room for them, all."""
        wanted = np.any(self._before != 0, axis=1)
        wanted[self._learning.past.among] = True
        if self._learning.free is not None:
            wanted[self._learning.free] = True
        if self._whole:
            wanted[:] = True
        return [np.flatnonzero(wanted[a:b]).astype(float) for a, b in pairwise(self._ends)]

    def _dual_point(self, g: Array) -> DualPoint:
        if self._learning.free is None:
            return DualPoint.of(g)
        past, rest = self._learning.past_constant(), self._learning.past_rest
        kind = DualPoint.level_with if self._context.quadratic else DualPoint.balanced_with
        return kind(g, self._constant(), past, rest)

    def _constant(self) -> Array:
        """The constant column in the task's rows: the roots of samples' weights."""
        root = self._root
        return np.ones(self._context.n_samples) if root is None else root

    def _each(self, x: Array) -> Each:
        """Every node's own rows of something that has one for every column offered."""
        places, nodes = self._learning.places, zip(self._ends, self._offered, strict=False)
        return Each(x[places[first + own]] for first, own in nodes)

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        assert step is not None
        self._learning.accept(step)

    def certify(self, g: Array) -> Scalars | None:
        """Of a quadratic loss the coordinator has all rows and what is left of their targets: where
        all columns were offered, none is left that could still be pulled at."""
        if not (self._context.quadratic and self._whole):
            return None
        point, nothing = self._dual_point(g), np.zeros(g.shape[1])
        return self._learning.scalars(point, self._learning.pulls(point), nothing)

    def cost(self, arrays: Sequence[Array | None]) -> int:
        """What the round's exchanges came to."""
        return self._sent

    def conclude(self, curvature: Array | None, g: Array) -> Lost:
        """Remember the task; where there is no room for all columns, nodes keep what they can."""
        learning, self._sent = self._learning, 0
        root = np.ones((self._context.n_samples, 1))
        if curvature is not None:  # one for all outputs, which share what is kept
            root = np.sqrt(curvature)[:, None]
            self._offers("again", root, self._turn())
            learning.rest = self._target(g, root)
        past = learning.remembered()
        self._kept = past if self._whole else self._settled(past, g, root)
        self.overhead += self._sent
        return Lost(whole=self._whole, blind=not self._whole)

    def _settled(self, past: Past, g: Array, root: Array) -> Past:
        """Of at most ``rank`` columns; those with a weight, then those that are pulled most. The
        nodes get back what is known of the others."""
        w = self._learning.weights[past.among]
        rest = past.targets - past.rows @ w
        wanted = past.rows.T @ rest
        rank = np.abs(wanted).max(axis=1) + np.where(np.any(w != 0, axis=1), np.inf, 0.0)
        if self._learning.place is not None:
            rank[self._learning.place] = np.inf
        order = np.argsort(-rank, kind="stable")
        stays, goes = np.sort(order[: self._solver().rank]), np.sort(order[self._solver().rank :])
        # with so many weights that some must go, theirs are taken off the targets: as if for good
        past = past._replace(targets=past.targets - past.rows[:, goes] @ w[goes])
        square = np.sum(past.rows[:, goes] ** 2, axis=0)
        back = []
        for first, last in pairwise(self._ends):
            own = (past.among[goes] >= first) & (past.among[goes] < last)
            numbers = past.among[goes][own] - first
            back.append(np.vstack([numbers, square[own], wanted[goes][own].T]))
        self.inner.ask("settle", g, root, Each(back))
        self._sent += self.hosts() * (bytes_of(g) + bytes_of(root)) + sum(map(bytes_of, back))
        return past.some(stays)

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        learning = self._learning
        moves = self._each((learning.weights - self._before)[learning.past.among])
        self.overhead += sum(bytes_of(move) for move in moves)
        self.inner.move(moves)
        whole, placed = self.inner.end(curvature)
        kept = {**self._kept.to_keep(), "count": np.array([self._count]), "largest": self._largest}
        # in one order, as it is after it was saved and loaded
        kept = {name: np.ascontiguousarray(array) for name, array in kept.items()}
        self._state = None
        return whole, (*placed, NodeState(learning.weights, kept))

    @property
    def _whole(self) -> bool:
        """Whether there is room for all columns."""
        return len(self._before) <= self._solver().rank

    @property
    def _nodes(self) -> int:
        return len(self._offered)

    def _solver(self) -> CandidateSolver:
        assert self.setup is not None
        return cast(CandidateSolver, self.setup.solver)
