"""A stream's state: one frozen value. Learning a task maps it to the next."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..common.arrays import Array, is_here, like, space
from ..common.outputs import Outputs
from ..common.threads import blas_threads, factoring
from ..errors import OfflineGapWarning, ParameterError
from ..memory import Past, Solution, Wish, gap
from ..network import CentralNetwork, Coefficients, Network, Placed
from ..nodes import Setup
from ..nodes.solvers import Context
from ..nodes.solvers.base import Meeting
from ..nodes.solvers.lossless import Lossless
from ..rounds import Job, Loss, Outcome, Round, choose_steps, learn
from ..rounds.losses import Weighed
from .arrivals import Stiffness, shares
from .gap import Account, OfflineGap
from .inputs import Schema
from .judge import Judge, likeliest
from .labels import Labels
from .lossless import after_sums, enough_memory
from .records import RoundRecord, TaskRecord

AT_HOME = (
    "keep_weights = 'nodes': coefficients, means and scales are with the nodes, and nobody has "
    "them all; predict from tasks of the stream, as conche predict does"
)
NOTABLE = 0.01  # of the offline objective: a gap that is said aloud


class Settings(NamedTuple):
    """Parameters that a stream is begun with and cannot go on without."""

    n_nodes: int | None
    partition: tuple[Any, ...] | None
    fit_intercept: bool
    solver: Any
    loss: str
    scaling: str | None
    missing: str


def frozen(partition: Any) -> tuple[Any, ...]:
    """Sizes or lists of columns, as values that can be compared."""
    try:
        blocks = [np.asarray(b, dtype=object).tolist() for b in partition]
        return tuple(tuple(b) if isinstance(b, list) else int(b) for b in blocks)
    except (TypeError, ValueError):
        raise ParameterError(
            f"partition={partition!r} must list block sizes, or columns per block"
        ) from None


@dataclass(frozen=True, eq=False)
class StreamState:
    """Everything that a stream has come to; `conche.save` writes it, and nothing else.

    Nobody changes its arrays, so copies of a model may share it.
    """

    settings: Settings
    setup: Setup  # solver, partition and scaling: what the nodes are made with
    schema: Schema
    nodes: Placed  # the nodes' states, or what stands for them where they are elsewhere
    judge: Judge
    flat: bool  # whether targets have one dimension
    begun: int  # weights that the stream began with
    labels: Labels | None = None  # of a classifier
    account: Account | None = None  # memory: what it has lost
    stiffness: Stiffness = field(default_factory=Stiffness)  # of what it keeps
    past: Past | None = None  # lossless memory: what the coordinator keeps
    turned: str = ""  # lossless memory: whether columns stay hidden; "each" by its node, "together"
    found: Solution | None = None  # what was found of it when the last task was learnt
    agreed: float = 0.0  # the damping that the nodes agreed on
    coefficients: Coefficients | None = None  # None before the first task
    history: tuple[RoundRecord, ...] = ()
    tasks: tuple[TaskRecord, ...] = ()
    began: Outputs | None = None  # how the last task's outputs began from those before, if changed
    moved: bool = False  # whether columns have come or left since then
    mark: int = 0  # of the last task's columns, where they were read from files
    views: Array | None = None  # every node's own predictions of the last task, without a centre

    def __deepcopy__(self, memo: Any) -> StreamState:
        return self

    @property
    def classes(self) -> Array | None:
        """The labels, in order; None for a regressor."""
        return None if self.labels is None else self.labels.classes

    @property
    def shown(self) -> Outputs:
        """Which of the model's outputs users see."""
        if self.labels is None:
            return Outputs.same(self.judge.n_outputs)
        return self.labels.shown()

    @property
    def counted(self) -> Array:
        """The places of those among all nodes' outputs."""
        return self.judge.outputs.start + np.array(self.shown.places)

    @property
    def damping(self) -> float:
        """The damping in force."""
        return self.agreed * self.judge.strength

    @property
    def discount(self) -> float:
        """The weight of the past per task."""
        return self.setup.solver.discounts[0] if self.past is None else self.past.best.discount

    @property
    def wish(self) -> Wish:
        """What is asked of a solution of the past."""
        assert self.past is not None
        known = self.past.unit
        unit = {None: np.ones(len(known)), "first": known}.get(self.settings.scaling)
        common = bool(self.turned) or self.schema.sparse  # sparse columns are left as they are
        if common:
            unit = np.ones(len(known))
        ridge = cast(Lossless, self.setup.solver).ridge
        shared = self.labels is not None
        return Wish(self.settings.fit_intercept, ridge, unit, shared, common)

    @cached_property
    def solved(self) -> Solution:
        """The ridge solution of all rows so far: with the ridge that is the likeliest now."""
        assert self.past is not None
        if self.found is not None and self.found.final:
            return self.found
        p = len(self.past.unit)
        threads = factoring(self.past.best.sums.order)
        with enough_memory(p, self.setup.device), blas_threads(threads):
            return self.past.solved(self.past.best, self.wish)[0]

    def gap(self) -> OfflineGap:
        """How far the objective of all rows is above its minimum, by the solution at hand."""
        assert self.past is not None
        found = self.found or self.solved
        about_zero = not self.settings.fit_intercept
        eps = float(np.finfo(self.schema.dtype).eps)
        objective, off = gap(self.past.best.sums, found, about_zero, eps)
        return OfflineGap(off, 0.0, off, objective).shares()

    @cached_property
    def _weights(self) -> Coefficients:
        """What the coordinator has; refused where it has nothing."""
        if self.setup.homes:
            raise ParameterError(AT_HOME)
        assert self.coefficients is not None
        if self.past is None or self.turned:
            return self.coefficients
        found = self.solved
        return self.coefficients._replace(weights=found.weights, offset=found.offset)

    @property
    def ridge(self) -> Array:
        """What is added per squared weight to the squared errors, outputs x columns."""
        penalty = self.solved.penalty
        if self.turned:  # one for all coordinates: of a column, in its unit
            units = self._weights.units
            assert units is not None
            penalty = units[:, None] ** 2 * penalty.max(axis=0)
        return self.shown.among(penalty).T

    @cached_property
    def inner_coef(self) -> Array:
        """n_outputs x n_features: with that of the class which has not appeared yet."""
        weights = self._weights.weights[:, self.judge.outputs]
        own = weights[: self.schema.n_features].T
        return _read_only(np.array(own, order="C", dtype=self.schema.dtype))

    @cached_property
    def inner_intercept(self) -> Array:
        """One number for each of those."""
        weights = self._weights.weights[:, self.judge.outputs]
        own = np.zeros(self.judge.n_outputs, weights.dtype)
        if self.setup.partition.intercept:
            own = weights[self.schema.n_features]
        offset = self._weights.offset[self.judge.outputs]
        return _read_only((own + offset).astype(self.schema.dtype))

    @cached_property
    def coef(self) -> Array:
        """What users see, outputs x n_features, for columns as they come."""
        return _read_only(np.array(self.shown.of(self.inner_coef.T).T, order="C"))

    @cached_property
    def intercept(self) -> Array:
        """One number per output."""
        return _read_only(self.shown.of(self.inner_intercept))

    def filled(self, X: Array) -> Array:
        """A dense X with what is missing filled in as it was in training."""
        means = None if self.coefficients is None else self.coefficients.means
        gaps = space(X).isnan(X)
        if means is None or not bool(space(X).any(gaps)):
            return X
        return np.where(gaps, means, X) if is_here(X) else space(X).where(gaps, like(X, means), X)

    def snapshot(self) -> dict[str, Array]:
        """The estimate as it is now, of all outputs, by name, with a first axis for the tasks."""
        now = {"coef": self.inner_coef[None], "intercept": self.inner_intercept[None]}
        if self.past is not None and self.found is not None and not self.turned:
            dtype = self.schema.dtype  # the last ridge may still have been in force
            coef, intercept = self.found.weights.T[None], self.found.offset[None]
            now = {"coef": coef.astype(dtype), "intercept": intercept.astype(dtype)}
        if self.coefficients is not None and self.coefficients.means is not None:
            now["means"] = self.coefficients.means[None]
        return now


