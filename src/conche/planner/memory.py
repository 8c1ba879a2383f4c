"""The Conche method, foreseen: its error, what it keeps, what it sends, how long a task takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from ..common.arrays import even_sizes
from ..nodes.solvers.options import About, default_rank
from ..paper.theory import best_discount, tracking_error
from . import cost, twin
from .choice import Choice, choice, least
from .question import MANY_TASKS, Question
from .terms import Wanted
from .traffic import DOUBLE, Stream

ROUNDS = 10  # of a task with limited memory, about; with room for all columns it is one


@dataclass(frozen=True)
class MemoryPlan:
    """The Conche method's row of a plan. Numbers of a task are those of the stream's last one."""

    n_nodes: int  #: any other gives the same error where nothing is lost
    error: float  #: over all tasks, after the last one
    rank: int  #: directions that are kept, all nodes together
    loss: float  #: by how much the error is above that of unlimited memory, relative to it
    smallest_rank: int  #: that loses no more than ``loss_limit``, and no larger one does
    loss_limit: float
    damping: float  #: the ridge that the method would settle on, for standardised columns
    numbers: int  #: that a node keeps, at most
    kept_bytes: int  #: the same in bytes
    coordinator_bytes: int  #: that the coordinator keeps
    rounds: int  #: a task
    bytes: int  #: a task: both ways, all nodes
    exchanges: int  #: a task: how often all nodes are asked and waited for
    seconds: float  #: a task, on ``network``
    network: str
    discount: float  #: the weight of the past per task with the least error on the newest task
    newest: float  #: that error
    newest_undiscounted: float  #: the same without a discount


class Errors(NamedTuple):
    """What cannot be counted: the part of a `MemoryPlan` that theory or measurement answers."""

    rank: int
    error: float
    loss: float
    smallest_rank: int
    damping: float
    discount: float = 1.0
    newest: float = float("nan")
    newest_undiscounted: float = float("nan")


def foresee(question: Question, K: int, wanted: Wanted) -> MemoryPlan:
    """The Conche method on K nodes, with its defaults but for the rank."""
    p, ns, noise = question.n_features, question.n_samples, question.noise_var
    T = min(question.n_tasks, MANY_TASKS)
    similarity, ns = question.similarity(T, [p]), ns[:T]
    rank = default_rank(About(p)) if wanted.rank is None else wanted.rank
    chosen = choice(similarity, ns, noise, rank)
    damping, error = chosen.ridge, chosen.error
    lost = twin.losses(question.shape(K, damping))
    loss = 0.0 if p <= rank else lost.at(rank / (p + 1))
    known = Errors(
        rank,
        max(error * (1 + loss), 0.0),  # an estimated similarity may put it below
        loss,
        math.ceil(lost.smallest(wanted.loss) * (p + 1)),
        damping,
        *_tracking(question, chosen, rank),
    )
    return counted_plan(question, K, wanted, known)


def counted_plan(question: Question, K: int, wanted: Wanted, known: Errors) -> MemoryPlan:
    """What is known of errors, with all that can be counted."""
    sizes = even_sizes(question.n_features, K)
    stream = Stream(sizes, question.n_samples, known.rank, wanted.wire.apart)
    rounds = 1 if stream.lossless else ROUNDS
    numbers = max(stream.kept())
    return MemoryPlan(
        n_nodes=K,
        **known._asdict(),
        loss_limit=wanted.loss,
        numbers=numbers,
        kept_bytes=DOUBLE * numbers,
        coordinator_bytes=DOUBLE * stream.at_the_coordinator(),
        rounds=rounds,
        bytes=stream.sent(rounds),
        exchanges=stream.exchanges(rounds),
        seconds=cost.seconds(stream, wanted.wire, rounds),
        network=wanted.wire.name,
    )


def _tracking(question: Question, chosen: Choice, rank: int) -> tuple[float, float, float]:
    """The best discount, and the errors on the newest task with it and without any."""
    if not question.drifts:
        return 1.0, chosen.newest, chosen.newest
    T, p = min(question.n_tasks, MANY_TASKS), question.n_features
    similarity = question.similarity(T, [p])
    ns, noise = question.n_samples[-T:], question.noise_var

    def newest(share: float, ridge: float) -> float:
        return float(tracking_error(similarity, ns, noise, share, ridge, [-1])[0])

    discount = best_discount(similarity, ns, noise, chosen.ridge)
    ridge = least(partial(newest, discount), p, float(ns.sum()), rank)  # where less is remembered
    discount = best_discount(similarity, ns, noise, ridge)
    return discount, max(newest(discount, ridge), 0.0), max(newest(1.0, chosen.ridge), 0.0)
