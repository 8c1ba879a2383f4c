"""What is asked of the theory, and the rows of its answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from ..common.arrays import Array, even_sizes
from ..paper.theory import Similarity, generalization_error
from ..paper.theory.moments import SampledMoments, moments
from .twin import Shape

DRAWN_COLUMNS = 128  # of a stream in the same proportions, where moments must be drawn
MOST_DRAWN = 1024  # where fewer would make blocks nearly square
DRAWN_APART = 2.5  # columns between a block's size and the samples: two, when both are rounded
DRAWN_OFF = 0.12  # of what blocks do to each other: so far off are radii near 1 of smaller streams
LEAST_BLOCK = 3  # columns of a node there
MANY_TASKS = 2000  # that are foreseen at most; a plan for more says so
DRAWN_ENTRIES = 4e5  # of all draws together


class Candidate(TypedDict):
    """One row of a plan's table."""

    n_nodes: int
    partition: list[int]
    error: float
    spectral_radius: float
    warning: str | None


class Remedy(TypedDict):
    """What to do where the number of nodes is given."""

    what: str
    error: float
    partition: list[int]
    n_rounds: int
    damping: float | None


class Horizon(TypedDict):
    """The best number of nodes for another number of tasks (None: tasks without end)."""

    n_tasks: int | None
    n_nodes: int
    error: float


@dataclass(frozen=True)
class Question:
    """What is asked of the theory: sizes, noise, and how similar the tasks are.

    ``similarity`` gives it for a number of tasks and block sizes, ``limit`` the errors of endless
    tasks on these numbers of nodes with even blocks.
    """

    n_features: int
    n_samples: Array  # one per task
    noise_var: float
    energy: float
    common: float  # of it, in all tasks
    similarity: Callable[[int, Sequence[int]], Similarity]
    limit: Callable[[Sequence[int]], Array]
    assumptions: list[str]
    setting: str
    drift: float = 0.0  # squared length of a step of all unknowns, from task to task
    drifts: bool = False  # whether neighbouring tasks are more alike than distant ones
    spectrum: Array | None = None  # of the columns' covariance; None: all eigenvalues are 1
    even: Callable[[Sequence[int], Array], Array] | None = None  # nodes and samples -> curves,
    # where all pairs of tasks are equally alike: many networks at once

    @property
    def n_tasks(self) -> int:
        """T."""
        return len(self.n_samples)

    @property
    def n(self) -> int:
        """A typical task's samples: the median."""
        return int(np.median(self.n_samples))

    def shape(self, K: int, damping: float) -> Shape:
        """The stream in a few numbers, on K nodes, with this ridge."""
        return Shape(
            self.n_features,
            self.n_tasks,
            float(np.mean(self.n_samples)),
            K,
            damping,
            self.noise_var,
            self.energy,
            self.common,
            self.drift,
            self.spectrum,
        )

    def errors(self, nodes: Sequence[int], n_tasks: int | None = None) -> dict[int, float]:
        """`error` of even blocks on each of these numbers of nodes, one round a task."""
        if self.even is None:
            p = self.n_features
            return {K: self.error(even_sizes(p, K), n_tasks) for K in nodes}
        last = self.even(nodes, self._samples(n_tasks))[:, -1]
        found = np.where(np.isnan(last), np.inf, np.maximum(last, 0.0))
        return dict(zip(nodes, found.tolist(), strict=True))

    def _samples(self, n_tasks: int | None) -> Array:
        """Of every task that is foreseen; a longer stream has typical tasks."""
        T = min(n_tasks or self.n_tasks, MANY_TASKS)
        return self.n_samples if self.n_tasks == T else np.full(T, self.n)

    def error(
        self,
        sizes: Sequence[int],
        n_tasks: int | None = None,
        n_rounds: int = 1,
        damping: float | None = None,
    ) -> float:
        """The predicted error over all tasks after the last one, for blocks of these sizes.

        ``n_tasks`` None takes as many as were asked for; a longer stream has typical tasks.
        """
        last = self.curve(sizes, n_tasks, n_rounds, damping)[-1]
        if np.isnan(last):
            return float("inf")
        return max(0.0, float(last))  # an estimated similarity may put it below

    def curve(
        self,
        sizes: Sequence[int],
        n_tasks: int | None = None,
        n_rounds: int = 1,
        damping: float | None = None,
    ) -> Array:
        """The same after every task; as it comes, nan where it has overflowed."""
        sizes, ns = self._as_drawn(sizes, self._samples(n_tasks), n_rounds, damping)
        similarity = self.similarity(len(ns), sizes)
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges, diverges
            return generalization_error(
                similarity, ns, self.noise_var, n_rounds, damping, self.draws(sizes)
            )

    def radius(self, sizes: Sequence[int], n_rounds: int = 1) -> tuple[float, float]:
        """The spectral radius of a typical task, of the very moments that `curve` goes on with; and
        how far off it may be, where they are drawn."""
        sizes, ns = self._as_drawn(sizes, self._samples(None), n_rounds, None)
        known = moments(int(np.median(ns)), sizes, n_rounds, samples=self.draws(sizes))
        if not known.finite:
            return float("inf"), 0.0
        radius = known.radius()
        drawn = isinstance(known, SampledMoments)
        noisy = radius - (1 - 2 * float(known.rho.min()))  # what blocks do to each other
        return radius, DRAWN_OFF * noisy if drawn else 0.0

    def _as_drawn(
        self, sizes: Sequence[int], ns: Array, n_rounds: int, damping: float | None
    ) -> tuple[Sequence[int], Array]:
        """`reduced`, where moments must be drawn; of wider blocks there is a closed form."""
        if damping is not None:
            return self.reduced(sizes, ns)
        if n_rounds > 1 and min(sizes) <= max(ns) + 1:
            return self.reduced(sizes, ns, _columns_apart(sizes, ns))
        return sizes, ns

    def reduced(
        self, sizes: Sequence[int], ns: Array, columns: int = DRAWN_COLUMNS
    ) -> tuple[Sequence[int], Array]:
        """A stream in the same proportions that is small enough to draw: errors hardly change.

        Unless every pair of tasks has a number of its own, which is of these columns.
        """
        share = max(columns, LEAST_BLOCK * len(sizes)) / self.n_features
        if share >= 1 or self.drifts:
            return sizes, ns
        small = [max(round(size * share), 1) for size in sizes]
        return small, np.maximum(np.round(ns * share), 1).astype(int)

    def draws(self, sizes: Sequence[int]) -> int:
        """How many, for moments without a closed form: many where A is small, four where large."""
        columns = sum(sizes)
        rows = min(max(self.n * columns // self.n_features, 1), columns)
        return int(np.clip(DRAWN_ENTRIES / (rows * columns), 4, 40))


def _columns_apart(sizes: Sequence[int], ns: Array) -> int:
    """So many that no block becomes nearly square by being made smaller: errors would be
    unbounded that are not."""
    gap = int(np.min(np.abs(np.unique(sizes)[:, None] - np.unique(ns))))
    apart = DRAWN_APART * sum(sizes) / gap if gap > 1 else 0
    return int(np.clip(np.ceil(apart), DRAWN_COLUMNS, MOST_DRAWN))
