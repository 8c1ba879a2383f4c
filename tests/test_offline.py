"""The offline solution against slow references: lstsq, long double, scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

import conche
from conche import Task, offline
from conche.common.arrays import Array


def cut(X: Array, y: Array, n_tasks: int = 8, **options: Any) -> list[Task]:
    parts = np.array_split(np.arange(len(y)), min(n_tasks, len(y)))
    return [Task(X[i], y[i], **{name: value[i] for name, value in options.items()}) for i in parts]


def centred(X: Array) -> Array:
    return np.where(X.min(axis=0) < X.max(axis=0), X - X.mean(axis=0), 0.0)


def ordinary(seed: int) -> tuple[Array, Array]:
    """Numbers beside what tables have: shares that add up to one, counts and their sum, a
    column given twice, a full set of indicators, a constant. Few rows, fewer than columns, many."""
    rng = np.random.default_rng(seed)
    n, p, most = [(20, 30, 3), (60, 8, 3), (400, 20, 3), (20_000, 1, 1), (20_000, 0, 1)][seed % 5]
    X, counts = rng.standard_normal((n, p)), rng.integers(0, 50, (n, 2)).astype(float)
    extra = [
        rng.dirichlet(np.ones(3), n),
        np.hstack([counts, counts.sum(axis=1, keepdims=True)]),
        np.repeat(rng.standard_normal((n, 1)), 2, axis=1),
        np.eye(4)[rng.integers(0, 4, n)],
        np.full((n, 1), rng.uniform(0.1, 5)),
    ]
    some = rng.permutation(5)[: rng.integers(1, most + 1)]
    X = np.hstack([X, *(extra[i] for i in some)])
    y = X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(n)
    return X * 10.0 ** (rng.uniform(-3, 3, X.shape[1]) * (seed % 2)), y  # half of them in one unit


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_ordinary_tables(fit_intercept: bool) -> None:
    wrong = []
    for seed in range(200):
        X, y = ordinary(seed)
        A, b = (centred(X), y - y.mean()) if fit_intercept else (X, y)
        expected = np.linalg.pinv(A, rcond=1e-12) @ b
        found = conche.offline_solution(cut(X, y), fit_intercept=fit_intercept)
        if not np.linalg.norm(found - expected) <= 1e-7 * np.linalg.norm(expected):
            wrong.append(seed)
    assert wrong == []


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("shape", [(60, 12), (15, 40)])
@pytest.mark.parametrize("way", ["as it is", "triangle", "iteration"])
def test_every_way_finds_the_same(
    way: str, shape: tuple[int, int], thin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Least squares and ridge of any kind, weighted, with an intercept and without."""
    if way == "triangle":
        for quick in ("_by_gram", "_by_kernel"):
            monkeypatch.setattr(offline, quick, lambda *_: None)
    if way == "iteration":
        monkeypatch.setattr(offline, "LARGEST_GRAM", 0)
        monkeypatch.setattr(offline, "MADE_DENSE", 0)
        if not thin:
            monkeypatch.setattr(offline, "_by_triangle", lambda *_: None)
    rng = np.random.default_rng(0)
    n, p = shape
    X = rng.standard_normal(shape) * (rng.random(shape) < 0.5) + (0.0 if thin else 1.0)
    X[:, 3], X[:, 5] = X[:, 2], 0.0
    Y, v = rng.standard_normal((n, 2)), rng.integers(0, 4, n).astype(float)
    some, each = (
        np.where(np.arange(p) < 4, 0.0, rng.uniform(0.1, 3, p)),
        rng.uniform(0.1, 3, (2, p)),
    )
    closed = each.copy()
    closed[0, 1], closed[1] = np.inf, np.inf
    tasks = cut(sparse.csr_array(X) if thin else X, Y, sample_weight=v)
    for ridge in (0.0, 2.0, each[0], some, each, closed):
        penalties = np.broadcast_to(ridge, (2, p))
        for fit_intercept in (False, True):
            found = conche.offline_solution(tasks, ridge, fit_intercept)
            assert found.shape == (2, p)
            expected = [
                reference(X, y, r, v, fit_intercept) for y, r in zip(Y.T, penalties, strict=True)
            ]
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def reference(X: Array, y: Array, r: Array, v: Array, fit_intercept: bool) -> Array:
    """lstsq of the augmented rows, which is of minimum norm."""
    if fit_intercept:
        X, y = X - v @ X / v.sum(), y - v @ y / v.sum()
    finite = np.isfinite(r)
    rows = np.sqrt(v)[:, None] * X[:, finite]
    A = np.vstack([rows, np.diag(np.sqrt(r[finite]))])
    w = np.zeros(len(r))
    b = np.concatenate([np.sqrt(v) * y, np.zeros(finite.sum())])
    w[finite] = np.linalg.lstsq(A, b, rcond=1e-12)[0]
    return w


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("shape", [(200, 30), (30, 200)])
def test_ridge_with_an_intercept_is_that_of_scikit_learn(
    alpha: float, shape: tuple[int, int]
) -> None:
    rng = np.random.default_rng(1)
    X, v = rng.standard_normal(shape) + 5.0, rng.uniform(0.1, 3.0, shape[0])
    y = X[:, :3].sum(axis=1) + rng.standard_normal(len(X))
    plain = Ridge(alpha=alpha).fit(X, y).coef_
    found = conche.offline_solution(cut(X, y), ridge=alpha, fit_intercept=True)
    np.testing.assert_allclose(found, plain, rtol=0, atol=1e-9)
    weighted = Ridge(alpha=alpha).fit(X, y, sample_weight=v).coef_
    tasks = cut(X, y, sample_weight=v)
    found = conche.offline_solution(tasks, ridge=alpha, fit_intercept=True)
    np.testing.assert_allclose(found, weighted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n", [200, 12])
def test_no_unit_hides_a_column(n: int) -> None:
    """Units from 1e-6 to 1e6. Columns that are sums of others leave null vectors; the shortest
    solution is orthogonal to them, and fits as well as lstsq does on columns of one unit."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        base, unit = rng.standard_normal((n, 6)), 10.0 ** rng.uniform(-6, 6, 8)
        mix = np.hstack([np.eye(6), [[1, 0], [0, 1], [0, 1], [0, 0], [0, 0], [0, 0]]])
        X, y = base @ mix * unit, base.sum(axis=1) + rng.standard_normal(n)
        null = np.array([[1, 0, 0, 0, 0, 0, -1, 0], [0, 1, 1, 0, 0, 0, 0, -1]]) / unit
        null = np.linalg.qr(null.T)[0].T
        for fit_intercept in (False, True):
            w = conche.offline_solution(cut(X, y), fit_intercept=fit_intercept)
            A, b = (centred(X), y - y.mean()) if fit_intercept else (X, y)
            fitted = A / unit @ np.linalg.lstsq(A / unit, b, rcond=1e-12)[0]
            assert np.linalg.norm(A @ w - fitted) <= 1e-10 * np.linalg.norm(b)
            share = np.sum((null @ w) ** 2) / np.sum(w**2)  # of |w|^2 above the least
            assert share <= 1e-12


@pytest.mark.parametrize("shape", [(300, 8), (8, 30)])
def test_ridge_in_long_double(shape: tuple[int, int]) -> None:
    """Columns in units from 1e-6 to 1e6, nearly collinear, each with a ridge in its own unit."""
    rng = np.random.default_rng(3)
    for share in (1e-7, 1e-3, 1.0):
        X = rng.standard_normal(shape)
        X[:, 1] = X[:, 0] + 1e-9 * X[:, 1]
        unit = 10.0 ** rng.uniform(-6, 6, shape[1])
        X, y = X * unit, X.sum(axis=1) + rng.standard_normal(len(X))
        r = share * unit**2
        expected = long_double(X, y, r)
        found = conche.offline_solution(cut(X, y), ridge=r)
        gap = np.linalg.norm(X @ (found - expected)) / np.linalg.norm(y)
        assert gap <= 1e-12
        np.testing.assert_allclose(found * unit, expected * unit, rtol=0, atol=1e-11 / share)


def long_double(X: Array, y: Array, r: Array) -> Array:
    """QR by Gram-Schmidt, twice, of the augmented rows."""
    p = len(r)
    A = np.vstack([X, np.diag(np.sqrt(r))]).astype(np.longdouble)
    b = np.append(y, np.zeros(p)).astype(np.longdouble)
    Q, R = A.copy(), np.zeros((p, p), np.longdouble)
    for j in range(p):
        for _ in range(2):
            share = Q[:, :j].T @ Q[:, j]
            Q[:, j] -= Q[:, :j] @ share
            R[:j, j] += share
        R[j, j] = np.sqrt(Q[:, j] @ Q[:, j])
        Q[:, j] /= R[j, j]
    w = Q.T @ b
    for j in reversed(range(p)):
        w[j] = (w[j] - R[j, j + 1 :] @ w[j + 1 :]) / R[j, j]
    return np.asarray(w, dtype=float)


def test_of_small_numbers_and_large_ones() -> None:
    """No square overflows or vanishes."""
    rng = np.random.default_rng(4)
    X, w = rng.standard_normal((30, 3)), np.array([1.0, 2.0, 3.0])
    unit = np.array([1e-160, 1.0, 1e160])
    for scale in (1e-140, 1e140):
        found = conche.offline_solution(cut(X * unit, (X @ w) * scale), fit_intercept=True)
        np.testing.assert_allclose(found * unit, w * scale, rtol=1e-12)


@pytest.mark.parametrize(
    ("ridge", "said"),
    [
        (-1.0, r"^ridge=-1 must be at least 0, or infinite for a weight of zero$"),
        (np.nan, r"^ridge=nan must be at least 0"),
        ([1.0, -2.0, 0.0], r"^ridge=-2 must be at least 0"),
        ([1.0, 2.0], r"^ridge=shape \(2,\) must be a number, or numbers of shape \(3,\)"),
        (np.ones((3, 2)), r"^ridge=shape \(3, 2\) must .* shape \(3,\) or \(2, 3\)$"),
        ("auto", r"^ridge='auto' must be a number"),
        (None, r"^ridge=None must be a number"),
        (True, r"^ridge=True must be a number"),
    ],
)
def test_a_ridge_that_is_none(ridge: Any, said: str) -> None:
    with pytest.raises(conche.ParameterError, match=said):
        conche.offline_solution([Task(np.eye(3), np.ones((3, 2)))], ridge=ridge)


def test_other_arguments_that_do_not_fit() -> None:
    X, y = np.eye(3), np.ones(3)
    yes: Any = "yes"
    with pytest.raises(conche.ParameterError, match="fit_intercept='yes' must be True or False"):
        conche.offline_solution([Task(X, y)], fit_intercept=yes)
    for v in (np.ones(2), -y, y * np.nan):
        with pytest.raises(conche.DataError, match="task May: sample_weight must be one number"):
            conche.offline_solution([Task(X, y, name="May", sample_weight=v)])
    with pytest.raises(conche.DataError, match="no rows of a weight above 0"):
        conche.offline_solution([Task(X, y, sample_weight=np.zeros(3))])
