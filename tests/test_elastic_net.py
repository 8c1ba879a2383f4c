"""Elastic nets: scikit-learn's objective, with certificates, over nodes and tasks."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import ElasticNet as Theirs
from sklearn.linear_model import LogisticRegression

import conche
from conche import CoCoAClassifier, CoCoARegressor, ElasticNet
from conche.common.arrays import Array

from .helpers.engine_battery import ray_there


def objective(X: Any, y: Array, w: Array, alpha: float, rho: float) -> float:
    r = y - X @ w
    penalty = rho * np.abs(w).sum() + 0.5 * (1 - rho) * w @ w
    return float(0.5 * r @ r / len(y) + alpha * penalty)


def problem(kind: str, seed: int = 0) -> tuple[Any, Array]:
    rng = np.random.default_rng(seed)
    n, p = {"tall": (150, 60), "correlated": (80, 64)}.get(kind, (100, 300))
    X: Any = rng.standard_normal((n, p))
    if kind == "sparse":
        X = sparse.random(n, p, 0.05, format="csr", random_state=seed, data_rvs=rng.standard_normal)
    if kind == "correlated":
        X = X + rng.standard_normal((n, 1))
    w = np.where(np.arange(p) < 10, rng.standard_normal(p), 0.0)
    return X, X @ w + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize(
    ("kind", "steps", "K", "alpha", "rho"),
    [
        *product(("tall", "wide", "sparse"), ("safe", "adaptive"), (1, 8), (0.1,), (0.5,)),
        *product(("tall", "wide", "sparse"), ("adaptive",), (1, 8), (0.02,), (1.0,)),
        ("correlated", "adaptive", 8, 0.1, 0.5),
    ],
)
def test_scikit_learns_objective(kind: str, steps: Any, K: int, alpha: float, rho: float) -> None:
    X, y = problem(kind)
    theirs = Theirs(alpha=alpha, l1_ratio=rho, fit_intercept=False, tol=1e-13, max_iter=10**6)
    best = objective(X, y, theirs.fit(X, y).coef_, alpha, rho)
    model = CoCoARegressor(
        n_nodes=K, n_rounds=1500, solver=ElasticNet(alpha, rho), steps=steps, tol=1e-6
    ).partial_fit(X, y)
    ours = objective(X, y, model.coef_, alpha, rho)
    assert -1e-12 <= ours - best <= 1e-6 * best
    assert ours - best <= model.history_[-1]["bound"]  # certified
    assert np.mean(model.coef_ == 0) > 0.3


def test_the_bound_holds_in_every_round_and_the_objective_never_grows() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = problem(["tall", "wide", "sparse", "correlated"][seed % 4], seed)
        alpha, rho = 10 ** rng.uniform(-2, 0), rng.uniform(0.1, 1)
        theirs = Theirs(alpha=alpha, l1_ratio=rho, fit_intercept=False, tol=1e-12)
        theirs.set_params(max_iter=10**6)
        best = objective(X, y, theirs.fit(X, y).coef_, alpha, rho)
        last = np.inf
        for rounds in (1, 2, 4, 8):
            model = CoCoARegressor(
                n_nodes=5,
                n_rounds=rounds,
                solver=ElasticNet(alpha, rho),
                steps="adaptive" if seed % 2 else "safe",
            ).partial_fit(X, y)
            now = objective(X, y, model.coef_, alpha, rho)
            bound = model.history_[-1]["bound"]
            assert bound >= 0 and now - best <= bound + 1e-12 and now <= last * (1 + 1e-12)
            last = now


@pytest.mark.parametrize("K", [1, 3])
def test_logistic_loss_with_an_l1_penalty(K: int) -> None:
    X, y = problem("tall")
    labels = np.where(y > 0, 1, -1)
    alpha, n = 0.02, len(y)
    model = CoCoAClassifier(
        n_nodes=K,
        n_rounds=3000,
        loss="logistic",
        solver=ElasticNet(alpha, l1_ratio=1.0),
        steps="adaptive",
        tol=1e-7,
    ).partial_fit(X, labels)
    theirs = LogisticRegression(
        l1_ratio=1.0,
        C=1 / (n * alpha),
        solver="saga",
        fit_intercept=False,
        tol=1e-10,
        max_iter=10**5,
    ).fit(X, labels)

    def value(w: Array) -> float:
        return float(np.mean(np.logaddexp(0, -labels * (X @ w))) + alpha * np.abs(w).sum())

    ours, best = value(model.coef_[0]), value(theirs.coef_[0])
    assert abs(ours - best) <= 1e-6 * best and ours - best <= model.history_[-1]["bound"]


@pytest.mark.parametrize("kind", ["tall", "sparse", "far from zero"])
@pytest.mark.parametrize("K", [1, 4])
def test_the_intercept_is_not_penalised(kind: str, K: int) -> None:
    X, y = problem("tall" if kind == "far from zero" else kind)
    y = y + 5.0
    if kind == "far from zero":
        X = X + (5.0 if K == 1 else 0.5)
    theirs = Theirs(alpha=0.05, l1_ratio=0.7, tol=1e-12, max_iter=10**6).fit(X, y)
    model = CoCoARegressor(
        n_nodes=K,
        n_rounds=800,
        solver=ElasticNet(0.05, l1_ratio=0.7),
        fit_intercept=True,
        steps="adaptive",
    ).partial_fit(X, y)
    assert model.intercept_ == pytest.approx(theirs.intercept_, rel=1e-4)
    ours, best = (objective(X, y - m.intercept_, m.coef_, 0.05, 0.7) for m in (model, theirs))
    bound = model.history_[-1]["bound"]
    assert -1e-12 <= ours - best <= min(1e-6 * best, bound) and bound <= 1e-3 * best


def test_only_the_intercept_is_free() -> None:
    """A column that happens to be constant in a task is penalised as any other."""
    X, y = problem("tall")
    X[:, 3] = 1.0
    for rows in (slice(None), slice(0, 1)):
        theirs = Theirs(alpha=1.0, fit_intercept=False, tol=1e-12, max_iter=10**5)
        model = CoCoARegressor(solver=ElasticNet(1.0)).partial_fit(X[rows], y[rows])
        assert model.coef_ == pytest.approx(theirs.fit(X[rows], y[rows]).coef_, abs=1e-8)


def test_indices_of_any_width() -> None:
    X, y = problem("sparse")
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    models = [CoCoARegressor(n_nodes=2, solver=ElasticNet(0.1)) for _ in range(2)]
    assert np.array_equal(models[0].fit(X, y).coef_, models[1].fit(wide, y).coef_)


def test_tasks_are_warm_started() -> None:
    """The same task again takes few rounds; a similar one fewer than from nothing."""
    X, y = problem("wide")
    options: dict[str, Any] = dict(
        n_nodes=4, n_rounds=500, solver=ElasticNet(0.05), tol=1e-4, steps="adaptive"
    )
    model = CoCoARegressor(**options).partial_fit(X, y)
    first = len(model.history_)
    model.partial_fit(X, y)
    assert len(model.history_) - first < first / 2
    cold = CoCoARegressor(**options).partial_fit(X, y + 0.01)
    before = len(model.history_)
    model.partial_fit(X, y + 0.01)
    assert len(model.history_) - before < len(cold.history_)


def test_saving_two_outputs_and_single_precision(tmp_path: Path) -> None:
    X, y = problem("tall")
    Y = np.column_stack([y, -(y**2)])
    model = CoCoARegressor(n_nodes=2, n_rounds=50, solver=ElasticNet(0.1)).partial_fit(X, Y)
    for j in range(2):
        single = CoCoARegressor(n_nodes=2, n_rounds=50, solver=ElasticNet(0.1))
        assert single.partial_fit(X, Y[:, j]).coef_ == pytest.approx(model.coef_[j], abs=1e-9)
    conche.save(model, tmp_path / "m")
    again = conche.load(tmp_path / "m")
    for one in (model, again):
        one.partial_fit(X, -Y)
    assert np.array_equal(model.coef_, again.coef_)
    small = CoCoARegressor(n_nodes=2, n_rounds=50, solver=ElasticNet(0.1))
    small.partial_fit(X.astype(np.float32), Y.astype(np.float32))
    assert small.coef_.dtype == np.float32


@ray_there
def test_on_ray(network: Any) -> None:
    X, y = problem("wide")
    models = [
        CoCoARegressor(n_nodes=2, n_rounds=20, solver=ElasticNet(0.1), network=n)
        for n in ("local", network)
    ]
    for model in models:
        model.partial_fit(X, y)
    assert models[0].coef_ == pytest.approx(models[1].coef_, abs=1e-12)


AUTO: Any = "auto"  # is for Damped and Memory


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(solver="elastic-net"), r"needs its alpha: give conche.ElasticNet\(alpha="),
        (dict(solver=ElasticNet(0.0)), "alpha=0.0 must be a number above 0"),
        (dict(solver=ElasticNet(1e308)), "alpha=1e\\+308 must be"),
        (dict(solver=ElasticNet(AUTO)), "alpha='auto' must be a number"),
        (dict(solver=ElasticNet(0.1, 0.0)), "l1_ratio=0.0 must be a number of at least 1e-06"),
        (dict(solver=ElasticNet(0.1, 2)), "l1_ratio=2 must be .* and at most 1"),
        (dict(solver=ElasticNet(0.1), steps="cg"), "whose proposals are not linear"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    X, y = problem("tall")
    with pytest.raises(conche.ParameterError, match=said) as error:
        CoCoARegressor(**options).fit(X, y)
    assert "\n" not in str(error.value)
