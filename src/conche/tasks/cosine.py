"""Random cosine features, as in the paper's Section IV-F."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..common.arrays import Array
from ..common.checks import real, whole
from .columns import Columns


class CosineFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    """x -> [cos(zeta_1 . x), ..., cos(zeta_p . x)] with zeta_l ~ N(0, scale^2 I).

    Parameters
    ----------
    n_features : how many features to make, the paper's p.
    scale : standard deviation of the directions; the default is the paper's, for inputs between 0
        and 1.
    seed : the same seed draws the same directions.

    >>> import numpy as np
    >>> CosineFeatures(500).fit_transform(np.zeros((2, 64))).shape
    (2, 500)
    """

    def __init__(self, n_features: int = 3000, scale: float = 0.2, seed: int = 0):
        self.n_features = n_features
        self.scale = scale
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the directions; only the number of columns of X matters."""
        n_features, scale = whole("n_features", self.n_features), real("scale", self.scale)
        rng = np.random.default_rng(whole("seed", self.seed, 0))
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        self.directions_ = rng.normal(0, scale, (X.shape[1], n_features)).astype(X.dtype)
        return self

    def columns(self, X: Any) -> Columns:
        """The features of X, computed when a node asks for its share and not before."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return CosineColumns(X, self.directions_)

    def transform(self, X: Any) -> Array:
        """The features of X: n_samples x ``n_features``."""
        return self.columns(X).read()


class CosineColumns(Columns):
    """Cosine features of inputs that all nodes share: each node computes its own."""

    def __init__(self, X: Array, directions: Array):
        self.X, self.directions = X, directions
        self.dtype = X.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.X), self.directions.shape[1]

    def select(self, which: slice | Array) -> CosineColumns:
        return CosineColumns(self.X, self.directions[:, which])

    def read(self) -> Array:
        return np.asarray(np.cos(self.X @ self.directions))
