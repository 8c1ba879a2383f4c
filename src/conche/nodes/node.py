"""One node: its columns, its weights, its solver. It knows no network.

A task, from here: ``begin``, ``factorise``, any number of rounds of ``propose`` and ``accept``,
and ``end``, which answers the node's state after the task. The node itself keeps nothing between
tasks: a task that is abandoned halfway leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ..common.arrays import (
    Array,
    Block,
    as_type,
    is_here,
    like,
    scale_rows,
    space,
    zeros,
)
from ..common.outputs import Outputs
from ..errors import NetworkError
from ..tasks.mark import block_mark
from .layout import Layout
from .partition import Partition
from .scalars import Scalars
from .scaling import ON_HOST, Kept, Scaling
from .solvers.base import Context, Solver
from .solvers.stretched import Stretched
from .spread import Look

if TYPE_CHECKING:
    from .home import Home
    from .stack import Stack

T = TypeVar("T")

# Of all that solvers keep, these have a column for every output: what directions have cost, and
# what an elastic net's past wants.
PER_OUTPUT = ("owed", "wanted", "targets")


class Opening(NamedTuple):
    """What a node says first: its share of the predictions, and its solver's report."""

    predictions: Array  # A_k w_k
    report: Array
    mark: int = 0  # of the columns, where they were read from a file


class Start(NamedTuple):
    """What all nodes are told as a task begins."""

    outputs: Outputs | None = None  # to go on with, where others were learnt before
    root: Array | None = None  # of the samples' weights, where they have any
    added: tuple[tuple[bool, ...], ...] = ()  # whether each node's new columns were zero so far


PLAIN = Start()


class Proposal(NamedTuple):
    """What a node answers to a direction: one vector, and the solver's scalars."""

    image: Array
    scalars: Scalars


@dataclass(frozen=True)
class NodeState:
    """What of a node outlives a task. A value: nobody changes its arrays."""

    weights: Array  # p_k x n_outputs, for scaled columns; the intercept's, if any, comes last
    kept: Kept = field(default_factory=dict)  # by its solver
    numbers: Kept = field(default_factory=dict)  # by its scaling

    def only(self, outputs: Outputs | None) -> NodeState:
        """The state of some outputs alone; None: of all."""
        if outputs is None:
            return self
        kept = {k: outputs.of(a) if k in PER_OUTPUT else a for k, a in self.kept.items()}
        return replace(self, weights=outputs.of(self.weights), kept=kept)

    def moved(self, move: Callable[[Array], Array]) -> NodeState:
        """With its matrices moved to a device, or from it; what is little stays here."""
        kept = {k: a if k in ON_HOST else move(a) for k, a in self.kept.items()}
        return replace(self, weights=move(self.weights), kept=kept)

    def grown(self, solver: Solver[Any], more: Sequence[bool], intercept: bool) -> NodeState:
        """With columns that are new; some were zero so far, and not unknown."""
        if not more:
            return self
        layout = Layout.grown([self.weights.shape[0]], [len(more)], [intercept])
        state = self.laid_out(solver, layout, intercept)
        if not any(more) or "seen" not in state.numbers:
            return state
        seen = state.numbers["seen"].copy()
        seen[0, -len(more) :][list(more)] = max(seen[0].max(initial=0.0), 1.0)
        return replace(state, numbers={**state.numbers, "seen": seen})

    def laid_out(self, solver: Solver[Any], layout: Layout, intercept: bool) -> NodeState:
        """The state with more columns, or fewer: new ones have weight zero and no past."""
        own = layout  # numbers are of columns, without the constant
        if intercept:
            own = Layout(layout.rows[:-1], layout.places[:-1], layout.size - 1)
        fill = {"scale": 1.0}
        numbers = {k: own.along(a, -1, fill.get(k, 0.0)) for k, a in self.numbers.items()}
        return NodeState(layout.along(self.weights), solver.laid_out(self.kept, layout), numbers)

    def to_arrays(self) -> dict[str, Array]:
        """By name, as they are saved and sent."""
        arrays = {"weights": self.weights}
        arrays |= {f"kept.{name}": array for name, array in self.kept.items()}
        return arrays | {f"numbers.{name}": array for name, array in self.numbers.items()}

    @classmethod
    def from_arrays(cls, arrays: Kept) -> NodeState:
        """Back from `to_arrays`."""

        def of(kind: str) -> dict[str, Array]:
            return {k.removeprefix(kind): a for k, a in arrays.items() if k.startswith(kind)}

        return cls(arrays["weights"], of("kept."), of("numbers."))


