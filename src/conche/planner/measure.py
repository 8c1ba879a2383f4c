"""Where no theory covers the data: the stream, or a part of it, is learnt both ways, and measured.

A quarter of every task's rows is held out. The rest is learnt, task after task, by Algorithm 1 on
several numbers of nodes and by the Conche method with several ranks. Where all tasks would take too
long (by counted work, so that the answer does not depend on the machine), only every second one is
learnt, or third, and so on: a stream's beginning would say less of its end. Errors are measured on
rows of all tasks, and the Conche method's are drawn on to as many samples as there are (a + b/N).
Algorithm 1's tend nowhere: they are foreseen only where all tasks were learnt and nothing leapt.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..common.arrays import Array, as_dense, even_sizes
from ..common.words import counted, number
from ..errors import ConcheError
from ..estimators import CoCoARegressor, ConcheRegressor
from ..nodes.solvers import Memory
from ..nodes.solvers.options import About, default_rank
from ..tasks import Task
from . import cost
from .advice import Plan, rounds_plan
from .memory import ROUNDS, Errors, MemoryPlan, counted_plan
from .question import Candidate, Question
from .terms import Wanted
from .traffic import Stream
from .words import bought

SECONDS = 6.0  # of learning, about, on the machine that costs were measured on
HELD_OUT = 0.25
MOST_HELD = 20_000  # rows held out that are kept, of all tasks
SHARES = (0.25, 0.125)  # of the columns: ranks that are tried beside the default
NODES = (1, 8, 32)  # that Algorithm 1 is tried on
FEW = 4  # nodes that the Conche method is tried on
ROUNDING = 1e-9  # of the targets' power: an error that is none
UNSTEADY = 1.3  # times the median: an error that has been so large in the last half is no promise

Rows = tuple[Array, Array]


class Learner:
    """A model, and its error on all rows held out so far, after every task."""

    def __init__(self, model: Any):
        self.model, self.failed = model, False
        self.curve: list[float] = []

    def learn(self, X: Array, y: Array, held: list[Rows]) -> None:
        """One more task; a model that has overflowed has failed for good."""
        if not self.failed:
            try:
                self.model.partial_fit(X, y)
            except ConcheError:
                self.failed = True
        self.curve.append(np.inf if self.failed else self._error(held))

    def _error(self, held: list[Rows]) -> float:
        """The mean over tasks of the mean squared error."""
        off = self.model.predict(np.concatenate([X for X, _ in held]))
        squares = (off - np.concatenate([y for _, y in held])) ** 2
        ends = np.cumsum([len(y) for _, y in held])[:-1]
        return float(np.mean([np.mean(part) for part in np.split(squares, ends)]))


def measured(tasks: Iterable[Task], question: Question, wanted: Wanted, why: str) -> Plan:
    """The plan by measurement; ``why`` no theory would do."""
    p, T = question.n_features, question.n_tasks
    most = min(p, wanted.n_nodes_max or p)
    tried = NODES if most >= NODES[1] else (1, min(most, FEW))
    nodes = sorted({K for K in (*tried, wanted.n_nodes or 1) if most >= K})
    rank = default_rank(About(p)) if wanted.rank is None else wanted.rank
    ranks = {rank, default_rank(About(p)), *(int(share * p) for share in SHARES)}
    on = min(wanted.n_nodes or FEW, p)
    plain = {K: Learner(CoCoARegressor(K, fit_intercept=True, scaling="first")) for K in nodes}
    kept = {m: Learner(ConcheRegressor(on, solver=Memory(rank=m))) for m in sorted(ranks)}
    step = _step(question, on, nodes, list(kept))
    seen = _learnt(tasks, [*plain.values(), *kept.values()], T, step)
    table = [_row(question, K, plain[K].curve, step) for K in nodes]
    steady = [row for row in table if np.isfinite(row["error"])] or table
    chosen = min(steady, key=lambda row: row["error"])
    if wanted.n_nodes is not None:
        chosen = next(row for row in table if row["n_nodes"] == wanted.n_nodes)
    errors = {m: _drawn_on(one.curve, seen, question.n_samples) for m, one in kept.items()}
    damping = float(kept[rank].model.state_.damping)
    memory = _memory(question, chosen["n_nodes"], wanted, rank, errors, damping)
    how = _how(why, len(seen), T)
    return Plan(
        n_nodes=chosen["n_nodes"],
        error=chosen["error"],
        table=table,
        centralised=table[0]["error"],
        horizon=[],
        remedies=[],
        assumptions=[how],
        text=_paragraph(how, chosen, memory, fixed=wanted.n_nodes is not None),
        memory=memory,
        rounds=rounds_plan(question, chosen["n_nodes"], wanted),
        given=wanted.n_nodes is not None,
        measured=True,
        setting=question.setting,
    )


def _step(question: Question, on: int, nodes: list[int], ranks: list[int]) -> int:
    """Every task, every second, ...: what there is time for, by what tasks are said to cost."""
    p, n, T = question.n_features, int(np.mean(question.n_samples)), question.n_tasks
    here = cost.wire()
    each = sum(cost.one_round_seconds(even_sizes(p, K), n, here) for K in nodes)
    for rank in ranks:
        stream = Stream(even_sizes(p, on), np.array([10 * p, n]), rank)
        each += cost.seconds(stream, here, 1 if stream.lossless else ROUNDS)
    return max(math.ceil(T * each / cost.slowness() / SECONDS), 1)


def _learnt(tasks: Iterable[Task], learners: Sequence[Learner], T: int, step: int) -> list[int]:
    """Learn every so many tasks, and the last; answers the samples of every one that was learnt."""
    rng = np.random.default_rng(0)
    held: list[Rows] = []
    seen: list[int] = []
    for t, task in enumerate(tasks):
        X, y = np.asarray(as_dense(task.X), dtype=float), np.asarray(task.y, dtype=float)
        rows = rng.permutation(len(y))
        out = max(int(HELD_OUT * len(y)), 1)
        kept = rows[: min(out, max(MOST_HELD // T, 1))]
        held.append((X[kept], y[kept]))
        if t % step and t < T - 1:
            continue
        seen.append(len(y))
        learn = rows[out:] if len(y) > 1 else rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is tried, much may be near its limits
            for one in learners:
                one.learn(X[learn], y[learn], held)
    return seen


def _row(question: Question, K: int, curve: list[float], step: int) -> Candidate:
    """Algorithm 1 on K nodes, as it was measured; no number where it is none to rely on."""
    last = np.array(curve[len(curve) // 2 :])
    middle, worst = float(np.median(last)), float(np.max(last))
    nothing = ROUNDING * (question.energy + question.noise_var)
    steady = worst <= max(UNSTEADY * middle, nothing) and np.isfinite(worst) and step == 1
    warning = None
    if step > 1:
        warning = "not foreseen: it depends on every task, and only some were learnt"
    elif not steady:
        warning = f"not steady: errors up to {worst:.3g} in the last half of the tasks"
    return Candidate(
        n_nodes=K,
        partition=even_sizes(question.n_features, K),
        error=curve[-1] if steady else float("nan"),
        spectral_radius=float("nan"),
        warning=warning,
    )


def _drawn_on(curve: list[float], seen: list[int], n_samples: Array) -> float:
    """The error at the stream's end; where not all tasks were learnt, with what a + b/N gains."""
    if len(seen) == len(n_samples):
        return curve[-1]
    some = slice(len(curve) // 2, None)
    x = 1 / np.cumsum(seen, dtype=float)[some]
    slope = max(float(np.polyfit(x, curve[some], 1)[0]), 0.0)  # more data do no harm
    return max(curve[-1] - slope * (x[-1] - 1 / float(np.sum(n_samples))), 0.5 * curve[-1])


def _memory(
    question: Question,
    K: int,
    wanted: Wanted,
    rank: int,
    errors: dict[int, float],
    damping: float,
) -> MemoryPlan:
    lossless = errors[max(errors)]
    fine = [m for m, error in errors.items() if error <= lossless * (1 + wanted.loss)]
    loss = max(errors[rank] / lossless - 1, 0.0)
    known = Errors(rank, errors[rank], loss, min(fine), damping)
    return counted_plan(question, K, wanted, known)


def _how(why: str, learnt: int, T: int) -> str:
    part = "all tasks were" if learnt == T else f"{learnt} of {T} tasks, spread over all, were"
    how = f"{why}: no theory covers that, so {part} learnt with both methods, a quarter of the rows"
    return how + (" held out" if learnt == T else " held out, and errors drawn on to all of them")


def _paragraph(how: str, chosen: Candidate, memory: MemoryPlan, fixed: bool) -> str:
    nodes = counted(chosen["n_nodes"], "node")
    text = f"Measured: {how}. {bought(chosen['error'], memory)} "
    if not np.isfinite(chosen["error"]):
        of = f"on {nodes}" if fixed else "on the numbers of nodes that were tried"
        return text + f"No error is foreseen for Algorithm 1 {of}: {chosen['warning']}."
    best = "" if fixed else ", where it does best"
    return text + f"Algorithm 1 on {nodes}{best}: {number(chosen['error'])}."
