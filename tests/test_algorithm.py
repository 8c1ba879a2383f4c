"""Algorithm 1, to rounding: against a plain pseudoinverse loop, over every shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import conche
from conche import Task
from conche.common.arrays import Array

from .helpers.models import rounds_of
from .helpers.reference import algorithm_1

pytestmark = pytest.mark.filterwarnings("ignore::conche.NearSquareWarning")


def learn(tasks: Sequence[Task], **options: Any) -> conche.CoCoARegressor:
    model = conche.CoCoARegressor(**options)
    for task in tasks:
        model.partial_fit(task.X, task.y)
    return model


def assert_close(actual: Array, desired: Array, tol: float = 1e-9) -> None:
    assert np.linalg.norm(actual - desired) <= tol * np.linalg.norm(desired)


CASES: dict[str, dict[str, Any]] = {
    "wide blocks": dict(n=[10], p=60, n_nodes=3),
    "tall blocks": dict(n=[50], p=24, n_nodes=3),
    "square blocks": dict(n=[12], p=36, n_nodes=3),
    "one column short of square": dict(n=[12], p=39, n_nodes=3),
    "unequal blocks": dict(n=[15], p=40, partition=[3, 22, 15]),
    "column lists": dict(n=[15], p=6, partition=[[5, 0], [1, 4, 2], [3]]),
    "p not divisible by K": dict(n=[20], p=31, n_nodes=4),
    "one node": dict(n=[30], p=20, n_nodes=1),
    "one node, wide": dict(n=[20], p=30, n_nodes=1),
    "a node per column": dict(n=[30], p=20, n_nodes=20),
    "one sample": dict(n=[1], p=12, n_nodes=3),
    "ten tasks of many sizes": dict(n=[5, 40, 13, 80, 2, 27, 9, 33, 60, 21], p=30, n_nodes=3),
}


@pytest.mark.parametrize("n_rounds", [1, 2, 7, 100])
@pytest.mark.parametrize("case", CASES)
def test_equals_the_plain_loop(case: str, n_rounds: int) -> None:
    options = dict(CASES[case])
    n, p = options.pop("n"), options.pop("p")
    n = n * 3 if len(n) == 1 else n
    tasks = conche.gaussian_tasks(len(n), n, p, n_shared=p // 2, noise_var=0.1, seed=3)
    model = learn(tasks, n_rounds=n_rounds, **options)
    assert_close(model.coef_, algorithm_1(tasks, list(model.partition_), n_rounds))


def degenerate(kind: str, n: int, p: int, rng: np.random.Generator) -> Array:
    X = rng.standard_normal((n, p))
    if kind == "zero columns":
        X[:, ::4] = 0
    elif kind == "duplicate columns":
        X[:, 1::4] = X[:, ::4]
    elif kind == "duplicate rows":
        X[1::2] = X[::2]
    elif kind == "all zero":
        X[:] = 0
    elif kind == "constant columns":
        X[:, ::3] = 7.0
    elif kind == "scales from 1e-3 to 1e3":
        X *= 10 ** rng.uniform(-3, 3, p)
    return X


@pytest.mark.parametrize(("n", "p", "K"), [(40, 24, 2), (10, 48, 2), (12, 24, 2)])
@pytest.mark.parametrize(
    "kind",
    [
        "zero columns",
        "duplicate columns",
        "duplicate rows",
        "all zero",
        "constant columns",
        "scales from 1e-3 to 1e3",
    ],
)
def test_minimum_norm_where_blocks_lose_rank(kind: str, n: int, p: int, K: int) -> None:
    rng = np.random.default_rng(0)
    tasks = []
    for _ in range(3):
        X = degenerate(kind, n, p, rng)
        tasks.append(Task(X, rng.standard_normal(n)))
    model = learn(tasks, n_nodes=K, n_rounds=5)
    assert_close(model.coef_, algorithm_1(tasks, list(model.partition_), 5), tol=1e-8)


@pytest.mark.parametrize("scale", [1e-160, 1e-80, 1e80, 1e140])
def test_extreme_scales(scale: float) -> None:
    """The Gram matrix over- or underflows; the pseudoinverse does not."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 6)), rng.standard_normal(30)
    model = conche.CoCoARegressor().fit(X * scale, y)
    assert_close(model.coef_ * scale, np.linalg.lstsq(X, y, rcond=None)[0])