@dataclass(frozen=True, eq=False)
class Setup:
    """What the nodes of a stream are made with, and never changes while it lasts."""

    solver: Solver[Any]
    partition: Partition
    scaling: Scaling = field(default_factory=Scaling)
    device: str = "cpu"  # where the nodes work
    homes: tuple[Home, ...] = ()  # where each keeps its state, where states stay with the nodes

    def node(self, k: int) -> Node:
        """The k-th node; the first one holds the intercept, if there is any."""
        return Node(self.solver, self.scaling, self.partition.intercept and k == 0, k)

    def weight_counts(self) -> list[int]:
        """Of every node, and of the coordinator where it keeps the past of all columns."""
        counts = self.partition.weight_counts()
        return [*counts, sum(counts)] if self.solver.meeting.central_state else counts

    def fresh(self, n_outputs: int, dtype: str) -> list[NodeState]:
        """Every state before the first task: zero weights."""
        dtype = self.solver.precision(dtype)
        return [NodeState(np.zeros((count, n_outputs), dtype)) for count in self.weight_counts()]


class Position(NamedTuple):
    """The update so far, the last direction and the last proposal, in the solver's coordinates."""

    d: Array
    q: Array
    z: Array


@dataclass
class _Work:
    """What one task needs: the block, and the node's state in the units of this task's columns."""

    block: Block | Stretched
    state: NodeState
    look: Look  # at the block
    root: Array | None = None  # of the samples' weights, which the block's rows have
    squares: Array | None = None  # of the block's columns, where they are known


@dataclass
class _Rounds:
    """What its rounds need: the factorised block, and where the node stands."""

    sub: Any  # the solver's `Subproblem`
    context: Context
    at: Position


