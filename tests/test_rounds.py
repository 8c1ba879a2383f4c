"""Conjugate-gradient rounds: the same messages, the same limit, far fewer of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression

import conche
from conche import Memory, Task
from conche.common.arrays import Array
from conche.rounds import Loss, get_loss
from conche.rounds.objective import Objective

from .helpers.models import raw, rounds_of


def rounds_to(task: Task, goal: float, **options: Any) -> int | None:
    """Rounds until the predictions are within ``goal`` of the task's least-squares ones."""
    best = task.X @ np.linalg.lstsq(task.X, task.y, rcond=None)[0]
    floor = np.sqrt(np.mean((task.y - best) ** 2))
    model = conche.CoCoARegressor(**options).fit(task.X, task.y)
    # the residual splits into its least-squares part and the rest, at a right angle
    rest = np.sqrt(np.maximum(rounds_of(model, "residual") ** 2 - floor**2, 0.0))
    reached = rest <= goal * np.sqrt(np.mean(best**2))
    return int(np.argmax(reached)) + 1 if reached.any() else None


@pytest.mark.parametrize(("n", "p", "K", "most"), [(2048, 1024, 16, 40), (512, 384, 16, 80)])
def test_few_rounds_to_least_squares(n: int, p: int, K: int, most: int) -> None:
    (task,) = conche.gaussian_tasks(1, n, p, noise_var=0.01)
    taken = rounds_to(task, 1e-6, n_nodes=K, n_rounds=most + 20, steps="cg")
    assert taken is not None
    assert taken <= most


@pytest.mark.parametrize("solver", [conche.Exact(), conche.Damped(0.01)], ids=repr)
@pytest.mark.parametrize(("n", "p"), [(60, 24), (20, 48), (8, 48)])
def test_same_limit_as_plain_rounds(solver: Any, n: int, p: int) -> None:
    tasks = conche.gaussian_tasks(2, n, p, noise_var=0.5)
    options: dict[str, Any] = dict(n_nodes=4, solver=solver)
    cg = conche.CoCoARegressor(n_rounds=200, steps="cg", **options)
    plain = conche.CoCoARegressor(n_rounds=8000, **options)
    for task in tasks:
        cg.partial_fit(task.X, task.y)
        plain.partial_fit(task.X, task.y)
    assert np.linalg.norm(cg.coef_ - plain.coef_) <= 1e-8 * np.linalg.norm(plain.coef_)


@pytest.mark.parametrize("rank", [0, 20])
def test_memory_has_the_same_limit_too(rank: int) -> None:
    tasks = conche.gaussian_tasks(3, 30, 24, noise_var=0.5)
    options: dict[str, Any] = dict(n_nodes=4, solver=Memory(rank=rank))
    cg = conche.CoCoARegressor(n_rounds=100, steps="cg", **options)
    plain = conche.CoCoARegressor(n_rounds=2000, **options)
    for task in tasks:
        cg.partial_fit(task.X, task.y)
        plain.partial_fit(task.X, task.y)
    assert np.linalg.norm(cg.coef_ - plain.coef_) <= 1e-8 * np.linalg.norm(plain.coef_)


def test_one_round_is_the_block_step_with_an_exact_line_search() -> None:
    (task,) = conche.gaussian_tasks(1, 50, 24, noise_var=0.5)
    plain = conche.CoCoARegressor(n_nodes=4).fit(task.X, task.y)
    cg = conche.CoCoARegressor(n_nodes=4, steps="cg").fit(task.X, task.y)
    image = task.X @ plain.coef_
    step = (task.y @ image) / (image @ image)
    np.testing.assert_allclose(cg.coef_, step * plain.coef_, rtol=1e-9)


def test_more_rounds_than_needed_do_no_harm() -> None:
    (task,) = conche.gaussian_tasks(1, 50, 24, noise_var=0.5)
    model = conche.CoCoARegressor(n_nodes=3, n_rounds=400, steps="cg").fit(task.X, task.y)
    expected = np.linalg.lstsq(task.X, task.y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-9)
    zero = conche.CoCoARegressor(n_nodes=3, n_rounds=5, steps="cg")
    zero.fit(task.X, np.zeros(50)).partial_fit(np.zeros((4, 24)), np.ones(4))
    assert not zero.coef_.any()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("p", [1, 2, 4])
def test_rounds_after_convergence_divide_no_noise_by_noise(p: int, dtype: Any) -> None:
    """Two hundred tiny problems, each with many more rounds than it needs."""
    tol = 1e-8 if dtype == np.float64 else 2e-3
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((50, p)), rng.standard_normal(50)
        exact = np.linalg.lstsq(X, y, rcond=None)[0]
        ridge = np.linalg.solve(X.T @ X + np.eye(p), X.T @ y)
        Xd, yd = X.astype(dtype), y.astype(dtype)
        options: dict[str, Any] = dict(n_nodes=min(p, 2), n_rounds=100)
        cg = conche.CoCoARegressor(steps="cg", **options).fit(Xd, yd)
        memory = raw(solver=Memory(ridge=1.0), **options).fit(Xd, yd)
        for model, expected in ((cg, exact), (memory, ridge)):
            assert np.linalg.norm(model.coef_ - expected) <= tol * np.linalg.norm(expected), seed
        residual = np.sqrt(np.mean((y - X @ cg.coef_) ** 2))
        assert cg.history_[-1]["residual"] == pytest.approx(residual, rel=100 * tol)


