"""Algorithm 1 without a centre: the mean of all nodes' predictions becomes an average with the
neighbours' (CoLa). On a complete graph it is Algorithm 1."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .cocoa import Outcome, RoundRecord, Rule, above, named, open_task, past_curvature, record
from .losses import Loss
from .network.graph import Graph
from .node import Proposal
from .rounds import Objective, Progress, plain_round
from .solvers.base import Array, Context, Solver


def gossip(
    network: Graph,
    X: Any,
    y: Array,
    loss: Loss,
    solver: Solver,
    context: Context,
    rule: Rule,
    shown: Callable[[Array], slice] = lambda predictions: slice(None),
) -> Outcome:
    """One task. Node k holds v_k, its estimate of all predictions; the mean of the v_k is A w.

    A round: v_k becomes the neighbours' average, the node solves its subproblem there and moves by
    1/K of the solution z_k, which adds K A_k z_k / K to its own v_k (lines 5 to 9 of Algorithm 1,
    with W in place of the mean). History is about A w itself, which no node knows.
    """
    opening, context = open_task(network, X, solver, context)
    objective, K = Objective(loss, y), context.n_nodes
    outputs = shown(opening)
    rows = np.zeros((context.sketch_rows, opening.shape[1]), opening.dtype)
    own = np.array([np.concatenate([K * part, rows]) for part in network.own])
    V = own.copy()
    advance = plain_round(K)
    v = np.concatenate([opening, rows])
    now = Progress(v, objective.descent(v))
    started = float(np.linalg.norm(now.g))
    history: list[RoundRecord] = []
    for i in range(rule.n_rounds):
        clock = time.perf_counter()
        V = network.exchange(V, own)
        apart = float(np.sqrt(np.mean((V - now.v) ** 2)))
        proposals = network.propose_each([objective.descent(v) for v in V])
        images = np.array([p.image for p in proposals])
        V, own = V + images, own + images
        said = named(solver, _together(proposals))
        after = advance(objective, now, images.sum(axis=0), said)
        network.accept(None, None)
        moved = float(np.linalg.norm(after.v - now.v))
        now = after
        # nodes were asked at points of their own: only that no loss is negative is sure
        value = objective.value(now.v)
        bound = above(np.zeros_like(value), value + now.penalty)
        sent = network.message_count() * now.g.nbytes
        seconds = time.perf_counter() - clock
        history.append(
            record(
                objective, now, outputs, context.task, i, value, bound, said, sent, seconds, apart
            )
        )
        still = rule.tol is not None and moved <= rule.tol * started
        if rule.tol is not None and still and apart * np.sqrt(now.v.size) <= rule.tol * started:
            break
    V = network.exchange(V, own)
    network.predictions = V[:, : len(y)]
    network.disagreement = float(np.sqrt(np.mean((V - now.v) ** 2)))
    ended = network.end(past_curvature(objective, now.v))
    return Outcome(history, context, ended, opening, now.v[: len(y)])


def _together(proposals: list[Proposal]) -> Proposal:
    said = [p.scalars for p in proposals if p.scalars is not None]
    return Proposal(proposals[0].image, np.sum(said, axis=0) if said else None)
