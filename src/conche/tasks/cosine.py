"""Random cosine features, as in the paper's Section IV-F."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .columns import Columns
from .task import Array


class CosineFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    """x -> [cos(zeta_1 . x), ..., cos(zeta_p . x)] with zeta_l ~ N(0, scale^2 I).

    The default scale is the paper's 0.2, for inputs between 0 and 1.
    """

    def __init__(self, n_features: int = 3000, scale: float = 0.2, seed: int = 0):
        self.n_features = n_features
        self.scale = scale
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the directions; only the number of columns of X matters."""
        if self.n_features < 1:
            raise ValueError(f"n_features={self.n_features} must be at least 1")
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        rng = np.random.default_rng(self.seed)
        self.directions_ = rng.normal(0, self.scale, (X.shape[1], self.n_features)).astype(X.dtype)
        return self

    def columns(self, X: Any) -> Columns:
        """The same features, computed when a node asks for its share and not before."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return CosineColumns(X, self.directions_)

    def transform(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return np.asarray(np.cos(X @ self.directions_))


class CosineColumns(Columns):
    """Cosine features of inputs that all nodes share: each node computes its own."""

    def __init__(self, X: Array, directions: Array):
        self.X, self.directions = X, directions
        self.shape = (len(X), directions.shape[1])
        self.dtype = X.dtype

    def read(self, columns: slice | Array) -> Array:
        return np.asarray(np.cos(self.X @ self.directions[:, columns]))
