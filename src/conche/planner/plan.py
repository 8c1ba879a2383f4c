"""Theory turned into advice: how many nodes, which sizes, how many rounds, how much damping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tasks import Task
from ..theory import Similarity, corollary_4, estimate, generalization_error, spectral_radius
from ..theory.recursion import per_task
from .question import Candidate, Horizon, Question, Remedy, even_sizes
from .remedies import find_remedies
from .words import paragraph

LARGEST_NETWORK = 1 << 16
DRIFTING = 6.0  # standard errors by which neighbours must be more alike than distant tasks
NEAR_SQUARE = 0.15  # |n - p_k| below this share of n is worth a warning


@dataclass(frozen=True)
class Plan:
    """The advice: ``n_nodes`` and its predicted ``error``, and the ``table`` behind it."""

    n_nodes: int
    error: float
    table: list[Candidate]
    centralised: float  # one node
    horizon: list[Horizon]
    remedies: list[Remedy]
    assumptions: list[str]
    text: str

    @property
    def partition(self) -> list[int]:
        return next(row["partition"] for row in self.table if row["n_nodes"] == self.n_nodes)

    def __str__(self) -> str:
        return self.text


def plan(
    n_features: int,
    n_samples: int | Sequence[int],
    n_tasks: int,
    n_shared: float,
    noise_var: float,
    energy: float = 1.0,
    n_nodes: int | None = None,
    n_nodes_max: int | None = None,
) -> Plan:
    """Advice from numbers: Task Model 1 with ``n_shared`` common unknowns, one exact round a task.

    Candidates are the powers of two and the divisors of ``n_features``, with even blocks. With
    ``n_nodes`` the number of nodes is given, and remedies are looked for (the paper's Section V):
    better block sizes, a subset of the nodes, more rounds, damping. ``n_samples`` is one number,
    or one per task.
    """
    _check_numbers(n_features, n_samples, n_tasks, n_shared, noise_var, energy)
    question = Question(
        n_features=int(n_features),
        n_samples=per_task("n_samples", n_samples, n_tasks),
        noise_var=noise_var,
        likeness=lambda T, sizes: Similarity.shared(T, sizes, n_shared, energy),
        limit=lambda K: _limit(n_features, n_samples, K, n_shared, noise_var, energy),
        assumptions=[
            "features are independent Gaussian with variance 1 (standardise yours)",
            f"tasks share {n_shared:g} of {n_features:g} unknowns (Task Model 1), signal energy "
            f"{energy:g}, noise variance {noise_var:g}",
            "Algorithm 1, one exact round a task, blocks of equal size",
        ],
    )
    return _advise(question, n_nodes, n_nodes_max)


def plan_from_tasks(
    tasks: Sequence[Task], n_nodes: int | None = None, n_nodes_max: int | None = None
) -> Plan:
    """Advice from data: noise, energy and similarity are estimated (`conche.theory.estimate`).

    Tasks are taken to be equally alike, which three numbers describe; where neighbours are clearly
    more alike than distant tasks, every pair's own inner product is used instead.
    """
    found = estimate(tasks)
    p, T = found.n_features, found.n_tasks
    noise_var, energy, common = found.summary()
    drifting = found.drift() > DRIFTING
    n_shared = p * common / energy if energy > 0 else 0.0

    def likeness(n_tasks: int, sizes: Sequence[int]) -> Similarity:
        if drifting and n_tasks == T:
            return found.similarity(list(sizes))
        return Similarity.shared(n_tasks, sizes, n_shared, energy)

    alike = "all pairs of tasks are equally alike"
    if drifting:
        alike = "neighbouring tasks are more alike than distant ones: every pair has its own number"
    question = Question(
        n_features=p,
        n_samples=found.n_samples.astype(float),
        noise_var=noise_var,
        likeness=likeness,
        limit=lambda K: _limit(p, found.n_samples, K, n_shared, noise_var, energy),
        assumptions=[
            "features standardised; independent of each other "
            f"(measured tr(Sigma^2)/p = {found.correlation:.2f}, 1 if they are)",
            f"estimated from {T} tasks: noise variance {noise_var:.3g}, signal energy "
            f"{energy:.3g}, of which {common:.3g} is common to the tasks",
            alike,
            "Algorithm 1, one exact round a task, blocks of equal size",
        ],
    )
    return _advise(question, n_nodes, n_nodes_max)


def candidate_nodes(n_features: int, most: int | None = None) -> list[int]:
    """Powers of two and divisors, up to ``most`` (65536 unless given)."""
    limit = min(n_features, most or LARGEST_NETWORK)
    powers = {1 << i for i in range(limit.bit_length())}
    return sorted(powers | {k for k in range(1, limit + 1) if n_features % k == 0})


def _advise(question: Question, n_nodes: int | None, n_nodes_max: int | None) -> Plan:
    p, T = question.n_features, question.n_tasks
    nodes = candidate_nodes(p, n_nodes_max)
    if n_nodes is not None:
        if not 1 <= n_nodes <= p:
            raise ValueError(f"n_nodes={n_nodes}: {p} columns fit on 1 to {p} nodes")
        nodes = sorted({*nodes, n_nodes})
    table = [_candidate(question, K) for K in nodes]
    best = min(table, key=lambda row: row["error"])
    if not np.isfinite(best["error"]):
        raise ValueError(f"every number of nodes has a block within 1 of {question.n} samples")
    chosen, remedies = best, []
    if n_nodes is not None:
        chosen = next(row for row in table if row["n_nodes"] == n_nodes)
        remedies = find_remedies(question, chosen, table)
    horizon = []
    for later in (2 * T, 4 * T, None):
        errors = {
            K: question.limit(K) if later is None else question.error(even_sizes(p, K), later)
            for K in nodes
        }
        K = min(errors, key=lambda k: errors[k])
        horizon.append(Horizon(n_tasks=later, n_nodes=K, error=errors[K]))
    return Plan(
        n_nodes=chosen["n_nodes"],
        error=chosen["error"],
        table=table,
        centralised=table[0]["error"],
        horizon=horizon,
        remedies=remedies,
        assumptions=question.assumptions,
        text=paragraph(chosen, best, table, horizon, remedies, fixed=n_nodes is not None),
    )


def _candidate(question: Question, K: int) -> Candidate:
    n, sizes = question.n, even_sizes(question.n_features, K)
    radius = spectral_radius(n, sizes)
    gap = min(abs(n - s) for s in (sizes[0], sizes[-1]))
    warning = None
    if gap <= 1:
        warning = f"blocks of {sizes[0]} columns for {n} samples: the error is unbounded"
    elif radius >= 1:
        warning = f"grows with every task (spectral radius {radius:.3g})"
    elif gap < NEAR_SQUARE * n:
        warning = f"blocks of {sizes[0]} columns are close to {n} samples"
    return Candidate(
        n_nodes=K,
        partition=sizes,
        error=question.error(sizes),
        spectral_radius=radius,
        warning=warning,
    )


def _limit(p: int, n: Any, K: int, n_shared: float, noise_var: float, energy: float) -> float:
    """The error as T grows without end; where blocks are not all equal, a long stream stands in."""
    n = int(np.median(n))
    if p % K == 0:
        return corollary_4(n, p, K, None, n_shared, noise_var, energy)
    sizes = even_sizes(p, K)
    if spectral_radius(n, sizes) >= 1:
        return float("inf")
    likeness = Similarity.shared(4096, sizes, n_shared, energy)
    return float(generalization_error(likeness, n, noise_var)[-1])


def _check_numbers(
    n_features: Any, n_samples: Any, n_tasks: Any, n_shared: float, noise_var: float, energy: float
) -> None:
    for name, value in (("n_features", n_features), ("n_tasks", n_tasks)):
        if int(value) != value or value < 1:
            raise ValueError(f"{name}={value} must be a whole number of at least 1")
    if np.min(n_samples) < 1:
        raise ValueError(f"n_samples={np.min(n_samples)}: a task needs at least one sample")
    if not 0 <= n_shared <= n_features:
        raise ValueError(f"n_shared={n_shared} must lie between 0 and n_features={n_features}")
    if noise_var < 0:
        raise ValueError(f"noise_var={noise_var} must not be negative")
    if energy < 0:
        raise ValueError(f"energy={energy} must not be negative")
