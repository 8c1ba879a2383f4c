"""What every local solver agrees on: the four moments of a task, seen from one node.

A task is learnt as  min_d  loss(A (w + d)) + penalty(d)  over the update d, block by block:

1. ``report``     before anything is factorised, each node states a few numbers about its block;
                  they are summed over the nodes,
2. ``agree``      the coordinator turns the sum into the `Context` that all nodes share,
3. ``factorise``  each node factorises its block, once per task: the `Subproblem`,
4. ``remember``   after the last round, what the node keeps of the task (nothing, or curvature).

Solvers are configuration only; whatever changes lives in the node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from ...common.arrays import Array, Block
from ..layout import Layout
from ..scalars import Scalars
from ..scaling import Kept
from ..spread import Look

if TYPE_CHECKING:
    from ..stack import Stack


class Meeting(Enum):
    """How the coordinator and the nodes of a solver come to a proposal."""

    CENTRE = "centre"  # nodes propose, the coordinator adds up
    SUMS = "sums"  # nodes show columns, and the coordinator keeps sums of them
    POOL = "pool"  # the coordinator has all columns, rotated, and solves alone
    CANDIDATES = "candidates"  # nodes offer columns, and the coordinator solves for those
    PRINCIPAL = "principal"  # nodes propose, and the coordinator corrects with what all share

    @property
    def central_state(self) -> bool:
        """Whether the coordinator keeps a state of its own, after the nodes'."""
        return self in (Meeting.POOL, Meeting.CANDIDATES)


@dataclass(frozen=True)
class Context:
    """What the coordinator tells every node about the task."""

    task: int  # tasks learnt before this one
    n_nodes: int
    n_samples: int
    weight: float  # of all samples together: their number, unless they have weights
    smoothness: float  # tau of the loss
    quadratic: bool = True  # whether the loss is
    damping: float = 0.0
    discount: float = 1.0  # the weight of the past in this task
    turning: bool = False  # whether some node's coordinates have changed since the last task
    past_rows: int = 0  # rows that the past's directions add below the task's
    each: tuple[float, ...] = (1.0,)  # strengths of the penalty that are tried side by side
    n_columns: int = 1  # of all nodes
    n_new: int = 0  # of them that no node has turned yet
    shown: str = "plain"  # how lossless memory's nodes show columns: or "mixed", or "turned"
    open_ridge: bool = False  # whether some column has too few samples to tell its ridge
    sigma: float = 1.0  # sigma' of CoCoA: how far nodes allow for the others' moves
    tol: float = 0.0  # what the certificate is to come to, of the objective at the start
    intercept: bool = False  # whether some node has the constant column
    holds_intercept: bool = False  # whether this one has: its last
    node: int = 0  # its number
    apart: bool = False  # whether nodes are in processes of their own
    secure: bool = False  # whether nobody else may know what a node draws
    look: Look | None = None  # at the node's block
    root: Array | None = None  # of the samples' weights, which the block's rows have been given
    stack: Stack | None = None  # where the block holds several nodes' columns: whose are whose


class Solution(NamedTuple):
    """A node's proposal for one direction, and the numbers that go with it."""

    z: Array
    scalars: Scalars


class Subproblem(ABC):
    """One node's factorised block.

    Updates are held in *coordinates* of the subproblem's choosing (the block's weights where it is
    tall, its samples where it is wide, so that rounds never touch a million columns); ``lift``
    turns them into weights. Some solvers' coordinators ask for more than proposals: a question is
    a method's name, and its first argument the update so far.
    """

    size: int  # number of coordinates
    stacked: tuple[int, ...] = ()  # nodes, where each has its own in a stack: nodes x size
    questions: tuple[str, ...] = ()  # what may be asked

    @abstractmethod
    def lift(self, d: Array) -> Array:
        """The block's weights for the coordinates d."""

    def reach(self, d: Array) -> Array | float:
        """What the rounding of d's effect is a share of, beyond columns' lengths times weights'."""
        return 0.0


