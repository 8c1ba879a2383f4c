"""How nodes talk: the same few calls, whatever carries them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Array
from ..errors import ConcheError
from ..nodes import NodeState, Opening, Proposal, Scaling, Setup
from ..nodes.scalars import total
from ..nodes.solvers import Context

EXPECTED = (ConcheError, OSError, ArithmeticError, MemoryError)  # on a node: what is no bug of ours
Placed = Sequence[Any]  # what stands for the nodes' states here: the states, or references to them


class Coefficients(NamedTuple):
    """Weights for columns as they come, in their order; the intercept's row, if any, is last."""

    weights: Array  # n_features (+ 1) x n_outputs
    offset: Array  # n_outputs: what centring adds to the intercept
    means: Array | None  # of the columns, where missing values are filled with them


def share(scaling: Scaling, state: NodeState) -> Coefficients:
    """What one node's state amounts to, outside: the coefficients of its own columns."""
    weights, offset = scaling.outward(state.weights, state.numbers)
    return Coefficients(weights, offset, scaling.means(state.numbers))


def coefficients(setup: Setup, shares: Sequence[Coefficients]) -> Coefficients:
    """All nodes' shares, put together in the order of the columns."""
    partition = setup.partition
    weights = partition.join([part.weights for part in shares], partition.intercept)
    offset = np.sum([part.offset for part in shares], axis=0)
    means = [part.means for part in shares if part.means is not None]
    filled = partition.join(means, intercept=False) if means else None
    return Coefficients(weights, offset, filled)


class Network(ABC):
    """K nodes behind a few calls, with or without a centre.

    A network is `start`ed with what the nodes are made of; their states between tasks belong to
    the caller, who gets them from `place` and `end` and hands them to `begin`. So a task that
    fails, or is interrupted at any moment, changes nothing: the caller still has the old states.
    """

    setup: Setup | None = None  # what it was last started with

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
    def begin(self, X: Any, placed: Placed) -> Opening:
        """Give every node its columns of a task; returns the sums of what they answer."""

    @abstractmethod
    def factorise(self, context: Context) -> None:
        """Let every node factorise its block with what all agreed on."""

    @abstractmethod
    def accept(self, step: Array | None, momentum: Array | None) -> None:
        """Let every node move: d += step (z + momentum q).

        None where every node knows it: a step of 1/K, no momentum. Nothing is sent then.
        """

    @abstractmethod
    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        """Finish the task: the new coefficients, and what stands for the nodes' new states.

        ``curvature`` is the loss's second derivative per sample; None where it is one.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Give up the task under way, if there is one, and let go of its data."""

    def close(self) -> None:
        """Let go of everything. A closed network can be started again."""
        self.abandon()
        self.setup = None

    def topology(self) -> str | None:
        """Which nodes are neighbours, where that decides the result; None with a centre."""
        return None

    def writes_files(self) -> bool:
        """Whether this process is the one that writes a model's file."""
        return True


class CentralNetwork(Network):
    """Nodes with a centre: answers are sums over the nodes, in the nodes' order.

    Every engine returns the local network's result to 1e-10.
    """

    @abstractmethod
    def propose(self, g: Array) -> Proposal:
        """Every node's answer to the direction g, summed."""


def total_opening(openings: Sequence[Opening]) -> Opening:
    """The nodes' openings, summed in their order."""
    return Opening(
        total_array([o.predictions for o in openings]), total_array([o.report for o in openings])
    )


def total_proposal(proposals: Sequence[Proposal]) -> Proposal:
    """The nodes' proposals, summed in their order."""
    return Proposal(
        total_array([p.image for p in proposals]), total([p.scalars for p in proposals])
    )


def total_array(terms: Sequence[Array]) -> Array:
    """Summed in order, so that every network with the same nodes gives the same bits."""
    whole = np.array(terms[0])
    for term in terms[1:]:
        whole += term
    return whole
