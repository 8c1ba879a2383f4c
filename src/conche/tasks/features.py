"""Random features: a frozen layer that turns inputs into columns a linear model can learn from.

All nodes share the inputs, and each computes its own columns and no others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..common.arrays import Array, is_here, positive, space
from ..common.checks import real, whole
from .columns import Columns
from .masks import unmasked

PAIRS = 1000  # of samples that show how far samples are apart


class RandomColumns(Columns):
    """Features of inputs that all nodes share: each node computes its own."""

    computed = True

    def __init__(self, X: Array, directions: Array, offsets: Array, shape_of: str):
        self.X, self.directions, self.offsets, self.shape_of = X, directions, offsets, shape_of
        self.dtype = X.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.X), self.directions.shape[1]

    def select(self, which: slice | Array) -> RandomColumns:
        some = self.directions[:, which], self.offsets[which]
        return RandomColumns(self.X, *some, self.shape_of)

    def first(self, n: int) -> RandomColumns:
        """Of the first n inputs."""
        return RandomColumns(self.X[:n], self.directions, self.offsets, self.shape_of)

    def read(self) -> Array:
        return self.read_on(lambda array: array)

    def read_on(self, put: Callable[[Array], Array]) -> Array:
        ready = put(self.X) @ put(self.directions)
        ready += put(self.offsets)
        return SHAPES[self.shape_of](ready)

    def sendable(self) -> RandomColumns | None:
        """Inputs and directions, where they are less than the features themselves."""
        n, p = self.shape
        return self if self.X.shape[1] * (n + p) < n * p else None


class RandomFeatures(TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]  # no types there
    """x -> f(zeta_l . x + b_l), l = 1 .. p, with directions zeta and offsets b drawn once."""

    shape_of: ClassVar[str]

    def __init__(self, n_features: int = 3000, scale: float | None = None, seed: int = 0):
        self.n_features = n_features
        self.scale = scale
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw directions and offsets; of X the number of columns matters and, where no scale is
        given, how far its samples are apart."""
        n_features, seed = whole("n_features", self.n_features), whole("seed", self.seed, 0)
        if self.scale is not None:
            real("scale", self.scale)
        X = validate_data(self, unmasked(X, "X"), dtype=[np.float64, np.float32])
        directions, offsets = self._draw(np.random.default_rng(seed), X, n_features)
        self.directions_, self.offsets_ = directions.astype(X.dtype), offsets.astype(X.dtype)
        return self

    @abstractmethod
    def _draw(self, rng: np.random.Generator, X: Array, n_features: int) -> tuple[Array, Array]:
        """Directions, one per column, and offsets."""

    def columns(self, X: Any) -> Columns:
        """The features of X, computed when a node asks for its share and not before."""
        check_is_fitted(self)
        X = validate_data(self, unmasked(X, "X"), reset=False, dtype=[np.float64, np.float32])
        return RandomColumns(X, self.directions_, self.offsets_, self.shape_of)

    def transform(self, X: Any) -> Array:
        """The features of X: n_samples x ``n_features``."""
        return self.columns(X).read()


class CosineFeatures(RandomFeatures):
    """x -> [cos(zeta_1 . x), ..., cos(zeta_p . x)] with zeta_l ~ N(0, scale^2 I), as in the paper's
    Section IV-F.

    Parameters
    ----------
    n_features : how many features to make, the paper's p.
    scale : standard deviation of the directions; the paper has 0.2 for pixels between 0 and 1.
        None chooses 1 over the median distance between two samples of the first task, and adds
        phases, cos(zeta_l . x + b_l) with b_l uniform, so that x and -x are told apart.
    seed : the same seed draws the same directions.

    Examples
    --------
    >>> import numpy as np
    >>> CosineFeatures(500).fit_transform(np.eye(2, 64)).shape
    (2, 500)
    """

    shape_of = "cosine"

    def _draw(self, rng: np.random.Generator, X: Array, n_features: int) -> tuple[Array, Array]:
        size = (X.shape[1], n_features)
        if self.scale is not None:
            return rng.normal(0, self.scale, size), np.zeros(n_features)
        scale = 1 / typical_distance(X)
        return rng.normal(0, scale, size), rng.uniform(0, 2 * np.pi, n_features)


class ReLUFeatures(RandomFeatures):
    """x -> [max(0, zeta_l . (x - m) + b_l)] with zeta_l ~ N(0, scale^2 I), b_l ~ N(0, 1) and m the
    mean of the first task: the first layer of a network, drawn and frozen.

    Parameters
    ----------
    n_features : how many features to make.
    scale : standard deviation of the directions. None chooses it so that zeta_l . (x - m) varies
        by about two over the samples of the first task.
    seed : the same seed draws the same directions.

    Examples
    --------
    >>> import numpy as np
    >>> ReLUFeatures(500).fit_transform(np.eye(2, 64)).min()
    np.float64(0.0)
    """

    shape_of = "relu"

    def _draw(self, rng: np.random.Generator, X: Array, n_features: int) -> tuple[Array, Array]:
        scale = 8**0.5 / typical_distance(X) if self.scale is None else self.scale
        directions = rng.normal(0, scale, (X.shape[1], n_features))
        return directions, rng.standard_normal(n_features) - X.mean(axis=0) @ directions


def typical_distance(X: Array) -> float:
    """The median distance between two samples, of a thousand pairs; 1 where all are the same."""
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, len(X), (2, PAIRS))
    apart = np.linalg.norm(X[one].astype(float) - X[other], axis=1)[one != other]
    apart = apart[apart > 0]
    return float(np.median(apart)) if len(apart) else 1.0


def _rectified(v: Array) -> Array:
    return np.maximum(v, 0, out=v) if is_here(v) else positive(v)


def _cosine(v: Array) -> Array:
    return np.cos(v, out=v) if is_here(v) else space(v).cos(v)


SHAPES: dict[str, Callable[[Array], Array]] = {"cosine": _cosine, "relu": _rectified}
