"""One node: its columns, its weights, its solver. It knows no network.

A task, from here: ``begin``, ``prepare``, any number of rounds of ``propose`` and ``accept``, and
``end``. The weights and the memory change in ``end`` alone, so a task that is abandoned halfway
leaves the node as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .preparation import Preparation
from .solvers.base import Array, Block, Context, Memory, Solver, Subproblem


class Opening(NamedTuple):
    """What a node says first: its share of the predictions, and its solver's report."""

    predictions: Array  # A_k w_k
    report: Array


class Proposal(NamedTuple):
    """What a node answers to a direction: one vector, and the solver's scalars, if it has any."""

    image: Array
    scalars: Array | None


@dataclass(frozen=True)
class State:
    """What outlives a task."""

    weights: Array  # p_k x n_outputs, for prepared columns; the intercept's, if any, comes last
    memory: Memory = field(default_factory=dict)
    numbers: Memory = field(default_factory=dict)  # of its preparation


class Position(NamedTuple):
    """The update so far, the last direction and the last proposal, in the solver's coordinates."""

    d: Array
    q: Array
    z: Array


@dataclass
class _Work:
    """What one task needs: the factorised block, the update d, and the last direction q.

    ``state`` is the node's, in the units that this task's preparation gives the columns.
    """

    block: Block
    state: State
    sub: Subproblem | None = None
    context: Context | None = None
    d: Any = None
    q: Any = None
    z: Any = None


class Node:
    def __init__(
        self,
        solver: Solver,
        state: State,
        preparation: Preparation | None = None,
        intercept: bool = False,
    ):
        self.solver = solver
        self.state = state
        self.preparation = preparation or Preparation()
        self.intercept = intercept  # whether this node holds the constant column
        self._work: _Work | None = None

    def begin(self, block: Block) -> Opening:
        """Take the task's columns; answer A_k w_k (Algorithm 1, line 3, without the factor K)."""
        if block.dtype != self.state.weights.dtype:
            block = block.astype(self.state.weights.dtype)
        prepared = self.preparation.apply(block, self.state.numbers)
        block, state = prepared.block, replace(self.state, numbers=prepared.numbers)
        if prepared.rescaled is not None:
            state = self._rescaled(state, prepared.rescaled)
        if self.intercept:
            block = _with_ones(block)
        self._work = _Work(block, state)
        w = state.weights
        if np.any(w):
            predictions = np.asarray(block @ w)
        else:  # the first task: spare a pass over the data
            predictions = np.zeros((block.shape[0], w.shape[1]), w.dtype)
        return Opening(predictions, self.solver.report(block, state.memory))

    def _rescaled(self, state: State, ratio: Array) -> State:
        """The same estimate and memory for columns whose scale has changed by ``ratio``."""
        if self.intercept:
            ratio = np.append(ratio, 1.0)
        weights = state.weights * ratio[:, None].astype(state.weights.dtype)
        return replace(state, weights=weights, memory=self.solver.rescaled(state.memory, ratio))

    def prepare(self, context: Context) -> None:
        """Factorise the block, once for the whole task."""
        work = self._open()
        work.context = context = replace(context, holds_intercept=self.intercept)
        work.sub = self.solver.prepare(work.block, work.state.memory, context)
        work.sub.start(work.state.weights)
        shape = (work.sub.size, self.state.weights.shape[1])
        work.d = np.zeros(shape, self.state.weights.dtype)
        work.q = np.zeros_like(work.d)

    def propose(self, g: Array) -> Proposal:
        """The block update z for the direction g, as its effect on the predictions (line 7)."""
        work = self._open()
        sub = work.sub
        assert sub is not None
        work.z = z = sub.solve(g, work.d)
        return Proposal(sub.image(z), sub.scalars(z, work.q, work.d))

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        """q = z + momentum q, d = d + step q; without them line 8: momentum = 0 and step = 1/K."""
        work = self._open()
        assert work.context is not None
        dtype = work.d.dtype
        if step is None:
            step = np.array(1.0 / work.context.n_nodes)
        work.q = work.z if momentum is None else work.z + momentum.astype(dtype) * work.q
        work.d = work.d + step.astype(dtype) * work.q

    def position(self) -> Position:
        """Where the node stands in the task's rounds."""
        work = self._open()
        return Position(work.d, work.q, work.z)

    def move_to(self, position: Position) -> None:
        work = self._open()
        work.d, work.q, work.z = position

    def end(self, curvature: Array | None = None) -> State:
        """The state after the task; the caller installs it once every node has answered."""
        work = self._open()
        assert work.sub is not None and work.context is not None
        weights = work.state.weights + work.sub.lift(work.d)
        memory = self.solver.remember(
            work.block, work.state.memory, work.context, work.sub, curvature
        )
        return State(weights, memory, work.state.numbers)

    def install(self, state: State) -> None:
        """Become what ``end`` answered, and let go of the task's data."""
        self.state, self._work = state, None

    def forget_task(self) -> None:
        """Abandon the task under way; weights and memory are as they were before it."""
        self._work = None

    def _open(self) -> _Work:
        if self._work is None:
            raise RuntimeError("no task is under way: call begin first")
        return self._work


def _with_ones(block: Block) -> Block:
    """The block and a constant column, its last."""
    both = [block, np.ones((block.shape[0], 1), dtype=block.dtype)]
    return sparse.hstack(both, "csc") if sparse.issparse(block) else np.hstack(both)