def _read_only(array: Array) -> Array:
    array.setflags(write=False)  # copies of a model share it
    return array


class Lesson(NamedTuple):
    """A task's data as the nodes learn them, and how."""

    X: Any
    Y: Array  # n_samples x n_outputs
    labels: Labels | None  # with those of this task
    weights: Array | None  # of the samples
    loss: Loss
    error: Callable[[Array, Array], float]  # of predictions against Y
    steps: str
    n_rounds: int
    tol: float | None
    added: tuple[tuple[bool, ...], ...] = ()  # whether each node's new columns were zero so far
    errors: bool = False  # whether errors before and after are asked for
    last: bool = False  # whether it is the stream's last task, as far as is known
    histogram: bytes = b""  # of labels

    def since(self, state: StreamState) -> Outputs | None:
        """How its outputs begin from those of the stream so far, if labels have come."""
        if self.labels is None or state.labels is None:
            return None
        return self.labels.since(state.labels)


def after_task(state: StreamState, network: Network, lesson: Lesson) -> StreamState:
    """The state after one more task; the old one is as good as before.

    Parameters
    ----------
    state : of the stream so far.
    network : started with ``state.setup``.
    lesson : the task.
    """
    if state.setup.solver.meeting is Meeting.SUMS:
        return after_sums(state, cast(CentralNetwork, network), lesson)
    clock = time.perf_counter()
    began = lesson.since(state)
    judge, outputs = state.judge.going_on(began)
    fading = state.stiffness.fading(state.labels, lesson.labels)
    state = replace(state, labels=lesson.labels, began=began)
    steps = choose_steps(lesson.steps, state.setup.solver, network, lesson.tol)
    sigma = steps.sigma(len(state.setup.partition))
    context = _context(state, network, lesson, judge, sigma, fading)
    Y = np.asarray(lesson.Y, dtype=state.schema.dtype)
    job = Job(
        lesson.X,
        judge.side_by_side(Y),
        lesson.loss if lesson.weights is None else Weighed(lesson.loss, np.sqrt(lesson.weights)),
        state.setup.solver,
        context,
        outputs,
        None if lesson.labels is None else shares(lesson.labels, judge),
        lesson.added,
    )
    done = learn(network, state.nodes, job, steps, lesson.n_rounds)
    account = _accounted(state, lesson.loss, done, outputs)
    judge = judge.having_seen(done.tested, likeliest(account, done.lost, done.context))
    now = replace(state, judge=judge)
    shown, counted = now.shown, now.counted
    before, after = (
        lesson.error(shown.of(v[:, judge.outputs]), shown.of(Y)) for v in (done.before, done.after)
    )
    number = len(state.tasks) + 1
    if state.setup.solver.remembers and lesson.tol and not np.all(done.certified[counted]):
        _warn_of_rounds(number, lesson.n_rounds, lesson.tol)
    lost = None if account is None else account.gap(counted)
    rounds = [_shown(r, number, i, counted) for i, r in enumerate(done.rounds, start=1)]
    record = _record(done, number, (before, after), time.perf_counter() - clock, lost)
    _warn_of_gap(record, lost, state)
    return replace(
        state,
        nodes=done.placed,
        judge=judge,
        account=account,
        stiffness=_stiffness(state, job, lesson, done),
        agreed=done.context.damping,
        coefficients=done.coefficients,
        history=(*state.history, *rounds),
        tasks=(*state.tasks, record),
        mark=done.mark,
        views=None if done.views is None else shown.of(done.views[..., judge.outputs]),
    )


