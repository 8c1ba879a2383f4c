"""The certificate: never below the true distance from the optimum, never negative, and of use."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import conche
from conche import ElasticNet, Memory
from conche.common.arrays import Array
from conche.rounds.losses import Loss, get_loss

from .helpers.models import rounds_of


def optimum(A: Array, y: Array, loss: Loss, P: Array, v0: Array) -> float:
    """min over d of loss(v0 + A d) + d.Pd / 2, by the book."""
    if loss.quadratic:
        M, b = A.T @ A + P, A.T @ (y - v0)
        d = np.linalg.lstsq(M, b, rcond=None)[0]
        return float(loss.value((v0 + A @ d)[:, None], y[:, None])[0] + 0.5 * d @ P @ d)

    def value(d: Array) -> float:
        return float(loss.value((v0 + A @ d)[:, None], y[:, None])[0] + 0.5 * d @ P @ d)

    def slope(d: Array) -> Array:
        descent = loss.descent((v0 + A @ d)[:, None], y[:, None])[:, 0]
        return np.asarray(-A.T @ descent + P @ d)

    options = {"maxiter": 3000, "gtol": 1e-9}
    found = minimize(value, np.zeros(A.shape[1]), jac=slope, method="BFGS", options=options)
    return float(found.fun)


def penalty_of(model: Any, p: int) -> Array:
    """P of the coming task, from what the nodes remember; theirs is block by block."""
    P = np.zeros((p, p))
    for columns, state in zip(model.partition_, model.node_states(), strict=True):
        size = np.sqrt(state.kept["ridge"])
        block = np.eye(len(size)) + state.kept["remainder"]  # in units of the ridge
        P[np.ix_(columns, columns)] = block * np.outer(size, size)
    return P


def case(rng: np.random.Generator) -> tuple[int, bool, dict[str, Any], Array, Array]:
    """A model and data at random: solver, loss, shape, nodes, rounds, first or second task."""
    n, p = int(rng.integers(5, 30)), int(rng.integers(2, 20))
    K = int(rng.integers(1, min(4, p) + 1))
    solver = rng.choice(["exact", "damped", "memory"])
    logistic = bool(rng.random() < 0.4)
    options: dict[str, Any] = dict(
        n_nodes=K,
        n_rounds=int(rng.integers(1, 8)),
        solver=str(solver),
        steps=str(rng.choice(["safe", "adaptive"])),
    )
    if rng.random() < 0.4:
        options["steps"] = "cg"
    if solver == "memory":
        options["solver"] = Memory(rank=0, ridge=float(10 ** rng.uniform(-3, 1)))
    X = rng.standard_normal((2 * n, p)) * 10 ** rng.uniform(-1, 1)
    if rng.random() < 0.3:
        X += 3 * rng.standard_normal((2 * n, 1))  # correlated
    y = X @ rng.standard_normal(p) / np.sqrt(p) + rng.standard_normal(2 * n)
    return n, logistic, options, X, y


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_holds_in_a_thousand_random_cases(seed: int) -> None:
    rng = np.random.default_rng([20, seed])
    for _ in range(100):
        n, logistic, options, X, y = case(rng)
        loss = get_loss("logistic" if logistic else "squared")
        if logistic:
            y = np.where(y > np.median(y), 1.0, -1.0)
            model: Any = conche.CoCoAClassifier(loss="logistic", **options)
        else:
            model = conche.CoCoARegressor(**options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if rng.random() < 0.5 and len(set(y[n:])) >= 2:
                model.partial_fit(X[n:], y[n:])
            check(model, X[:n], y[:n], loss)


def check(model: Any, X: Array, y: Array, loss: Loss) -> None:
    if loss.probabilistic and not hasattr(model, "coef_") and len(set(y)) < 2:
        return
    p, seen = X.shape[1], hasattr(model, "coef_")
    before = model.coef_.ravel().copy() if seen else np.zeros(p)
    P: Array = np.zeros((p, p))
    if isinstance(model.solver, Memory):
        P = penalty_of(model, p) if seen else np.eye(p) * model.get_params()["solver__ridge"]
    model.partial_fit(X, y)
    d = model.coef_.ravel() - before
    value = float(loss.value((X @ model.coef_.ravel())[:, None], y[:, None])[0] + 0.5 * d @ P @ d)
    best = optimum(X, y, loss, P, X @ before)
    bound = model.history_[-1]["bound"] * len(y)
    rounding = 1e-12 * (value + float(y @ y))
    assert bound >= 0
    assert value - best <= bound + rounding, (model, value - best, bound)


def test_it_goes_to_zero_where_it_can_and_tol_stops_there() -> None:
    """A penalty, columns that fit any target, or one node that has them all."""
    task = conche.gaussian_tasks(1, 60, 40, noise_var=0.1)[0]
    wide = conche.gaussian_tasks(1, 30, 80, noise_var=0.1)[0]
    cases: list[tuple[Array, Array, dict[str, Any]]] = [
        (task.X, task.y, dict(n_nodes=4, solver=Memory(rank=0), steps="cg")),
        (wide.X, wide.y, dict(n_nodes=4, steps="cg")),
        (task.X, task.y, dict(n_nodes=1)),
        (task.X, task.y, dict(n_nodes=4, solver=ElasticNet(0.05), steps="adaptive")),
    ]
    for X, y, options in cases:
        model = conche.CoCoARegressor(n_rounds=500, tol=1e-6, **options).partial_fit(X, y)
        bounds = rounds_of(model, "bound")
        assert bounds[-1] <= 1e-6 * 0.5 * np.mean(y**2) and len(bounds) < 200, options
        assert all(b <= a * (1 + 1e-9) + 1e-15 for a, b in pairwise(bounds))


def test_at_zero_damping_several_nodes_know_no_more_than_the_loss() -> None:
    """Two columns that are nearly the same, one a node: every node sees next to nothing of the
    residual, which is all in the span of both. No bound from these messages could be lower."""
    e = 1e-6
    X = np.array([[1.0, 1.0], [e, -e], [0.0, 0.0]])
    y = np.array([0.0, 1.0, 0.0])
    model = conche.CoCoARegressor(n_nodes=2, n_rounds=3).partial_fit(X, y)
    assert model.history_[-1]["loss"] == pytest.approx(0.5 / 3)
    assert model.history_[-1]["bound"] == pytest.approx(0.5 / 3)  # and it is exact: X w = y


def test_columns_beyond_the_numbers_precision_are_not_called_fitted() -> None:
    """One node cuts singular values that are rounding next to the largest; the bound knows."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 30))
    model = conche.CoCoARegressor().partial_fit(np.column_stack([1e16 * a, b]), b)
    assert rounds_of(model, "loss")[-1] - rounds_of(model, "bound")[-1] <= 1e-12
    twice = np.column_stack([a, a, b])  # of which a part is cut, too
    model = conche.CoCoARegressor(n_rounds=2).partial_fit(twice, rng.standard_normal(30))
    assert rounds_of(model, "bound")[-1] <= rounds_of(model, "loss")[-1]


def test_tol_waits_for_a_certificate_where_there_is_one() -> None:
    task = conche.gaussian_tasks(1, 400, 60, noise_var=0.1)[0]
    model = conche.CoCoARegressor(n_nodes=30, n_rounds=3000, solver=Memory(rank=0), tol=0.05)
    model.partial_fit(task.X, task.y)
    assert model.history_[-1]["bound"] <= 0.05 * 0.5 * np.mean(task.y**2)
    assert 10 < len(model.history_) < 3000


@pytest.mark.parametrize("options", [dict(steps="adaptive"), dict(steps="cg")])
def test_single_precision_and_labels_that_can_be_told_apart_stay_finite(
    options: dict[str, Any],
) -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 12))
        X = rng.standard_normal((n, 6)).astype(np.float32)
        y = np.where(np.arange(n) % 2, 1, -1)
        model = conche.CoCoAClassifier(n_nodes=3, loss="logistic", n_rounds=20, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", conche.NearSquareWarning)
            for sign in (1, -1):
                model.partial_fit(sign * X, y)
        assert np.all(np.isfinite(model.coef_))
        bounds = rounds_of(model, "bound")
        assert np.all(np.isfinite(bounds)) and np.all(bounds >= 0)
