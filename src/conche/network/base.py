"""How nodes talk: the same few calls, whatever carries them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Array, bytes_of, here
from ..errors import ConcheError, NodeError, ParameterError
from ..nodes import PLAIN, NodeState, Opening, Proposal, Scaling, Setup, Start
from ..nodes.scalars import Scalars, total
from ..nodes.solvers import Context
from ..tasks.errands import Errand

EXPECTED = (ConcheError, OSError, ArithmeticError, MemoryError)  # on a node: what is no bug of ours
Placed = Sequence[Any]  # what stands for the nodes' states here: the states, or references to them


class ForgottenError(NodeError):
    """A worker that failed took along what its nodes had drawn in this task, which nobody else
    knows: the task has to be learnt again, from its beginning."""


class Coefficients(NamedTuple):
    """Weights for columns as they come, in their order; the intercept's row, if any, is last."""

    weights: Array  # n_features (+ 1) x n_outputs
    offset: Array  # n_outputs: what centring adds to the intercept
    means: Array | None  # of the columns, where missing values are filled with them
    reach: Array  # n_outputs: sum of columns' lengths times |weights|, which rounding is a share of
    units: Array | None = None  # of the columns, where nodes have fixed them


def share(scaling: Scaling, state: NodeState, reach: Array) -> Coefficients:
    """What one node's state amounts to, outside: the coefficients of its own columns."""
    weights, offset = scaling.outward(state.weights, state.numbers)
    means, units = scaling.means(state.numbers), state.kept.get("unit")
    return Coefficients(here(weights), here(offset), means, here(reach), units)


def coefficients(setup: Setup, shares: Sequence[Coefficients]) -> Coefficients:
    """All nodes' shares, put together in the order of the columns; where states stay with the
    nodes, how far they reach is all that is told of them."""
    if setup.homes:
        first, reach = shares[0], np.sum([part.reach for part in shares], axis=0)
        return Coefficients(first.weights[:0], np.zeros_like(first.offset), None, reach)
    partition = setup.partition
    weights = partition.join([part.weights for part in shares], partition.intercept)
    offset = np.sum([part.offset for part in shares], axis=0)
    means = [part.means for part in shares if part.means is not None]
    filled = partition.join(means, intercept=False) if means else None
    reach = np.sum([part.reach for part in shares], axis=0)
    units = [part.units for part in shares if part.units is not None]
    fixed = partition.join(units, intercept=False) if units else None
    return Coefficients(weights, offset, filled, reach, fixed)


class Lost(NamedTuple):
    """What memory of limited size has cost in a task; arrays have one entry per output."""

    cut: float = 0.0  # norm of what the task's merge cut off, at most
    moved: Array | float = 0.0  # |d|^2: the task's update, in units of the ridge
    spread: Array | float = 0.0  # sum over nodes of |F_k d|, where E = F^T F is what was cut
    owed: Array | float = 0.0  # b.(H + R)^-1 b at most, b the sum of E_kk d over all tasks
    growth: float = 1.0  # of lengths squared in those units since the last task, at most
    probed: Array | None = None  # o.E d for random directions o: probes x outputs
    ease: Array | float = 0.0  # x.(H + R)^-1 x over x.x for directions that were cut, per strength
    pairs: tuple[Array, ...] = ()  # o.H o' and o.o' for all pairs of those directions
    volume: Array | None = None  # log det (I + B B^T / s), per strength, where all rows B are kept
    constant: Array | float = 0.0  # the intercept's square in units of its ridge, per output
    whole: bool = False  # whether the task's objective was that of all tasks so far
    blind: bool = False  # whether something was lost that nobody has counted


