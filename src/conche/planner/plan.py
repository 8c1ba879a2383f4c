"""Theory turned into advice: how many nodes, which sizes, how much memory, how many bytes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Unpack

import numpy as np

from ..common.arrays import Array
from ..common.checks import real, whole
from ..errors import CorrelationWarning, DataError, ParameterError
from ..paper.sizes import Numbers, samples_per_task
from ..paper.theory import Similarity, TaskStatistics, estimate
from ..paper.theory.even import even_errors
from ..tasks import Task
from .advice import ALGORITHM, Plan, advise, limit_of
from .question import Question
from .terms import Terms, Wanted

LARGEST_NUMBER = 1e100
DRIFTING = 6.0  # standard errors by which neighbours must be more alike than distant tasks
CORRELATED = 1.25  # tr(Sigma^2)/p from here on is not what the theory assumes
HEAVY = 9.0  # mean fourth moment of standardised entries (3: Gaussian) from here on


def plan(
    n_features: int,
    n_samples: Numbers,
    n_tasks: int,
    n_shared: float,
    noise_var: float,
    energy: float = 1.0,
    drift: float = 0.0,
    **terms: Unpack[Terms],
) -> Plan:
    """Advice from numbers: Task Model 1, learnt with Algorithm 1 and with the Conche method.

    Candidates are the powers of two and the divisors of ``n_features``, with even blocks.

    Parameters
    ----------
    n_features, n_tasks : p and T.
    n_samples : one number, or one per task.
    n_shared : unknowns that all tasks have in common (the paper's p_S).
    noise_var : sigma^2.
    energy : |w*_t|^2, the squared norm of a task's unknowns (of the first, where they drift).
    drift : squared length of the step by which all unknowns move from task to task.
    n_nodes : the number of nodes, if it is given: then remedies are looked for (the paper's
        Section V), such as better block sizes, a subset of the nodes, more rounds, damping.
    n_nodes_max : no more nodes than this.
    rank, loss : of the Conche method: directions to keep (None: its default), and what a smaller
        rank may cost, as a share of the error (0.01).
    network, bandwidth, latency : "local", "ray" or "mpi"; MB/s and ms instead of those of one
        machine.

    Examples
    --------
    >>> advice = plan(1024, 2048, n_tasks=16, n_shared=768, noise_var=0.01)
    >>> advice.n_nodes, round(advice.error, 3), round(advice.memory.error, 3)
    (8, 0.27, 0.252)
    """
    n_features = whole("n_features", n_features)
    samples = samples_per_task(n_samples, whole("n_tasks", n_tasks))
    real("n_shared", n_shared, 0, n_features)
    real("noise_var", noise_var, 0, LARGEST_NUMBER)
    real("energy", energy, 0, LARGEST_NUMBER)
    real("drift", drift, 0, LARGEST_NUMBER)
    question = task_model_1(n_features, samples, n_shared, noise_var, energy, drift)
    return advise(question, Wanted.of(terms, n_features))


def task_model_1(
    n_features: int, samples: Array, n_shared: float, noise_var: float, energy: float, drift: float
) -> Question:
    """What is asked, from numbers."""
    moving = f", which drift by {drift:g} a task" if drift else ""
    return Question(
        n_features=n_features,
        n_samples=samples,
        noise_var=noise_var,
        energy=energy,
        common=energy * n_shared / n_features,
        drift=drift,
        drifts=drift > 0,
        similarity=lambda T, sizes: Similarity.shared(
            T, sizes, n_shared / n_features * sum(sizes), energy, drift
        ),
        even=lambda nodes, ns: even_errors(
            n_features, nodes, ns, n_shared, noise_var, energy, drift
        ),
        limit=limit_of(n_features, samples, n_shared, noise_var, energy, drift),
        setting=f"p = {n_features:,}, n = {several(samples)}, T = {len(samples)}, "
        f"$p_S$ = {n_shared:,g}, noise {noise_var:g}, energy {energy:g}"
        + (f", drift {drift:g}" if drift else ""),
        assumptions=[
            "features are independent Gaussian with variance 1 (standardise yours)",
            f"tasks share {n_shared:g} of {n_features:g} unknowns (Task Model 1){moving}, signal "
            f"energy {energy:g}, noise variance {noise_var:g}",
            ALGORITHM,
        ],
    )


def plan_from_tasks(tasks: Iterable[Task], **terms: Unpack[Terms]) -> Plan:
    """Advice from data: noise, energy, similarity and spectrum are estimated in one pass
    (`conche.theory.estimate`).

    Every pair of tasks is taken to be equally similar, which three numbers describe; where
    neighbours are clearly more similar than distant tasks, every pair's own inner product is used
    instead. Where the columns are too correlated or too heavy-tailed for the theory, a part of the
    stream is learnt with both methods, and errors are measured (``measured``; `plan` says so).

    Parameters
    ----------
    tasks : a list, or whatever can be gone through twice; one task is in memory at a time.
    terms : those of `plan`.

    Examples
    --------
    >>> from conche.tasks import gaussian_tasks
    >>> plan_from_tasks(gaussian_tasks(16, 256, 128, n_shared=96)).n_nodes
    8
    """
    if iter(tasks) is tasks:
        raise ParameterError("tasks can be gone through only once: give a list of them")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CorrelationWarning)  # that is what measuring is for
        found = estimate(tasks)
    wanted = Wanted.of(terms, found.n_features)
    question = _question(found)
    why = _not_covered(found)
    if why is None:
        return advise(question, wanted)
    from .measure import measured  # late: it learns, and scikit-learn takes long to import

    return measured(tasks, question, wanted, why)


def _not_covered(found: TaskStatistics) -> str | None:
    """Why no theory covers these data; None where it does."""
    if found.correlation > CORRELATED + 4 * found.correlation_stderr:
        return (
            f"the columns are correlated (tr(Sigma^2)/p = {found.correlation:.3g}, 1 for "
            f"independent ones: about {found.n_features / found.correlation:.0f} of "
            f"{found.n_features} directions count)"
        )
    if found.tails > HEAVY:
        return (
            f"the columns have heavy tails (fourth moment {found.tails:.3g}, 3 for Gaussian ones)"
        )
    return None


def _question(found: TaskStatistics) -> Question:
    """What is asked, with what was estimated."""
    p, T = found.n_features, found.n_tasks
    noise_var, energy, common = found.summary()
    drifting = found.drift() > DRIFTING
    if energy + noise_var == 0:
        raise DataError("the targets are constant: there is nothing to plan from")
    n_shared = min(p * common / energy, p) if energy > 0 else 0.0

    def similarity(n_tasks: int, sizes: Sequence[int]) -> Similarity:
        if drifting and n_tasks == T:
            return found.similarity(list(sizes))
        return Similarity.shared(n_tasks, sizes, n_shared / p * sum(sizes), energy)

    alike = "all pairs of tasks are equally alike"
    if drifting:
        alike = (
            "neighbouring tasks are more alike than distant ones: every pair has its own number "
            "(but longer streams are foreseen with one for all pairs)"
        )
    shown = "which tasks of one row do not show"
    if np.isfinite(found.correlation):
        shown = f"measured tr(Sigma^2)/p = {found.correlation:.2f}, 1 if they are"
    return Question(
        n_features=p,
        n_samples=found.n_samples,
        noise_var=noise_var,
        energy=energy,
        common=common,
        drift=found.walk() if drifting else 0.0,
        drifts=drifting,
        spectrum=found.spectrum,
        similarity=similarity,
        even=None
        if drifting
        else lambda nodes, ns: even_errors(p, nodes, ns, n_shared, noise_var, energy),
        limit=limit_of(p, found.n_samples, n_shared, noise_var, energy),
        setting=f"p = {p:,}, n = {several(found.n_samples)}, T = {T}; estimated: noise "
        f"{noise_var:.3g}, energy {energy:.3g}, {common:.3g} of it common",
        assumptions=[
            f"features standardised; independent of each other ({shown})",
            f"estimated from {T} tasks: noise variance {noise_var:.3g}, signal energy "
            f"{energy:.3g}, of which {common:.3g} is common to the tasks",
            alike,
            ALGORITHM,
        ],
    )


def several(numbers: Array) -> str:
    """One number, or from the least to the largest.

    Examples
    --------
    >>> several(np.array([30, 30])), several(np.array([1000, 20]))
    ('30', '20 to 1,000')
    """
    low, high = int(np.min(numbers)), int(np.max(numbers))
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