def test_messages_are_one_vector_each_way_and_six_scalars() -> None:
    tasks = conche.gaussian_tasks(2, 30, 24)
    options: dict[str, Any] = dict(n_nodes=4, n_rounds=3, tol=None)
    blocks = raw(solver=Memory(rank=0), **options)
    directions = raw(solver=Memory(rank=10, ridge=1.0), **options)
    for task in tasks:
        blocks.partial_fit(task.X, task.y)
        directions.partial_fit(task.X, task.y)
    assert [r["bytes"] for r in blocks.history_] == [4 * 8 * (2 * 30 + 6)] * 6
    # with ten directions: their rows join from the second task on, a correction each way
    later = [r["bytes"] for r in directions.history_ if r["round"] > 1]
    assert later == [4 * 8 * (2 * v + 2 * 10 + 7) for v in (30, 30, 40, 40)]
    merge, *_ = [r["bytes"] for r in directions.history_]
    assert merge > 10 * later[0]


def logistic_stream(
    n_tasks: int = 3, n: int = 80, p: int = 12, seed: int = 0
) -> Iterator[tuple[Array, Array]]:
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(p)
    for _ in range(n_tasks):
        X = rng.standard_normal((n, p))
        yield X, np.where(X @ w + rng.logistic(size=n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("solver", ["exact", "damped"])
def test_logistic_rounds_are_monotone_and_reach_the_optimum(solver: str) -> None:
    X, y = next(logistic_stream(n=300))
    model = conche.CoCoAClassifier(
        n_nodes=4, loss="logistic", solver=solver, n_rounds=60, steps="cg"
    ).fit(X, y)
    losses = rounds_of(model, "loss")
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(losses))
    peer = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-5)


def test_logistic_rounds_with_memory_are_monotone_in_the_tasks_objective() -> None:
    """The objective is the task's loss and the penalty: with one node it can be written down."""
    stream = list(logistic_stream(p=12))
    objective = []
    for n_rounds in range(1, 12):
        plain: dict[str, Any] = dict(fit_intercept=False, scaling=None, tol=None)
        model = conche.ConcheClassifier(
            n_nodes=1, loss="logistic", solver=Memory(ridge=2.0), n_rounds=30, **plain
        ).partial_fit(*stream[0])
        _, pool = model.node_states()
        w0, H = model.coef_[0].copy(), 2.0 * pool.kept["gram"]  # it is in units of the ridge
        model.set_params(n_rounds=n_rounds).partial_fit(*stream[1])
        X, y = stream[1]
        d = model.coef_[0] - w0
        loss = np.sum(np.logaddexp(0, -y * (X @ model.coef_[0])))
        objective.append(loss + 0.5 * d @ H @ d + 0.5 * 2.0 * d @ d)
    assert np.all(np.diff(objective) <= 1e-9)
    assert objective[-1] < objective[0]


def test_separable_labels_do_not_overflow() -> None:
    X = np.array([[1.0, 2.0], [-1.0, -2.0], [2.0, 3.0], [-2.0, -3.0]])
    y = np.array([1, -1, 1, -1])
    model = conche.CoCoAClassifier(
        n_nodes=2, loss="logistic", solver="damped", n_rounds=50, steps="cg"
    ).fit(X, y)
    assert np.all(np.isfinite(model.coef_))
    assert model.score(X, y) == 1


def test_a_line_search_ends_where_the_slope_does() -> None:
    """Against scipy's: outputs near their optimum, far from it, and separable, all at once."""
    rng, loss = np.random.default_rng(0), get_loss("logistic")
    for trial in range(30):
        y = np.where(rng.random((40, 3)) < 0.5, 1.0, -1.0)
        v = rng.normal(size=(40, 3)) * [1e-6, 1.0, 30.0]
        Aq = rng.normal(size=(40, 3)) * 10.0 ** rng.uniform(-3, 3, size=3)
        Aq[:, 0] = y[:, 0] * np.abs(Aq[:, 0])  # only the penalty ends it
        qPq, dPq = 10.0 ** rng.uniform(-3, 1, size=3), rng.normal(size=3) * (trial % 2)
        objective = Objective(loss, y)
        found = objective.best_step(v, objective.descent(v), Aq, qPq, dPq)
        for j in range(3):
            along = partial(_along, loss, (v[:, j], y[:, j], Aq[:, j], qPq[j], dPq[j]))
            reach = 2 * abs(found[j]) + 1.0
            best = minimize_scalar(along, bounds=(-reach, reach), method="bounded").fun
            gain = along(0.0) - best
            assert along(found[j]) - best <= 1e-8 * gain + 1e-13 * (along(0.0) + abs(best))


def _along(loss: Loss, known: tuple[Any, ...], a: float) -> float:
    v, y, Aq, qPq, dPq = known
    return float(np.sum(loss.each(v + a * Aq, y)) + a * dPq + 0.5 * a**2 * qPq)
