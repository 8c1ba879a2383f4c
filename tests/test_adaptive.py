"""Adaptive steps, and nodes that solve inexactly."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

import conche
from conche import CoCoAClassifier, CoCoARegressor, Damped, Exact, Memory
from conche.common.arrays import Array

from .helpers.streams import beijing, drawn

Data = tuple[Array, Array]


@cache
def digits(part: int) -> Data:
    data = load_digits()
    rows = slice(300 * part, 300 * (part + 1))
    return data.data[rows] / 16, np.where(data.target[rows] % 2, 1.0, -1.0)


@cache
def month(i: int) -> Data:
    task = beijing()[0][i]
    return task.X, task.y


# name, X and y, nodes, whether blocks are correlated
PROBLEMS: dict[str, tuple[Callable[[], Data], int, bool]] = {
    **{f"random {i}": (partial(drawn, 200, 80, i, "plain"), 4, False) for i in range(3)},
    "random wide": (partial(drawn, 60, 160, 3, "plain"), 4, False),
    "random, many nodes": (partial(drawn, 200, 80, 4, "plain"), 16, False),
    **{f"factors {K}": (partial(drawn, 200, 80, 5, "factors"), K, True) for K in (2, 4, 8)},
    **{f"common {K}": (partial(drawn, 200, 80, 6, "common"), K, True) for K in (2, 4, 8)},
    **{f"chain {K}": (partial(drawn, 200, 80, 7, "chain"), K, True) for K in (2, 4, 8)},
    **{f"digits {i}": (partial(digits, i), 4, True) for i in range(3)},
    **{f"beijing {i}": (partial(month, i), 12, True) for i in (0, 20, 40)},
}


def rounds_needed(
    X: Array, y: Array, K: int, steps: Any, accuracy: float, limit: int = 4000
) -> int:
    """Rounds until the excess of the loss is ``accuracy`` times what it was."""
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    optimum, first = np.mean((y - X @ best) ** 2) / 2, np.mean(y**2) / 2
    model = CoCoARegressor(n_nodes=K, n_rounds=limit, steps=steps)
    losses = np.array([r["loss"] for r in model.partial_fit(X, y).history_], float)
    assert np.all(np.diff(losses) <= 1e-12 * first)
    good = np.flatnonzero(losses - optimum <= accuracy * (first - optimum))
    return int(good[0]) + 1 if len(good) else limit


def test_there_are_twenty_problems() -> None:
    assert len(PROBLEMS) == 20


@pytest.mark.parametrize("name", PROBLEMS)
def test_adaptive_steps_are_never_slower_and_twice_as_fast_where_blocks_are_correlated(
    name: str,
) -> None:
    make, K, correlated = PROBLEMS[name]
    X, y = make()
    accuracy = 1e-2 if name.startswith("beijing") else 1e-4  # its columns are all but dependent
    safe, adaptive = (rounds_needed(X, y, K, a, accuracy) for a in ("safe", "adaptive"))
    assert adaptive <= (safe / 2 if correlated else safe), (safe, adaptive)


@pytest.mark.parametrize("solver", [Damped(1.0), Memory(ridge=1.0)], ids=repr)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_adaptive_steps_serve_every_solver_and_loss(solver: Any, loss: str) -> None:
    """Each round lowers the objective, and the limit is that of safe rounds."""
    X, y = drawn(80, 24, 8, "common")
    X, labels = X / 3, np.where(y > 0, 1, -1)
    options: dict[str, Any] = dict(n_nodes=4, solver=solver, loss=loss)
    adaptive = CoCoAClassifier(n_rounds=400, steps="adaptive", **options)
    adaptive.partial_fit(X, labels)
    few = CoCoAClassifier(n_rounds=30, steps="adaptive", **options).partial_fit(X, labels)
    safe = CoCoAClassifier(n_rounds=30, **options).partial_fit(X, labels)
    bound, limit = (model.history_[-1]["bound"] for model in (few, safe))
    if bound is None or limit is None:  # sums: no rounds, whatever the steps
        assert np.array_equal(few.coef_, safe.coef_)
        return
    assert bound <= limit * (1 + 1e-9)
    if isinstance(solver, Memory):
        exact = CoCoAClassifier(n_rounds=100, steps="cg", **options).partial_fit(X, labels)
        assert adaptive.coef_ == pytest.approx(exact.coef_, rel=1e-5, abs=1e-7)


def test_adaptive_steps_stop_at_rounding_and_share_a_stream_with_two_outputs() -> None:
    tasks = conche.gaussian_tasks(3, 40, 20, n_shared=10, noise_var=0.1)
    model = CoCoARegressor(n_nodes=2, n_rounds=2000, steps="adaptive")
    single = [CoCoARegressor(n_nodes=2, n_rounds=2000, steps="adaptive") for _ in range(2)]
    for task in tasks:
        Y = np.column_stack([task.y, task.X[:, 0] - task.y])
        model.partial_fit(task.X, Y)
        for j, one in enumerate(single):
            one.partial_fit(task.X, Y[:, j])
    assert len(model.history_) < 3 * 2000
    assert model.coef_ == pytest.approx(np.array([one.coef_ for one in single]), abs=1e-8)


@pytest.mark.parametrize("make", [Exact, partial(Damped, 0.1)])
@pytest.mark.parametrize(("n", "p"), [(60, 24), (20, 60)])
def test_many_local_steps_are_the_factorisation(make: Any, n: int, p: int) -> None:
    X, y = drawn(n, p, 9, "plain")
    full, steps = (
        CoCoARegressor(n_nodes=2, n_rounds=3, solver=make(local_steps=s)) for s in (None, 80)
    )
    for model in (full, steps):
        model.partial_fit(X, y)
        model.partial_fit(X, -y)
    assert steps.coef_ == pytest.approx(full.coef_, rel=1e-7, abs=1e-9)
    assert max(r["accuracy"] for r in steps.history_) < 1e-8
    assert all(r["accuracy"] == 0 for r in full.history_)


def test_fewer_local_steps_need_more_rounds_and_say_how_exact_they_were() -> None:
    X, y = drawn(200, 80, 10, "chain")
    best = np.mean((y - X @ np.linalg.lstsq(X, y, rcond=None)[0]) ** 2) / 2
    rounds, accuracies = [], []
    for steps in (1, 3, 10, None):
        model = CoCoARegressor(
            n_nodes=4, n_rounds=3000, steps="adaptive", solver=Exact(local_steps=steps)
        ).partial_fit(X, y)
        above = np.array([r["loss"] for r in model.history_]) - best
        rounds.append(int(np.flatnonzero(above <= 1e-4 * np.mean(y**2))[0]))
        accuracies.append(np.mean([r["accuracy"] for r in model.history_[:20]]))
        assert np.all(np.diff(above) <= 1e-12)
    assert rounds[0] > 2 * rounds[1] > 4 * rounds[3] and rounds[2] <= 2 * rounds[3]
    assert accuracies[0] > accuracies[2] > accuracies[3] == 0 and accuracies[2] < 0.5


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
def test_local_steps_of_their_own_number_end_at_the_solution(kind: str) -> None:
    """On one node a damped round is ridge regression; the gradient that is left is small there."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 80)) @ np.diag(np.geomspace(0.1, 10, 80))
    y = X @ rng.standard_normal(80) + rng.standard_normal(300)
    given = {"dense": X, "sparse": sparse.csr_array(X), "float32": X.astype(np.float32)}[kind]
    model = CoCoARegressor(n_nodes=1, solver=Damped(0.1, local_steps="auto")).fit(given, y)
    gradient = X.T @ (y - X @ model.coef_) - 30 * model.coef_
    left = 1e-4 if kind == "float32" else 2e-6
    assert np.linalg.norm(gradient) < left * np.linalg.norm(X.T @ y)
    assert 0 < model.history_[-1]["accuracy"] <= (2e-6 if kind == "float32" else 1e-6)