class Node:
    """One node of a network.

    Parameters
    ----------
    solver : what it does with its block.
    scaling : what it does to its columns first.
    intercept : whether it holds the constant column, the last of its block.
    number : which node of the network it is.
    stack : where it stands for several nodes, which of its columns are whose.
    """

    def __init__(
        self,
        solver: Solver[Any],
        scaling: Scaling,
        intercept: bool = False,
        number: int = 0,
        stack: Stack | None = None,
    ):
        self.solver, self.scaling, self.intercept = solver, scaling, intercept
        self.number, self.stack = number, stack
        self._work: _Work | None = None
        self._rounds: _Rounds | None = None

    def begin(
        self, block: Block, state: NodeState, start: Start = PLAIN, marked: bool = False
    ) -> Opening:
        """Take a task's columns and the weights so far, as ``start`` says how to go on with them.

        Answers A_k w_k (Algorithm 1, line 3, without the factor K), the solver's report and, if it
        is to be ``marked``, what the block is known by again.
        """
        mark = block_mark(self.number, block) if marked else 0
        more = start.added[self.number] if start.added else ()
        state = state.only(start.outputs).grown(self.solver, more, self.intercept)
        root = start.root
        block = as_type(block, state.weights.dtype)
        squares = None if root is None else root**2
        stretched = self.solver.stretches
        scaled = self.scaling.apply(block, state.numbers, squares, self.intercept, stretched)
        block, state = scaled.block, replace(state, numbers=scaled.numbers)
        if scaled.rescaled is not None:
            state = self._rescaled(state, scaled.rescaled)
        if root is not None:
            block = scale_rows(block, as_type(root, block.dtype))
        ready = block if scaled.by is None else Stretched(block, scaled.by)
        look = Look(ready, root, scaled.spread)  # which is known where samples have no weights
        squares = scaled.squares if root is None else None
        if squares is not None and self.intercept:
            squares = np.append(squares, float(block.shape[0]))
        self._work = _Work(ready, state, look, root, squares)
        w = state.weights
        # the first task: spare a pass over the data
        learnt = bool(space(w).any(w != 0))
        rows = Stretched.of(ready)
        predictions = rows.times(w) if learnt else zeros(w, block.shape[0], w.shape[1])
        return Opening(predictions, self.solver.report(ready, state.kept, look), mark)

    def take(self, block: Block, state: NodeState) -> None:
        """Take columns that are ready to be learnt from, and say nothing yet."""
        self._work = _Work(block, state, Look(block, None))

    def _rescaled(self, state: NodeState, ratio: Array) -> NodeState:
        """The same estimate and memory for columns whose scale has changed by ``ratio``."""
        if self.intercept:
            ratio = np.append(ratio, 1.0)
        weights = state.weights * like(state.weights, ratio)[:, None]
        return replace(state, weights=weights, kept=self.solver.rescaled(state.kept, ratio))

    def factorise(self, context: Context) -> None:
        """Factorise the block, once for the whole task, with what all nodes agreed on."""
        work = _under_way(self._work)
        own: dict[str, Any] = dict(holds_intercept=self.intercept, node=self.number)
        context = replace(context, look=work.look, root=work.root, stack=self.stack, **own)
        state = work.state
        sub = self.solver.factorise(work.block, state.weights, state.kept, context)
        nothing = zeros(state.weights, *sub.stacked, sub.size, state.weights.shape[1])
        self._rounds = _Rounds(sub, context, Position(nothing, nothing, nothing))

    def propose(self, g: Array) -> Proposal:
        """The block update z for the direction g, as its effect on the predictions (line 7)."""
        rounds = _under_way(self._rounds)
        z, scalars = rounds.sub.solve(g, rounds.at.d, rounds.at.q)
        rounds.at = rounds.at._replace(z=z)
        image = as_type(rounds.sub.image(z), _under_way(self._work).state.weights.dtype)
        return Proposal(image, scalars)

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        """q = z + momentum q, d = d + step q; without them line 8: momentum = 0 and step = 1/K."""
        rounds = _under_way(self._rounds)
        d, q, z = rounds.at
        share = 1.0 / rounds.context.n_nodes if step is None else as_type(step, d.dtype)
        q = z if momentum is None else z + as_type(momentum, d.dtype) * q
        rounds.at = Position(d + share * q, q, z)

    def ask(self, question: str | None, *about: Any) -> Any:
        """What the solver's own coordinator wants to know; None: nothing."""
        rounds = _under_way(self._rounds)
        if question is None:
            return np.zeros((0, 0))
        if question not in rounds.sub.questions:
            raise NetworkError(f"a node of this solver knows no {question!r}")
        return getattr(rounds.sub, question)(rounds.at.d, *about)

    def move(self, d: Array) -> None:
        """Stand at the update d, which the coordinator has found."""
        rounds = _under_way(self._rounds)
        rounds.at = rounds.at._replace(d=d)

    def position(self) -> Position:
        """Where the node stands in the task's rounds."""
        return _under_way(self._rounds).at

    def move_to(self, position: Position) -> None:
        """Stand where another node stood, to take its place."""
        _under_way(self._rounds).at = position

    def end(self, curvature: Array | None = None) -> NodeState:
        """The state after the task.

        ``curvature`` is the loss's second derivative per sample; None where it is one.
        """
        work, rounds = _under_way(self._work), _under_way(self._rounds)
        weights = work.state.weights + rounds.sub.lift(rounds.at.d)
        kept = self.solver.remember(
            work.block, work.state.kept, rounds.context, rounds.sub, curvature
        )
        # in one order, so that what a saved model goes on with rounds as what it was saved from
        kept = {k: np.ascontiguousarray(a) if is_here(a) else a for k, a in kept.items()}
        dtype = work.state.weights.dtype
        return NodeState(as_type(weights, dtype), kept, work.state.numbers)

    def reach(self, state: NodeState) -> Array:
        """What rounding is a share of in the predictions: columns' lengths times their weights'."""
        work, rounds = _under_way(self._work), _under_way(self._rounds)
        whole = self.scaling.reach(work.block, state.weights, state.numbers, work.squares)
        return whole + rounds.sub.reach(rounds.at.d)

    def forget(self) -> None:
        """Let go of the task's data."""
        self._work = self._rounds = None


def _under_way(part: T | None) -> T:
    if part is None:
        raise NetworkError("no task is under way: call begin first")
    return part
