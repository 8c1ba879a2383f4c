"""Streams on which double precision loses digits, against long double, with the model's ridge."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from .helpers.awkward import KINDS, NODES, STREAMS, all_rows, awkward, compared
from .helpers.long_double import needs_long_double, ridge_solution

EVERY = 10  # of the streams of `python -m benchmarks.awkward`, those learnt here
CHOSEN = [seed for seed in range(STREAMS) if (seed // len(KINDS)) % EVERY == 0]


@needs_long_double
@pytest.mark.parametrize("kind", range(len(KINDS)), ids=lambda kind: KINDS[kind])
def test_predictions_are_those_of_long_double(kind: int) -> None:
    own = [seed for seed in CHOSEN if seed % len(KINDS) == kind]
    assert len(own) == STREAMS // EVERY // len(KINDS)
    for seed in own:
        for n_nodes in NODES:
            apart = compared(awkward(seed), n_nodes)
            assert apart.distance <= apart.allowed, (seed, n_nodes)


def test_streams_are_what_they_are_called() -> None:
    """The trouble is in the rows, and each kind in a hundred streams or more."""
    streams = [awkward(seed) for seed in range(240)]
    assert all(sum(kind in stream.kinds for stream in streams) >= 20 for kind in KINDS)
    for stream in streams:
        X, Y, v = all_rows(stream)
        assert np.all(np.isfinite(X)) and np.all(np.isfinite(Y)) and len(X) == len(Y) == len(v)
        if stream.kinds == {"means"}:
            assert np.max(np.abs(X.mean(axis=0)) / X.std(axis=0)) > 10
        if stream.kinds == {"collinear"}:
            s = np.linalg.svd((X - X.mean(axis=0)) / X.std(axis=0), compute_uv=False)
            assert s[min(X.shape) - 1] < 1e-12 * s[0]


@needs_long_double
@pytest.mark.parametrize("intercept", [False, True])
def test_the_reference_is_scikit_learns(intercept: bool) -> None:
    """One ridge a column is Ridge on scaled columns; none at all is least squares."""
    rng = np.random.default_rng(0)
    X, v = rng.standard_normal((60, 7)) + 2, rng.uniform(0, 2, 60)
    Y = X @ rng.standard_normal((7, 2)) + 3
    ridge = 10.0 ** rng.uniform(-2, 2, (2, 7))
    W, b = ridge_solution(X, Y, ridge, v, intercept)
    for j in range(2):
        size = np.sqrt(ridge[j])
        theirs = Ridge(1.0, fit_intercept=intercept).fit(X / size, Y[:, j], v)
        np.testing.assert_allclose(W[j].astype(float), theirs.coef_ / size, rtol=1e-10)
        np.testing.assert_allclose(float(b[j]), theirs.intercept_, rtol=1e-10)
    W, b = ridge_solution(X, Y, np.zeros((2, 7)), v, intercept)
    least = LinearRegression(fit_intercept=intercept).fit(X, Y, v)
    np.testing.assert_allclose(W.astype(float), least.coef_, rtol=1e-10)


@needs_long_double
def test_the_reference_keeps_its_digits() -> None:
    """Means of 1e7 deviations and units of 1e+-40 change nothing, as they must not."""
    rng = np.random.default_rng(1)
    X = np.round(1024 * rng.standard_normal((50, 6)))  # moving whole numbers loses nothing
    X[:, 5] = X[:, 4]
    y, ridge = X @ np.ones(6) + rng.standard_normal(50), np.full(6, 50 * 1e-3)
    plain, _ = ridge_solution(X, y[:, None], ridge)
    units = 2.0 ** rng.integers(-130, 130, 6)
    moved, _ = ridge_solution((X + 2.0**33) * units, y[:, None], ridge * units**2)
    np.testing.assert_allclose((moved[0] * units).astype(float), plain[0].astype(float), 1e-9)
