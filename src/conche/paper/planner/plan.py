"""Theory turned into advice: how many nodes, which sizes, how many rounds, how much damping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...common.arrays import Array, even_sizes
from ...common.checks import real, whole
from ...errors import DataError, ParameterError
from ...tasks import Task
from ..sizes import Numbers, samples_per_task
from ..theory import Similarity, endless_error, estimate, spectral_radius
from .question import Candidate, Horizon, Question, Remedy
from .remedies import find_remedies
from .words import paragraph

LARGEST_NETWORK = 1 << 16
LARGEST_NUMBER = 1e100
DRIFTING = 6.0  # standard errors by which neighbours must be more alike than distant tasks
NEAR_SQUARE = 0.15  # |n - p_k| below this share of n is worth a warning
TOO_CORRELATED = 3.0  # tr(Sigma^2)/p: a real stream with 4 had 2 to 10 times the predicted error
ALGORITHM = "Algorithm 1, one exact round a task, blocks of equal size"


@dataclass(frozen=True)
class Plan:
    """The advice: ``n_nodes`` and its predicted ``error``, and the ``table`` behind it.

    ``horizon`` says what would be best for more tasks, ``remedies`` what to do where the number of
    nodes is given, ``text`` all of it in a paragraph.
    """

    n_nodes: int
    error: float
    table: list[Candidate]
    centralised: float  # one node
    horizon: list[Horizon]
    remedies: list[Remedy]
    assumptions: list[str]
    text: str
    given: bool = False  # the number of nodes was given, not chosen
    method: str = ALGORITHM  # what all these errors are of
    setting: str = ""  # the question, in a line

    @property
    def partition(self) -> list[int]:
        """The block sizes for ``n_nodes``."""
        return next(row["partition"] for row in self.table if row["n_nodes"] == self.n_nodes)

    def __str__(self) -> str:
        return self.text


def plan(
    n_features: int,
    n_samples: Numbers,
    n_tasks: int,
    n_shared: float,
    noise_var: float,
    energy: float = 1.0,
    n_nodes: int | None = None,
    n_nodes_max: int | None = None,
) -> Plan:
    """Advice from numbers: Task Model 1, learnt with one exact round a task.

    Candidates are the powers of two and the divisors of ``n_features``, with even blocks.

    Parameters
    ----------
    n_features, n_tasks : p and T.
    n_samples : one number, or one per task.
    n_shared : unknowns that all tasks have in common (the paper's p_S).
    noise_var : sigma^2.
    energy : |w*_t|^2, the squared norm of a task's unknowns.
    n_nodes : the number of nodes, if it is given: then remedies are looked for (the paper's
        Section V), such as better block sizes, a subset of the nodes, more rounds, damping.
    n_nodes_max : no more nodes than this.

    >>> advice = plan(1024, 2048, n_tasks=16, n_shared=768, noise_var=0.01)
    >>> advice.n_nodes, round(advice.error, 3)
    (8, 0.27)
    """
    n_features = whole("n_features", n_features)
    samples = samples_per_task(n_samples, whole("n_tasks", n_tasks))
    real("n_shared", n_shared, 0, n_features)
    real("noise_var", noise_var, 0, LARGEST_NUMBER)
    real("energy", energy, 0, LARGEST_NUMBER)
    question = Question(
        n_features=n_features,
        n_samples=samples,
        noise_var=noise_var,
        similarity=lambda T, sizes: Similarity.shared(T, sizes, n_shared, energy),
        limit=_limit(n_features, samples, n_shared, noise_var, energy),
        setting=f"p = {n_features:,}, n = {_several(samples)}, T = {len(samples)}, "
        f"$p_S$ = {n_shared:,g}, noise {noise_var:g}, energy {energy:g}",
        assumptions=[
            "features are independent Gaussian with variance 1 (standardise yours)",
            f"tasks share {n_shared:g} of {n_features:g} unknowns (Task Model 1), signal energy "
            f"{energy:g}, noise variance {noise_var:g}",
            ALGORITHM,
        ],
    )
    return _advise(question, n_nodes, n_nodes_max)


def plan_from_tasks(
    tasks: Sequence[Task], n_nodes: int | None = None, n_nodes_max: int | None = None
) -> Plan:
    """Advice from data: noise, energy and similarity are estimated (`conche.theory.estimate`).

    Every pair of tasks is taken to be equally similar, which three numbers describe; where
    neighbours are clearly more similar than distant tasks, every pair's own inner product is used
    instead. ``n_nodes`` and ``n_nodes_max`` are those of `plan`.

    >>> from conche.tasks import gaussian_tasks
    >>> plan_from_tasks(gaussian_tasks(16, 256, 128, n_shared=96)).n_nodes
    8
    """
    found = estimate(tasks)
    if found.correlation > TOO_CORRELATED:
        raise DataError(
            f"the columns are so correlated (tr(Sigma^2)/p = {found.correlation:.3g}, 1 for "
            f"independent ones: about {found.n_features / found.correlation:.0f} of "
            f"{found.n_features} directions count) that no theory covers Algorithm 1 here, and it "
            f"may diverge: use the Conche method (ConcheRegressor; conche train as it is), which "
            f"up to 2048 columns equals the offline ridge solution on any number of nodes"
        )
    p, T = found.n_features, found.n_tasks
    noise_var, energy, common = found.summary()
    drifting = found.drift() > DRIFTING
    if energy + noise_var == 0:
        raise DataError("the targets are constant: there is nothing to plan from")
    n_shared = min(p * common / energy, p) if energy > 0 else 0.0

    def similarity(n_tasks: int, sizes: Sequence[int]) -> Similarity:
        if drifting and n_tasks == T:
            return found.similarity(list(sizes))
        return Similarity.shared(n_tasks, sizes, n_shared, energy)

    alike = "all pairs of tasks are equally alike"
    if drifting:
        alike = (
            "neighbouring tasks are more alike than distant ones: every pair has its own number "
            "(but longer streams are foreseen with one for all pairs)"
        )
    measured = "which tasks of one row do not show"
    if np.isfinite(found.correlation):
        measured = f"measured tr(Sigma^2)/p = {found.correlation:.2f}, 1 if they are"
    question = Question(
        n_features=p,
        n_samples=found.n_samples,
        noise_var=noise_var,
        similarity=similarity,
        limit=_limit(p, found.n_samples, n_shared, noise_var, energy),
        setting=f"p = {p:,}, n = {_several(found.n_samples)}, T = {T}; estimated: noise "
        f"{noise_var:.3g}, energy {energy:.3g}, {common:.3g} of it common",
        assumptions=[
            f"features standardised; independent of each other ({measured})",
            f"estimated from {T} tasks: noise variance {noise_var:.3g}, signal energy "
            f"{energy:.3g}, of which {common:.3g} is common to the tasks",
            alike,
            ALGORITHM,
        ],
    )
    return _advise(question, n_nodes, n_nodes_max)


def _several(numbers: Array) -> str:
    low, high = int(np.min(numbers)), int(np.max(numbers))
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def candidate_nodes(n_features: int, most: int | None = None) -> list[int]:
    """Powers of two and divisors, up to ``most`` (65536 unless given).

    >>> candidate_nodes(12)
    [1, 2, 3, 4, 6, 8, 12]
    """
    most = LARGEST_NETWORK if most is None else whole("n_nodes_max", most)
    limit = min(n_features, most)
    powers = {1 << i for i in range(limit.bit_length())}
    return sorted(powers | {k for k in range(1, limit + 1) if n_features % k == 0})


def _advise(question: Question, n_nodes: int | None, n_nodes_max: int | None) -> Plan:
    """Try every candidate, take the best or the given one, and look ahead."""
    p, T = question.n_features, question.n_tasks
    nodes = candidate_nodes(p, n_nodes_max)
    if n_nodes is not None:
        n_nodes = whole("n_nodes", n_nodes, 1, p)
        if n_nodes_max is not None and n_nodes > n_nodes_max:
            raise ParameterError(f"n_nodes={n_nodes} is more than n_nodes_max={n_nodes_max}")
        nodes = sorted({*nodes, n_nodes})
    table = [_candidate(question, K) for K in nodes]
    fewest = _least({row["n_nodes"]: row["error"] for row in table})
    best = next(row for row in table if row["n_nodes"] == fewest)
    if not np.isfinite(best["error"]):
        raise ParameterError("every number of nodes has a block within 1 of some task's samples")
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
        setting=question.setting,
    )


def _candidate(question: Question, K: int) -> Candidate:
    """One row of the table, with a warning where K nodes are to be avoided."""
    n, sizes = question.n, even_sizes(question.n_features, K)
    radius = spectral_radius(n, sizes)
    gap, size, m = min(
        (abs(m - size), size, m)
        for m in np.unique(question.n_samples).tolist()
        for size in (sizes[0], sizes[-1])
    )
    warning = None
    if gap <= 1:
        warning = f"blocks of {size} columns for {m} samples: the error is unbounded"
    elif radius >= 1:
        warning = "grows with every task (radius above 1)"
    elif gap < NEAR_SQUARE * m:
        warning = f"blocks of {size} columns are close to {m} samples"
    return Candidate(
        n_nodes=K,
        partition=sizes,
        error=question.error(sizes),
        spectral_radius=radius,
        warning=warning,
    )


def _limit(
    p: int, n_samples: Array, n_shared: float, noise_var: float, energy: float
) -> Callable[[int], float]:
    """The error of endless tasks, as a function of the number of nodes."""
    n = int(np.median(n_samples))
    return lambda K: endless_error(n, even_sizes(p, K), n_shared, noise_var, energy)


def _least(errors: dict[int, float]) -> int:
    """The number of nodes with the least error; the fewest of those that rounding cannot tell."""
    limit = min(errors.values()) * (1 + 1e-9) + 1e-12
    return min(K for K, error in errors.items() if error <= limit)