class Proposing(Subproblem):
    """A block whose node makes proposals."""

    @abstractmethod
    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        """The node's proposal.

        Parameters
        ----------
        g : the descent direction in prediction space: task rows, then the past's rows.
        d, q : the update since the task began and the last direction, in coordinates.
        """

    @abstractmethod
    def image(self, z: Array) -> Array:
        """What z does to the predictions: A_k z, then the past's rows."""


S = TypeVar("S", bound=Subproblem)


class Solver(ABC, Generic[S]):
    """What one node does with its block."""

    discounts: tuple[float, ...] = (1.0,)  # weights of the past per task, to choose from
    remembers: ClassVar[bool] = False  # whether past tasks are kept
    stretches: ClassVar[bool] = False  # whether blocks may be `Stretched`
    draws: ClassVar[bool] = False  # whether nodes draw what is their secret, with secure sums

    @property
    def meeting(self) -> Meeting:
        """How nodes and coordinator come to a proposal."""
        return Meeting.CENTRE

    def precision(self, dtype: str) -> str:
        """What weights are kept in, for data of this type."""
        return dtype

    @property
    def news(self) -> frozenset[str]:
        """Questions that change what a node knows: another in its place must be asked them too."""
        return frozenset()

    def laid_out(self, kept: Kept, layout: Layout) -> Kept:
        """What is kept, for more columns or fewer; new ones have no past."""
        if kept:
            raise NotImplementedError(f"{type(self).__name__} does not say what becomes of it")
        return kept

    def kind_of_steps(self, asked: str) -> str:
        """Which kind of steps serves proposals of this solver; quadratic ones take any."""
        return asked

    def strengths(self, quadratic: bool) -> tuple[float, ...]:
        """Strengths of the penalty that learn side by side where the loss is quadratic or not: one,
        unless it chooses itself. Ties go to the first."""
        return (1.0,)

    def alpha_of(self, kept: Kept, strength: float) -> float | None:
        """The strength of an elastic net's penalty, from what its coordinator keeps; None where
        there is no such penalty."""
        return None

    def nearly_square(self, n_samples: int, sizes: Sequence[int]) -> list[int]:
        """Nodes whose number of columns makes the expected error infinite: none, but for Exact."""
        return []

    def report(self, block: Block, kept: Kept, look: Look) -> Array:
        """Numbers about the task's block that the coordinator adds up over the nodes; a ``look`` at
        it shows how far columns vary."""
        return np.zeros(0)

    def agree(self, report: Array, context: Context) -> Context:
        """What all nodes share in this task, from the sum of their reports."""
        return context

    @abstractmethod
    def factorise(self, block: Block, weights: Array, kept: Kept, context: Context) -> S:
        """Factorise a task's block, once.

        Parameters
        ----------
        block : the node's scaled columns, n x p_k.
        weights : the block's weights at the task's start, for solvers that penalise them.
        kept : what `remember` answered after the last task; empty in the first.
        context : what all nodes agreed on.
        """

    def fits(self, name: str, array: Array, size: int) -> bool:
        """Whether this may be what is kept under that name of so many columns."""
        return size in array.shape

    def centre_fits(self, name: str, array: Array, size: int) -> bool:
        """The same of what the coordinator keeps."""
        return self.fits(name, array, size)

    def remember(
        self, block: Block, kept: Kept, context: Context, sub: S, curvature: Array | None
    ) -> Kept:
        """What to keep of the task, by name.

        ``curvature`` is the loss's second derivative per sample, None for one.
        """
        return {}

    def alike(self, every: Sequence[Kept]) -> Sequence[Kept]:
        """What several nodes have kept, by the same names for all of them: nodes in one place are
        one."""
        return every

    def rescaled(self, kept: Kept, ratio: Array) -> Kept:
        """What was kept, for columns that have been divided by ``ratio``."""
        return kept


class Wrapper(Solver[S]):
    """A solver built on another one, ``base``, whose reports and agreements are its own."""

    base: Solver[Any]

    def report(self, block: Block, kept: Kept, look: Look) -> Array:
        """The base's."""
        return self.base.report(block, kept, look)

    def agree(self, report: Array, context: Context) -> Context:
        """The base's."""
        return self.base.agree(report, context)
