"""Algorithm 1 without a centre: the mean of all nodes' predictions becomes an average with the
neighbours' (CoLa). On a complete graph it is Algorithm 1."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...common.arrays import Array
from ...network import Graph
from ...nodes.scalars import total
from .base import Point, Problem, Standing, Steps, beginning


class Views(NamedTuple):
    """Node k holds v_k, its estimate of all predictions; the mean of the v_k is A w."""

    V: Array  # all v_k: n_nodes x rows x n_outputs
    own: Array  # what each node has put in itself


class Gossip(Steps[Graph, Views]):
    """A round: v_k becomes the neighbours' average, the node solves its subproblem there and moves
    by 1/K of the solution z_k, which adds K A_k z_k / K to its own v_k (lines 5 to 9 of Algorithm
    1, with W in place of the mean). What is recorded is about A w itself, which no node knows."""

    def init(self, problem: Problem, v: Array, network: Graph) -> Standing[Views]:
        K, rows = problem.n_nodes, len(v) - problem.objective.n
        below = np.zeros((rows, v.shape[1]), v.dtype)
        own = np.array([np.concatenate([K * part, below]) for part in network.own_predictions()])
        return beginning(problem, v, Views(own, own))

    def step(self, problem: Problem, now: Standing[Views], network: Graph) -> Standing[Views]:
        K, point = problem.n_nodes, now.point
        V = network.exchange(now.last.V, now.last.own)
        proposals = network.propose_each([problem.objective.descent(view) for view in V])
        network.accept(None, None)
        images = np.array([proposal.image for proposal in proposals])
        scalars = total([proposal.scalars for proposal in proposals])
        zPz, _, dPz = scalars.products()
        penalty = point.penalty + dPz / K + 0.5 * zPz / K**2
        after = Point.at(problem.objective, point.v + images.sum(axis=0) / K, penalty)
        # nodes were asked at points of their own: only that no loss is negative is sure
        return replace(
            now,
            point=after,
            last=Views(V + images, now.last.own + images),
            moved=float(np.linalg.norm(after.v - point.v)) / (now.started or np.inf),
            sent=network.message_count() * point.g.nbytes,
            accuracy=scalars.accuracy(),
            disagreement=float(np.sqrt(np.mean((V - point.v) ** 2))),
        )

    def finished(self, now: Standing[Views]) -> bool:
        """Neither do the predictions move any more, nor do the nodes disagree."""
        if self.tol is None:
            return False
        apart = now.disagreement * np.sqrt(now.point.v.size)
        return bool(now.moved <= self.tol and apart <= self.tol * now.started)

    def views(self, problem: Problem, now: Standing[Views], network: Graph) -> Array:
        """After a last exchange."""
        return network.exchange(now.last.V, now.last.own)[:, : problem.objective.n]
