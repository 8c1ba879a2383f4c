"""A task: what arrives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Task:
    """One task (A_t, y_t) of a stream: ``X`` is the paper's A_t, ``y`` its y_t.

    ``weights`` and ``noise_var`` are the truth behind the task (the paper's w*_t and sigma_t^2),
    known for synthetic streams only. ``correlation`` is the Toeplitz correlation of its features.
    """

    X: Any
    y: Array
    weights: Array | None = None
    noise_var: float | None = None
    name: str | None = None
    correlation: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "y", np.asarray(self.y))
        if len(getattr(self.X, "shape", ())) != 2:
            raise ValueError(f"{self}: X must be a matrix, one row per sample")
        if self.y.ndim not in (1, 2):
            raise ValueError(f"{self}: y must have one value per sample, or one row")
        if self.X.shape[0] != np.shape(self.y)[0]:
            raise ValueError(
                f"{self}: X has {self.X.shape[0]} rows but y has {np.shape(self.y)[0]}"
            )
        if self.weights is not None and np.shape(self.weights) != (self.X.shape[1],):
            raise ValueError(
                f"{self}: {np.size(self.weights)} weights for {self.X.shape[1]} columns"
            )

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def __str__(self) -> str:
        return f"task {self.name}" if self.name else "task"
