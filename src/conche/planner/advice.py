"""Every candidate tried, the best or the given one taken, and what memory buys beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..common.arrays import Array, even_sizes
from ..common.checks import whole
from ..common.words import counted
from ..paper.theory.even import even_limits, even_radii
from . import cost
from .memory import MemoryPlan, foresee
from .question import MANY_TASKS, Candidate, Horizon, Question, Remedy
from .remedies import find_remedies
from .terms import Wanted
from .traffic import DOUBLE
from .words import bought, of_nodes

LARGEST_NETWORK = 1 << 16
NEAR_SQUARE = 0.15  # |n - p_k| below this share of n is worth a warning
ALGORITHM = "Algorithm 1, one exact round a task, blocks of equal size"


@dataclass(frozen=True)
class RoundsPlan:
    """What Algorithm 1 keeps and sends on the plan's nodes, one round a task."""

    n_nodes: int
    kept_bytes: int  # by a node, at most
    bytes: int  # a task: both ways, all nodes
    exchanges: int
    seconds: float


@dataclass(frozen=True)
class Plan:
    """The advice: ``n_nodes`` and its predicted ``error``, the ``table`` behind it, and ``memory``,
    the same for the Conche method.

    ``horizon`` says what would be best for more tasks, ``remedies`` what to do where the number of
    nodes is given, ``text`` all of it in a paragraph. ``measured`` is whether a part of the data
    was learnt because no theory covers them.

    Examples
    --------
    >>> import conche
    >>> plan = conche.plan(1024, 2048, n_tasks=16, n_shared=768, noise_var=0.01)
    >>> [(row["n_nodes"], round(row["error"], 3)) for row in plan.table[:4]]
    [(1, 0.489), (2, 0.356), (4, 0.284), (8, 0.27)]
    >>> plan.memory.coordinator_bytes, plan.memory.exchanges  # of the Conche method, and a task
    (4222992, 3)
    """

    n_nodes: int
    error: float
    table: list[Candidate]
    centralised: float  # one node
    horizon: list[Horizon]
    remedies: list[Remedy]
    assumptions: list[str]
    text: str
    memory: MemoryPlan
    rounds: RoundsPlan  # what Algorithm 1 keeps and sends, on ``n_nodes``
    given: bool = False  # the number of nodes was given, not chosen
    measured: bool = False
    method: str = ALGORITHM  # what all these errors are of
    setting: str = ""  # the question, in a line

    @property
    def partition(self) -> list[int]:
        """The block sizes for ``n_nodes``."""
        return next(row["partition"] for row in self.table if row["n_nodes"] == self.n_nodes)

    def __str__(self) -> str:
        return self.text


def advise(question: Question, wanted: Wanted) -> Plan:
    """Try every candidate, take the best or the given one, and look ahead."""
    p, T = question.n_features, question.n_tasks
    nodes = candidate_nodes(p, wanted.n_nodes_max)
    if wanted.n_nodes is not None:
        nodes = sorted({*nodes, wanted.n_nodes})
    table = candidates(question, nodes)
    fewest = least({row["n_nodes"]: row["error"] for row in table})
    best = next(row for row in table if row["n_nodes"] == fewest)
    chosen, remedies = best, []
    if wanted.n_nodes is not None:
        chosen = next(row for row in table if row["n_nodes"] == wanted.n_nodes)
        remedies = find_remedies(question, chosen, table)
    horizon = []
    for later in (2 * T, 4 * T, None):
        if later is None:
            errors = dict(zip(nodes, question.limit(nodes).tolist(), strict=True))
        else:
            errors = question.errors(nodes, later)
        K = least(errors)
        horizon.append(Horizon(n_tasks=later, n_nodes=K, error=errors[K]))
    memory = foresee(question, chosen["n_nodes"], wanted)
    nodes_said = of_nodes(chosen, best, table, horizon, remedies, wanted.n_nodes is not None)
    assumptions = question.assumptions
    if T > MANY_TASKS:
        assumptions = [*assumptions, f"errors are those after {MANY_TASKS:,} of the {T:,} tasks"]
    return Plan(
        n_nodes=chosen["n_nodes"],
        error=chosen["error"],
        table=table,
        centralised=table[0]["error"],
        horizon=horizon,
        remedies=remedies,
        assumptions=assumptions,
        text=f"{bought(chosen['error'], memory)} {nodes_said}",
        memory=memory,
        rounds=rounds_plan(question, chosen["n_nodes"], wanted),
        given=wanted.n_nodes is not None,
        setting=question.setting,
    )


def rounds_plan(question: Question, K: int, wanted: Wanted) -> RoundsPlan:
    """Algorithm 1 on K nodes: weights are all that is kept, a vector each way all that is sent."""
    sizes, n = even_sizes(question.n_features, K), int(question.n_samples[-1])
    took = cost.one_round_seconds(sizes, n, wanted.wire)
    return RoundsPlan(K, DOUBLE * max(sizes), 2 * DOUBLE * n * K, 3, took)


def candidate_nodes(n_features: int, most: int | None = None) -> list[int]:
    """Powers of two and divisors, up to ``most`` (65536 unless given).

    >>> candidate_nodes(12)
    [1, 2, 3, 4, 6, 8, 12]
    """
    most = LARGEST_NETWORK if most is None else whole("n_nodes_max", most)
    limit = min(n_features, most)
    powers = {1 << i for i in range(limit.bit_length())}
    return sorted(powers | {k for k in range(1, limit + 1) if n_features % k == 0})


def candidates(question: Question, nodes: Sequence[int]) -> list[Candidate]:
    """The rows of a plan's table for these numbers of nodes."""
    radii = even_radii(question.n_features, nodes, question.n).tolist()
    errors = question.errors(nodes)
    return [_candidate(question, K, errors[K], each) for K, each in zip(nodes, radii, strict=True)]


def _candidate(question: Question, K: int, error: float, radius: float) -> Candidate:
    """One row of the table, with a warning where K nodes are to be avoided."""
    sizes = even_sizes(question.n_features, K)
    gap, size, m = min(
        (abs(m - size), size, m)
        for m in np.unique(question.n_samples).tolist()
        for size in (sizes[0], sizes[-1])
    )
    warning = None
    if gap <= 1:
        warning = f"{counted(size, 'column')} a block, {counted(m, 'sample')}: error unbounded"
    elif radius >= 1:
        warning = "grows with every task (radius above 1)"
    elif gap < NEAR_SQUARE * m:
        warning = f"blocks of {size} columns are close to {m} samples"
    return Candidate(
        n_nodes=K,
        partition=sizes,
        error=error,
        spectral_radius=radius,
        warning=warning,
    )


def limit_of(
    p: int,
    n_samples: Array,
    n_shared: float,
    noise_var: float,
    energy: float,
    drift: float = 0.0,
) -> Callable[[Sequence[int]], Array]:
    """The error of endless tasks, as a function of the numbers of nodes."""
    if drift > 0:  # distant tasks have nothing in common in the end
        return lambda nodes: np.full(len(nodes), np.inf)
    n = int(np.median(n_samples))
    return lambda nodes: even_limits(p, nodes, n, n_shared, noise_var, energy)


def least(errors: dict[int, float]) -> int:
    """The number of nodes with the least error; the fewest of those that rounding cannot tell."""
    limit = min(errors.values()) * (1 + 1e-9) + 1e-12
    return min(K for K, error in errors.items() if error <= limit)
