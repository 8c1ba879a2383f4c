"""A task: what arrives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common.arrays import Array
from ..errors import DataError
from .masks import unmasked


@dataclass(frozen=True, eq=False)
class Task:
    """One task (A_t, y_t) of a stream.

    Parameters
    ----------
    X : the paper's A_t, one row per sample: an array, a scipy.sparse matrix, or `Columns`. What is
        masked becomes NaN.
    y : the paper's y_t, one value (or one row of values) per sample.
    weights, noise_var : the truth behind the task (the paper's w*_t and sigma_t^2), known for
        synthetic streams only.
    name : what messages call the task.
    correlation : the Toeplitz correlation of the features, for synthetic streams.
    sample_weight : what each sample counts for; None: one.

    Examples
    --------
    >>> import numpy as np
    >>> task = Task(np.ones((3, 2)), [1.0, 2.0, 3.0], name="january")
    >>> str(task), task.n_samples, task.n_features
    ('task january', 3, 2)
    """

    X: Any
    y: Array
    weights: Array | None = None
    noise_var: float | None = None
    name: str | None = None
    correlation: float = 0.0
    sample_weight: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", unmasked(self.X, f"{self}: X", gaps=True))
        object.__setattr__(self, "y", np.asarray(unmasked(self.y, f"{self}: y")))
        own_weights = unmasked(self.sample_weight, f"{self}: sample_weight")
        object.__setattr__(self, "sample_weight", own_weights)
        if len(getattr(self.X, "shape", ())) != 2:
            raise DataError(f"{self}: X must be a matrix, one row per sample")
        if self.y.ndim not in (1, 2):
            raise DataError(f"{self}: y must have one value per sample, or one row")
        if self.n_samples != len(self.y):
            raise DataError(f"{self}: X has {self.n_samples} rows but y has {len(self.y)}")
        if self.weights is not None and np.shape(self.weights) != (self.n_features,):
            raise DataError(
                f"{self}: {np.size(self.weights)} weights for {self.n_features} columns"
            )

    @property
    def n_samples(self) -> int:
        """The number of rows, the paper's n_t."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """The number of columns, the paper's p."""
        return int(self.X.shape[1])

    def __str__(self) -> str:
        return f"task {self.name}" if self.name else "task"