class Network(ABC):
    """K nodes behind a few calls, with or without a centre.

    A network is `start`ed with what the nodes are made of; their states between tasks belong to
    the caller, who gets them from `place` and `end` and hands them to `begin`. So a task that
    fails, or is interrupted at any moment, changes nothing: the caller still has the old states.
    """

    setup: Setup | None = None  # what it was last started with
    central = True  # whether there is a coordinator that hears all nodes
    apart: bool = False  # whether nodes are in processes of their own
    in_one_place: bool = False  # whether all are one that has everybody's columns (`Stack`)
    secure: bool = False  # whether its coordinator is to see sums over workers alone
    overhead = 0  # bytes that a task has cost beside its rounds
    n_threads: int | None = None  # that a process may use; None: as many as there are

    def kind_of_steps(self, asked: str) -> str:
        """Which kind of steps the coordinator takes here, where ``asked`` is what the user wants.

        With a centre, any. Raises a `ParameterError` where it cannot be.
        """
        return asked

    @abstractmethod
    def start(self, setup: Setup) -> None:
        """Make the nodes."""

    @abstractmethod
    def place(self, states: Sequence[NodeState]) -> Placed:
        """Give every node its state; returns what stands for them here."""

    @abstractmethod
    def fetch(self, placed: Placed) -> list[NodeState]:
        """The states themselves, wherever they are: for saving."""

    @abstractmethod
    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        """Give every node its columns of a task; returns the sums of what they answer.

        ``start`` says which outputs to go on with, and what samples weigh.
        """

    @abstractmethod
    def factorise(self, context: Context) -> None:
        """Let every node factorise its block with what all agreed on."""

    @abstractmethod
    def accept(self, step: Array | None, momentum: Array | None) -> None:
        """Let every node move: d += step (z + momentum q).

        None where every node knows it: a step of 1/K, no momentum. Nothing is sent then.
        """

    def conclude(self, curvature: Array | None, g: Array) -> Lost | None:
        """After the last round, which left the direction g: make ready to remember the task, its
        rows weighed by the root of ``curvature``; answers what memory has cost in it, None where
        nobody keeps count."""
        return None

    def certify(self, g: Array) -> Scalars | None:
        """What certifies the point that a round has led to, where the direction is g: where that is
        known here without asking the nodes again. None elsewhere."""
        return None

    def voices(self, context: Context) -> int:
        """How many propose at the same time: steps that allow for the others are 1/K of it."""
        return context.n_nodes

    @abstractmethod
    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        """Finish the task: the new coefficients, and what stands for the nodes' new states.

        ``curvature`` is the loss's second derivative per sample; None where it is one.
        """

    def settle(  # noqa: B027  # where nodes are in this process, there is nothing to do
        self, n_nodes: int, workers: Sequence[str | None] = ()
    ) -> None:
        """So many nodes are to be, before anything is known of their columns; ``workers`` says
        where those have to live that cannot live anywhere. Then they can be visited."""

    def visit(self, errands: Sequence[Errand]) -> list[bytes]:
        """Run an errand where each of the nodes lives; their answers, in the nodes' order."""
        return [errand.run() for errand in errands]

    def centrally(self, errand: Errand) -> bytes:
        """Run an errand where the coordinator lives."""
        return errand.run()

    @abstractmethod
    def abandon(self) -> None:
        """Give up the task under way, if there is one, and let go of its data."""

    def close(self) -> None:
        """Let go of everything. A closed network can be started again."""
        self.abandon()
        self.setup = None

    def check_sums(self, setup: Setup) -> None:
        """Refuse a stream whose coordinator needs more than sums, where they are to be secure."""
        if self.secure and setup.solver.meeting.central_state:
            raise ParameterError(
                "secure sums: this stream began with a coordinator that sees what single nodes "
                "send; begin anew, with secure sums from the first task"
            )

    def topology(self) -> str | None:
        """Which nodes are neighbours, where that decides the result; None with a centre."""
        return None

    def writes_files(self) -> bool:
        """Whether this process is the one that writes a model's file."""
        return True


class Each(tuple[Any, ...]):
    """Something to tell the nodes of which every one gets its own part."""

    @staticmethod
    def of(about: tuple[Any, ...], k: int) -> tuple[Any, ...]:
        """What node k is told: its part of every `Each`, and all that is for everybody."""
        return tuple(x[k] if isinstance(x, Each) else x for x in about)

    @staticmethod
    def some(about: tuple[Any, ...], numbers: Sequence[int]) -> tuple[Any, ...]:
        """What the host of these nodes is told: their parts, and all that is for everybody."""
        return tuple(Each(x[k] for k in numbers) if isinstance(x, Each) else x for x in about)


class CentralNetwork(Network):
    """Nodes with a centre: answers are sums over the nodes, in the nodes' order.

    Every engine returns the local network's result to 1e-10.
    """

    @abstractmethod
    def propose(self, g: Array) -> Proposal:
        """Every node's answer to the direction g, summed."""

    def refresh(self, curvature: Array, round_number: int) -> bool:
        """Before a round on a loss that is not quadratic: its curvature at the predictions.

        Answers whether proposals take it into account from now on.
        """
        return False

    @abstractmethod
    def ask(self, question: str | Each, *about: Any) -> list[Any]:
        """Every node's answer to a question that its solver knows, in the nodes' order.

        ``about`` goes to all of them; of an `Each` every node gets its part. A node whose question
        is None says nothing: an empty array.
        """

    @abstractmethod
    def total(self, question: str | Each, *about: Any) -> Array:
        """The sum of the answers of all nodes that are asked."""

    @abstractmethod
    def largest(self, question: str | Each, *about: Any) -> Array:
        """The largest of their answers, entry by entry."""

    @abstractmethod
    def move(self, each: Sequence[Array]) -> None:
        """Let every node stand at an update of its own, in its solver's coordinates."""

    def cost(self, arrays: Sequence[Array | None]) -> int:
        """Bytes of a round whose messages to or from one host are these."""
        return self.hosts() * sum(bytes_of(array) for array in arrays if array is not None)

    def hosts(self, asked: Sequence[bool] | None = None) -> int:
        """How many messages a word to all nodes takes, or to those that are ``asked``: one a node,
        unless several share a host."""
        nodes = 0 if self.setup is None else len(self.setup.partition)
        return nodes if asked is None else sum(asked)


def total_opening(openings: Sequence[Opening]) -> Opening:
    """The nodes' openings, summed in their order."""
    return Opening(
        total_array([o.predictions for o in openings]),
        total_array([o.report for o in openings]),
        sum(o.mark for o in openings),
    )


def total_proposal(proposals: Sequence[Proposal]) -> Proposal:
    """The nodes' proposals, summed in their order."""
    return Proposal(
        total_array([p.image for p in proposals]), total([p.scalars for p in proposals])
    )


def largest_array(terms: Sequence[Array]) -> Array:
    """Entry by entry."""
    return terms[0] if len(terms) == 1 else np.max([here(term) for term in terms], axis=0)


def total_array(terms: Sequence[Array]) -> Array:
    """Summed in order, so that every network with the same nodes gives the same bits."""
    if len(terms) == 1:
        return terms[0]
    whole = terms[0] + terms[1]
    for term in terms[2:]:
        whole += term
    return whole
