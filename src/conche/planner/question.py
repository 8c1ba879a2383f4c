"""What is asked of the theory, and the rows of its answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from ..theory import Similarity, generalization_error
from ..theory.moments import Array


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
    """What is asked: sizes, noise, and how alike so many tasks are over such blocks."""

    n_features: int
    n_samples: Array  # one per task
    noise_var: float
    likeness: Callable[[int, Sequence[int]], Similarity]
    limit: Callable[[int], float]  # the error for endless tasks on so many nodes
    assumptions: list[str]

    @property
    def n_tasks(self) -> int:
        return len(self.n_samples)

    @property
    def n(self) -> int:
        return int(np.median(self.n_samples))

    def error(
        self,
        sizes: Sequence[int],
        n_tasks: int | None = None,
        n_rounds: int = 1,
        damping: float | None = None,
    ) -> float:
        """The predicted error over all tasks after the last one."""
        T = n_tasks or self.n_tasks
        ns = self.n_samples if self.n_tasks == T else self.n
        likeness = self.likeness(T, sizes)
        curve = generalization_error(likeness, ns, self.noise_var, n_rounds, damping, self.samples)
        return max(0.0, float(curve[-1]))  # an estimated similarity may put it below

    @property
    def samples(self) -> int:
        """Draws for moments without a closed form: many where A is small, four where large."""
        rows = min(self.n, self.n_features)
        return int(np.clip(4e6 / (rows * self.n_features), 4, 400))


def number(x: float) -> str:
    """An error as people read it."""
    return "unbounded" if np.isinf(x) else f"{x:.3f}" if x < 1e4 else f"{x:.1e}"


def even_sizes(n_features: int, n_nodes: int) -> list[int]:
    """Block sizes that differ by at most one; arithmetic only, so any n_features will do."""
    small, more = divmod(n_features, n_nodes)
    return [small + 1] * more + [small] * (n_nodes - more)
