"""The error of the offline solution, known without training: closed forms against plain draws."""

from __future__ import annotations

import numpy as np
import pytest

from conche.common.arrays import Array
from conche.theory import Similarity, best_damping, offline_error


def drawn(
    W: Array, ns: list[int], noise: Array, damping: float, trials: int, seed: int
) -> tuple[Array, Array]:
    """Mean and standard error of G_T after 1..T tasks: draw, solve, measure."""
    rng = np.random.default_rng(seed)
    p = W.shape[1]
    errors = np.empty((trials, len(ns)))
    for trial in range(trials):
        A = [rng.standard_normal((n, p)) for n in ns]
        y = [
            X @ w + s**0.5 * rng.standard_normal(len(X))
            for X, w, s in zip(A, W, noise, strict=True)
        ]
        for t in range(len(ns)):
            X, z = np.concatenate(A[: t + 1]), np.concatenate(y[: t + 1])
            if damping:
                w = np.linalg.solve(X.T @ X + damping * np.eye(p), X.T @ z)
            else:
                w = np.linalg.lstsq(X, z, rcond=None)[0]
            errors[trial, t] = np.mean(np.sum((w - W) ** 2, axis=1) + noise)
    return errors.mean(axis=0), errors.std(axis=0, ddof=1) / trials**0.5


def settings() -> list[tuple[int, list[int], int, int]]:
    """40 of them: fewer rows than columns and more, unequal tasks, p_S from 0 to p; away from
    |N - p| <= 4, where variances are infinite."""
    rng = np.random.default_rng(0)
    found: list[tuple[int, list[int], int, int]] = []
    while len(found) < 40:
        p, T = int(rng.integers(6, 25)), int(rng.integers(1, 5))
        ns = rng.integers(1, 40, T).tolist()
        if np.all(np.abs(np.cumsum(ns) - p) > 4):
            found.append((p, ns, int(rng.integers(0, p + 1)), len(found)))
    return found


@pytest.mark.parametrize(("p", "ns", "n_shared", "seed"), settings())
def test_least_squares_on_all_tasks(p: int, ns: list[int], n_shared: int, seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    W = rng.standard_normal((len(ns), p))
    W[:, :n_shared] = W[0, :n_shared]
    noise = rng.uniform(0, 1, len(ns))
    curve = offline_error(Similarity.from_weights(W, [p]), ns, noise)
    mean, stderr = drawn(W, ns, noise, 0.0, 300, seed)
    assert np.all(np.abs(curve - mean) <= 4 * stderr), (curve, mean, stderr)


@pytest.mark.parametrize("damping", [0.3, 3.0, 60.0])
@pytest.mark.parametrize("ns", [[40, 20, 30], [128, 128], [300, 100, 50, 30]])
def test_ridge_on_all_tasks(ns: list[int], damping: float) -> None:
    """Of order 1/p: within a percent and what the draws leave open."""
    rng = np.random.default_rng(3)
    W = rng.standard_normal((len(ns), 128)) / 128**0.5
    W[:, :80] = W[0, :80]
    noise = np.full(len(ns), 0.2)
    curve = offline_error(Similarity.from_weights(W, [64, 64]), ns, noise, damping)
    mean, stderr = drawn(W, ns, noise, damping, 25, 5)
    assert np.all(np.abs(curve - mean) <= 0.01 * mean + 4 * stderr), (curve / mean, stderr / mean)


def test_limits() -> None:
    one = Similarity.shared(3, [20, 20], 30)
    for n in (7, 50):
        plain, damped = (offline_error(one, n, 0.1, damping) for damping in (0.0, 1e-9))
        np.testing.assert_allclose(damped, plain, rtol=0.06)  # of order 1/p
        np.testing.assert_allclose(offline_error(one, n, 0.1, 1e12), 1.1, rtol=1e-6)
        np.testing.assert_array_equal(plain, offline_error(Similarity.shared(3, [40], 30), n, 0.1))
    alike = Similarity.shared(2, [30], 30)  # one truth: only noise is left, p / (N - p - 1) of it
    np.testing.assert_allclose(offline_error(alike, 50, 0.2)[-1], 0.2 * (1 + 30 / 69), rtol=1e-12)
    assert offline_error(alike, 50, 0.0)[-1] == pytest.approx(0.0, abs=1e-12)


def test_infinite_exactly_where_it_is() -> None:
    for p in (10, 11, 12, 13, 14):
        curve = offline_error(Similarity.shared(4, [p], p / 2), 3, 0.1)
        assert (np.isinf(curve) == (np.abs(np.arange(3, 13, 3) - p) <= 1)).all()
        assert np.all(np.isfinite(offline_error(Similarity.shared(4, [p], p / 2), 3, 0.1, 0.5)))


def test_a_trillion_columns_cost_nothing() -> None:
    """The same shape at two sizes: p, n_t and p_S in proportion."""
    for n in (0.25, 2.0):
        small, large = (
            offline_error(Similarity.shared(4, [p], 0.75 * p), round(n * p), 0.01, 0.1 * p)
            for p in (10**5, 10**12)
        )
        np.testing.assert_allclose(small, large, rtol=1e-4)


def test_the_papers_numbers() -> None:
    """Printed for Figs. 4(a) and 4(b), to two digits, from simulations."""
    for p, n, printed in (
        (1024, 2048, (0.02, 0.18, 0.22, 0.25, 0.25)),
        (1024, 32, (0.98, 0.97, 0.94, 0.90, 0.87)),
    ):
        for T, value in zip((1, 2, 4, 8, 16), printed, strict=True):
            error = offline_error(Similarity.shared(T, [p], 0.75 * p), n, 0.01)[-1]
            assert error == pytest.approx(value, abs=0.0125)


@pytest.mark.parametrize(("p", "n", "T", "n_shared"), [(128, 40, 4, 96), (128, 200, 3, 30)])
def test_the_best_damping_is_nearly_the_best_of_the_draws(
    p: int, n: int, T: int, n_shared: int
) -> None:
    """Its simulated error is within 2 % of the least on a grid."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((T, p)) / p**0.5
    W[:, :n_shared] = W[0, :n_shared]
    noise, ns = np.full(T, 0.2), [n] * T
    best = best_damping(Similarity.from_weights(W, [p]), n, 0.2)
    grid = [drawn(W, ns, noise, best * factor, 12, 1)[0][-1] for factor in (0.1, 0.3, 1, 3, 10)]
    assert grid[2] <= 1.02 * min(grid) and grid[2] < min(grid[0], grid[-1])