def _context(
    state: StreamState,
    network: Network,
    lesson: Lesson,
    judge: Judge,
    sigma: float,
    fading: float,
) -> Context:
    """What all nodes are told of a task before they agree on more."""
    n, partition = lesson.X.shape[0], state.setup.partition
    return Context(
        task=len(state.tasks),
        n_nodes=len(partition),
        n_samples=n,
        weight=n if lesson.weights is None else float(np.sum(lesson.weights)),
        smoothness=lesson.loss.smoothness,
        quadratic=lesson.loss.quadratic,
        damping=state.agreed,
        discount=fading * state.discount,
        sigma=sigma,
        tol=lesson.tol or 0.0,
        intercept=partition.intercept,
        apart=network.apart or bool(state.setup.homes),
        secure=network.secure,
        each=judge.strengths,
    )


def _record(
    done: Outcome,
    number: int,
    errors: tuple[float, float],
    seconds: float,
    gap: OfflineGap | None,
) -> TaskRecord:
    return TaskRecord(
        task=number,
        before=errors[0],
        after=errors[1],
        samples=len(done.after),
        bytes=sum(r.sent for r in done.rounds),
        seconds=seconds,
        gap=np.inf if gap is None else gap.estimate,
        gap_bound=np.inf if gap is None else gap.bound,
    )


def _accounted(
    state: StreamState, loss: Loss, done: Outcome, outputs: Outputs | None
) -> Account | None:
    """What memory has lost so far; None where nothing is known of it."""
    if state.account is None or not loss.quadratic:
        return None
    left = done.rounds[-1].bound * done.context.weight
    discount = done.context.discount
    before = state.account if outputs is None else state.account.only(outputs)
    return before.after(done.lost, left, done.objective, discount)


def _stiffness(state: StreamState, job: Job, lesson: Lesson, done: Outcome) -> Stiffness:
    if job.shares is None or not state.setup.solver.remembers:
        return state.stiffness
    return state.stiffness.after(lesson.loss, done.after, job.shares, lesson.weights)


def _warn_of_rounds(task: int, n_rounds: int, tol: float) -> None:
    warnings.warn(
        f"task {task} is not certain to be within tol={tol:g} of its optimum after "
        f"{n_rounds} rounds, which n_rounds={n_rounds} allows: more may get there",
        ConvergenceWarning,
        stacklevel=6,
    )


def _warn_of_gap(record: TaskRecord, gap: OfflineGap | None, state: StreamState) -> None:
    """Once in a stream, where it is the rank that has lost so much."""
    if gap is None or not NOTABLE < gap.estimate - gap.rounds < np.inf:
        return
    if any(NOTABLE < (task["gap"] or 0.0) < np.inf for task in state.tasks):
        return
    warnings.warn(
        f"after task {record['task']} the offline objective is about {record['gap']:.1%} above "
        f"its minimum: a larger rank forgets less",
        OfflineGapWarning,
        stacklevel=6,
    )


def _shown(measured: Round, task: int, number: int, outputs: Array) -> RoundRecord:
    """A round as the history shows it: of the model's own outputs."""
    return RoundRecord(
        task=task,
        round=number,
        residual=float(np.sqrt(np.mean(measured.squares[outputs]))),
        loss=float(np.sum(measured.loss[outputs])),
        bound=float(np.sum(measured.bound[outputs])),
        bytes=measured.sent,
        seconds=measured.seconds,
        accuracy=measured.accuracy,
        disagreement=measured.disagreement,
    )
