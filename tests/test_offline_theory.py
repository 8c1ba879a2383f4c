"""The error of the offline solution, known without training: closed forms against plain draws."""

from __future__ import annotations

import numpy as np
import pytest

from conche.common.arrays import Array
from conche.theory import (
    Similarity,
    best_damping,
    best_discount,
    offline_error,
    tracking_error,
)


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
@pytest.mark.parametrize(
    ("p", "ns"),
    [
        (128, [40, 20, 30]),
        (128, [128, 128]),
        (128, [300, 100, 50, 30]),
        (128, [130]),
        (160, [16] * 6),
        (192, [96, 96, 10]),
        (200, [30, 400]),
        (256, [64, 64]),
        (256, [256]),
        (300, [150, 40, 60]),
    ],
)
def test_ridge_on_all_tasks(p: int, ns: list[int], damping: float) -> None:
    """30 settings. Of order 1/p: within a percent and what the draws leave open."""
    rng = np.random.default_rng(3)
    W = rng.standard_normal((len(ns), p)) / p**0.5
    W[:, : p * 5 // 8] = W[0, : p * 5 // 8]
    noise = rng.uniform(0.1, 0.3, len(ns))
    curve = offline_error(Similarity.from_weights(W, [p - 64, 64]), ns, noise, damping)
    mean, stderr = drawn(W, ns, noise, damping, 12, 5)
    assert np.all(np.abs(curve - mean) <= 0.01 * mean + 4 * stderr), (curve / mean, stderr / mean)


def tracked(
    W: Array, ns: list[int], noise: Array, discount: float, damping: float, trials: int
) -> tuple[Array, Array]:
    """The error on every task right after it was learnt: draw, solve, measure."""
    rng = np.random.default_rng(0)
    p = W.shape[1]
    errors = np.empty((trials, len(ns)))
    for trial in range(trials):
        H, b = np.zeros((p, p)), np.zeros(p)
        for t, n in enumerate(ns):
            A = rng.standard_normal((n, p))
            y = A @ W[t] + noise[t] ** 0.5 * rng.standard_normal(n)
            H, b = discount * H + A.T @ A, discount * b + A.T @ y
            w = np.linalg.solve(H + damping * np.eye(p), b)
            errors[trial, t] = np.sum((w - W[t]) ** 2) + noise[t]
    return errors.mean(axis=0), errors.std(axis=0, ddof=1) / trials**0.5


@pytest.mark.parametrize(
    ("ns", "discount", "damping", "step"),
    [
        ([64] * 6, 0.7, 5.0, 0.2),
        ([200] * 5, 0.5, 1.0, 0.1),
        ([30, 100, 300, 10, 50], 0.9, 20.0, 0.0),
        ([40] * 8, 1.0, 3.0, 0.3),
        ([40] * 4, 0.0, 3.0, 0.3),
        ([150, 20, 150], 0.3, 0.2, 1.0),
    ],
)
def test_the_tracking_error(ns: list[int], discount: float, damping: float, step: float) -> None:
    """Unknowns that walk, partly anew in every task; p = 160."""
    rng = np.random.default_rng(1)
    T, p = len(ns), 160
    W = np.cumsum(rng.standard_normal((T, p)) * (step / p) ** 0.5, axis=0)
    W += rng.standard_normal(p) / p**0.5
    W[:, 120:] = rng.standard_normal((T, 40)) / p**0.5
    noise = rng.uniform(0.1, 0.5, T)
    curve = tracking_error(Similarity.from_weights(W, [p]), ns, noise, discount, damping)
    mean, stderr = tracked(W, ns, noise, discount, damping, 40)
    assert np.all(np.abs(curve - mean) <= 0.01 * mean + 4 * stderr), (curve / mean, stderr / mean)


def test_without_a_discount_tracking_is_the_offline_ridge() -> None:
    """On the last task; and one task alone is both."""
    one = Similarity.shared(1, [300], 200)
    for damping in (0.5, 30.0):
        np.testing.assert_allclose(
            tracking_error(one, 200, 0.1, 0.3, damping),
            offline_error(one, 200, 0.1, damping),
            rtol=0.01,
        )


def test_a_walk_and_its_discount() -> None:
    """Similarity of a random walk, in the mean; the best discount is the best of a drawn grid."""
    walk = Similarity.shared(5, [30, 50], 80, energy=2.0, drift=0.3)
    t = np.arange(5)
    np.testing.assert_allclose(walk.products(), 2.0 + 0.3 * np.minimum(t[:, None], t))
    g = Similarity.from_weights(np.linalg.cholesky(walk.products()), [5])
    np.testing.assert_allclose(walk.products(), g.products())
    wide = np.zeros((5, 80))
    wide[:, :5] = np.linalg.cholesky(walk.products())
    np.testing.assert_allclose(
        offline_error(walk, 40, 0.1, 2.0),
        offline_error(Similarity.from_weights(wide, [80]), 40, 0.1, 2.0),
    )
    rng = np.random.default_rng(2)
    T, p, n = 12, 128, 100
    W = np.cumsum(rng.standard_normal((T, p)) * (0.1 / p) ** 0.5, axis=0) + 1 / p**0.5
    similarity = Similarity.shared(T, [p], p, energy=1.0, drift=0.1)
    best = best_discount(similarity, n, 0.1, 4.0)
    assert 0.2 < best < 0.8
    noise = np.full(T, 0.1)
    errors = [tracked(W, [n] * T, noise, each, 4.0, 10)[0][-1] for each in (best, 0.3 * best, 1.0)]
    assert errors[0] == min(errors)
    assert best_discount(Similarity.shared(T, [p], p), n, 0.1, 4.0) == 1.0


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


@pytest.mark.parametrize(
    ("p", "n", "T", "n_shared"), [(128, 40, 4, 96), (128, 200, 3, 30), (192, 96, 2, 192)]
)
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