def test_lemma_1_one_round_is_an_affine_map() -> None:
    """w_t = P_t w_{t-1} + Abar_t y_t with P = I - Abar A, Abar the stacked pseudoinverses / K."""
    tasks = conche.gaussian_tasks(2, [30, 7], 24, noise_var=0.1)
    model = learn(tasks[:1], n_nodes=3)
    before, task = model.coef_.copy(), tasks[1]
    Abar = np.vstack([np.linalg.pinv(task.X[:, b]) for b in model.partition_]) / 3
    model.partial_fit(task.X, task.y)
    assert_close(model.coef_, before - Abar @ (task.X @ before) + Abar @ task.y)


def test_lemma_2_one_round_convergence() -> None:
    """Where every block has full row rank, a second round changes nothing."""
    tasks = conche.gaussian_tasks(4, 10, 80, n_shared=40, noise_var=0.1)
    once = learn(tasks, n_nodes=4, n_rounds=1)
    often = learn(tasks, n_nodes=4, n_rounds=50)
    assert_close(often.coef_, once.coef_, tol=1e-12)
    assert rounds_of(often, "residual")[rounds_of(often, "task") == 4].max() < 1e-12


def test_lemma_2_fails_where_a_block_is_tall() -> None:
    tasks = conche.gaussian_tasks(1, 30, 80, noise_var=0.1)
    once = learn(tasks, n_nodes=4, n_rounds=1)
    often = learn(tasks, n_nodes=4, n_rounds=50)
    assert np.linalg.norm(often.coef_ - once.coef_) > 0.1 * np.linalg.norm(once.coef_)


def test_rounds_tend_to_least_squares() -> None:
    (task,) = conche.gaussian_tasks(1, 60, 24, noise_var=1.0)
    model = learn([task], n_nodes=3, n_rounds=4000)
    assert_close(model.coef_, np.linalg.lstsq(task.X, task.y, rcond=None)[0], tol=1e-8)


def test_logistic_loss_equals_the_plain_loop() -> None:
    rng = np.random.default_rng(1)
    tasks = []
    for n in (30, 12, 25):
        X = rng.standard_normal((n, 18))
        tasks.append(Task(X, np.where(rng.random(n) < 0.5, -1.0, 1.0)))
    model = conche.CoCoAClassifier(n_nodes=3, loss="logistic", n_rounds=6)
    for task in tasks:
        model.partial_fit(task.X, task.y)
    expected = algorithm_1(tasks, list(model.partition_), 6, tau=4.0)
    assert_close(model.coef_[0], expected)


def test_nearly_square_blocks_are_announced() -> None:
    (task,) = conche.gaussian_tasks(1, 12, 24)
    with pytest.warns(conche.NearSquareWarning, match="12 columns for 12 samples.*damped"):
        conche.CoCoARegressor(n_nodes=2).partial_fit(task.X, task.y)


def test_history_counts_what_is_sent() -> None:
    tasks = conche.gaussian_tasks(2, [30, 20], 24)
    model = learn(tasks, n_nodes=4, n_rounds=3)
    assert [(r["task"], r["round"]) for r in model.history_] == [
        (t, i) for t in (1, 2) for i in (1, 2, 3)
    ]
    # n doubles each way, a round, a node
    assert [r["bytes"] for r in model.history_] == [4 * 2 * 8 * n for n in (30, 30, 30, 20, 20, 20)]
    last = model.history_[-1]
    residual = tasks[1].y - tasks[1].X @ model.coef_
    assert last["residual"] == pytest.approx(np.sqrt(np.mean(residual**2)))
    assert last["loss"] == pytest.approx(np.mean(residual**2) / 2)


def test_tol_stops_early_and_only_then() -> None:
    (task,) = conche.gaussian_tasks(1, 60, 24, noise_var=1.0)
    full = learn([task], n_nodes=3, n_rounds=500)
    stopped = learn([task], n_nodes=3, n_rounds=500, tol=1e-6)
    assert 5 < len(stopped.history_) < 500 == len(full.history_)
    assert_close(stopped.coef_, full.coef_, tol=1e-4)
    assert len(learn([task], n_nodes=3, n_rounds=20, tol=0).history_) == 20


def test_overflow_is_an_error_that_names_the_remedy_and_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 6)), rng.standard_normal(20)
    model = conche.CoCoARegressor(n_nodes=2).partial_fit(X, y)
    before, state = model.coef_.copy(), model.state_
    with np.errstate(all="ignore"), pytest.raises(conche.DivergenceError, match="damped"):
        model.partial_fit(X * 1e-200, np.full(20, 1e149))
    assert np.array_equal(model.coef_, before)
    assert model.n_tasks_seen_ == 1 and model.state_ is state