def test_local_steps_work_with_cg_logistic_loss_and_sparse_columns() -> None:
    X = sparse.random(200, 60, 0.1, random_state=0, format="csr")
    y = np.where(X @ np.random.default_rng(0).standard_normal(60) > 0, 1, -1)
    options: dict[str, Any] = dict(n_nodes=3, n_rounds=60, loss="logistic", steps="cg")
    few, full = (
        CoCoAClassifier(solver=Exact(local_steps=s), **options).partial_fit(X, y).history_[-1]
        for s in (5, None)
    )
    assert few["loss"] is not None and full["loss"] is not None
    assert few["loss"] <= 1.5 * full["loss"] + 1e-3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(steps="bold"), "steps='bold' must be one of 'safe', 'adaptive', 'cg'"),
        (dict(solver=Exact(local_steps=0)), "local_steps=0 must be a whole number of at least 1"),
        (dict(solver=Damped(local_steps=0)), "local_steps=0 must be a whole number of at least 1"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], said: str) -> None:
    X, y = drawn(20, 4, 0, "plain")
    with pytest.raises(conche.ParameterError, match=said):
        CoCoARegressor(**options).fit(X, y)


def test_local_steps_of_the_memory_cannot_be_written() -> None:
    options: dict[str, Any] = dict(local_steps=2)
    with pytest.raises(TypeError, match="local_steps"):
        Memory(**options)
    with pytest.raises(conche.ParameterError, match="solver='memory' does not take local_steps"):
        CoCoARegressor(solver="memory").set_params(solver__local_steps=2)
