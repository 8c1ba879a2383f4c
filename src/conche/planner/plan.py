"""Theory turned into advice: how many nodes, which sizes, how many rounds, how much damping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tasks import Task
from ..theory import Similarity, endless_error, estimate, spectral_radius
from ..theory.recursion import per_task
from .question import Candidate, Horizon, Question, Remedy, even_sizes
from .remedies import find_remedies
from .words import paragraph

LARGEST_NETWORK = 1 << 16
LARGEST_NUMBER = 1e100
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
    given: bool = False  # the number of nodes was given, not chosen

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
        n_samples=per_task("n_samples", n_samples, int(n_tasks)),
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
    if energy + noise_var == 0:
        raise ValueError("the targets are constant: there is nothing to plan from")
    n_shared = min(p * common / energy, p) if energy > 0 else 0.0

    def likeness(n_tasks: int, sizes: Sequence[int]) -> Similarity:
        if drifting and n_tasks == T:
            return found.similarity(list(sizes))
        return Similarity.shared(n_tasks, sizes, n_shared, energy)

    alike = "all pairs of tasks are equally alike"
    if drifting:
        alike = (
            "neighbouring tasks are more alike than distant ones: every pair has its own number "
            "(but longer streams are foreseen with one for all pairs)"
        )
    question = Question(
        n_features=p,
        n_samples=found.n_samples.astype(float),
        noise_var=noise_var,
        likeness=likeness,
        limit=lambda K: _limit(p, found.n_samples, K, n_shared, noise_var, energy),
        assumptions=[
            "features standardised; independent of each other "
            + (
                f"(measured tr(Sigma^2)/p = {found.correlation:.2f}, 1 if they are)"
                if np.isfinite(found.correlation)
                else "(which tasks of one row do not show)"
            ),
            f"estimated from {T} tasks: noise variance {noise_var:.3g}, signal energy "
            f"{energy:.3g}, of which {common:.3g} is common to the tasks",
            alike,
            "Algorithm 1, one exact round a task, blocks of equal size",
        ],
    )
    return _advise(question, n_nodes, n_nodes_max)


def candidate_nodes(n_features: int, most: int | None = None) -> list[int]:
    """Powers of two and divisors, up to ``most`` (65536 unless given)."""
    if most is not None and (int(most) != most or most < 1):
        raise ValueError(f"n_nodes_max={most} must be a whole number of at least 1")
    limit = min(n_features, LARGEST_NETWORK if most is None else int(most))
    powers = {1 << i for i in range(limit.bit_length())}
    return sorted(powers | {k for k in range(1, limit + 1) if n_features % k == 0})


def _advise(question: Question, n_nodes: int | None, n_nodes_max: int | None) -> Plan:
    p, T = question.n_features, question.n_tasks
    nodes = candidate_nodes(p, n_nodes_max)
    if n_nodes is not None:
        if int(n_nodes) != n_nodes or not 1 <= n_nodes <= p:
            raise ValueError(f"n_nodes={n_nodes}: {p} columns fit on 1 to {p} nodes")
        if n_nodes_max is not None and n_nodes > n_nodes_max:
            raise ValueError(f"n_nodes={n_nodes} is more than n_nodes_max={n_nodes_max}")
        nodes = sorted({*nodes, int(n_nodes)})
    table = [_candidate(question, K) for K in nodes]
    fewest = _least({row["n_nodes"]: row["error"] for row in table})
    best = next(row for row in table if row["n_nodes"] == fewest)
    if not np.isfinite(best["error"]):
        raise ValueError("every number of nodes has a block within 1 of some task's samples")
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
        K = _least(errors)
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
        given=n_nodes is not None,
    )


def _candidate(question: Question, K: int) -> Candidate:
    n, sizes = question.n, even_sizes(question.n_features, K)
    radius = spectral_radius(n, sizes)
    gap, size, m = min(
        (abs(m - size), size, m)
        for m in np.unique(question.n_samples).astype(int).tolist()
        for size in (sizes[0], sizes[-1])
    )
    warning = None
    if gap <= 1:
        warning = f"blocks of {size} columns for {m} samples: the error is unbounded"
    elif radius >= 1:
        warning = f"grows with every task (spectral radius {radius:.3g})"
    elif gap < NEAR_SQUARE * m:
        warning = f"blocks of {size} columns are close to {m} samples"
    return Candidate(
        n_nodes=K,
        partition=sizes,
        error=question.error(sizes),
        spectral_radius=radius,
        warning=warning,
    )


def _limit(p: int, n: Any, K: int, n_shared: float, noise_var: float, energy: float) -> float:
    return endless_error(int(np.median(n)), even_sizes(p, K), n_shared, noise_var, energy)


def _least(errors: dict[int, float]) -> int:
    """The number of nodes with the least error; the fewest of those that rounding cannot tell."""
    limit = min(errors.values()) * (1 + 1e-9) + 1e-12
    return min(K for K, error in errors.items() if error <= limit)


def _check_numbers(
    n_features: Any, n_samples: Any, n_tasks: Any, n_shared: float, noise_var: float, energy: float
) -> None:
    for name, value in (("n_features", n_features), ("n_tasks", n_tasks)):
        if int(value) != value or value < 1:
            raise ValueError(f"{name}={value} must be a whole number of at least 1")
    for n in np.atleast_1d(n_samples).tolist():
        if not n >= 1 or int(n) != n:
            raise ValueError(f"n_samples={n}: a task needs a whole number of samples, 1 or more")
    if not 0 <= n_shared <= n_features:
        raise ValueError(f"n_shared={n_shared} must lie between 0 and n_features={n_features}")
    for name, value in (("noise_var", noise_var), ("energy", energy)):
        if np.ndim(value) or not 0 <= value < LARGEST_NUMBER:
            raise ValueError(f"{name}={value} must be one number, not negative and below 1e100")
