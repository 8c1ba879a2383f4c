"""What is asked of the theory, and the rows of its answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from ...common.arrays import Array
from ..theory import Similarity, generalization_error


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

    ``similarity`` gives it for a number of tasks and block sizes, ``limit`` the error of endless
    tasks on a number of nodes with even blocks.
    """

    n_features: int
    n_samples: Array  # one per task
    noise_var: float
    similarity: Callable[[int, Sequence[int]], Similarity]
    limit: Callable[[int], float]
    assumptions: list[str]
    setting: str

    @property
    def n_tasks(self) -> int:
        """T."""
        return len(self.n_samples)

    @property
    def n(self) -> int:
        """A typical task's samples: the median."""
        return int(np.median(self.n_samples))

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
        T = n_tasks or self.n_tasks
        ns = self.n_samples if self.n_tasks == T else self.n
        similarity = self.similarity(T, sizes)
        curve = generalization_error(
            similarity, ns, self.noise_var, n_rounds, damping, self.samples
        )
        return max(0.0, float(curve[-1]))  # an estimated similarity may put it below

    @property
    def samples(self) -> int:
        """Draws for moments without a closed form: many where A is small, four where large."""
        rows = min(self.n, self.n_features)
        return int(np.clip(4e6 / (rows * self.n_features), 4, 400))
