"""Where all columns together are no more than the rank: the offline ridge solution, exactly."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import conche
from conche import Memory, Task
from conche.common.arrays import Array
from conche.network import LocalNetwork
from conche.nodes.solvers.pooled import rotation

from .helpers.hard_streams import KINDS, exactness, hard
from .helpers.models import Apart, raw
from .helpers.reference import ridge_solution
from .helpers.streams import beijing


@pytest.mark.parametrize("first", [0, 100, 200])
def test_300_awkward_streams_equal_offline_after_every_task(first: int) -> None:
    """1 to 400 rows, K from 1 to p, correlation to 0.999, scales 0.03 to 30, duplicate, constant
    and zero columns, several outputs, intercepts."""
    for seed in range(first, first + 100):
        for distance, rounds in exactness(seed):
            assert distance <= 1e-8, seed
            assert rounds == 1, seed


@pytest.mark.parametrize("n_nodes", [12, 132])
def test_beijing_equals_offline(n_nodes: int) -> None:
    train, _ = beijing()
    model = raw(n_nodes=n_nodes, solver=Memory(ridge=3.0))
    for t, task in enumerate(train, start=1):
        model.partial_fit(task.X, task.y)
        if t in (1, 2, 24, 48):
            offline = conche.offline_solution(train[:t], ridge=3.0)
            distance = np.linalg.norm(model.coef_ - offline) / np.linalg.norm(offline)
            assert distance <= 1e-8, t
    assert len(model.history_) == 48


def test_single_precision_is_kept_in_double() -> None:
    tasks = conche.gaussian_tasks(6, 40, 20, noise_var=0.1)
    model = raw(n_nodes=4, solver=Memory(ridge=1.0))
    for task in tasks:
        model.partial_fit(task.X.astype(np.float32), task.y.astype(np.float32))
    offline = conche.offline_solution(tasks, ridge=1.0)
    assert model.coef_.dtype == np.float32
    assert np.linalg.norm(model.coef_ - offline) <= 1e-3 * np.linalg.norm(offline)


@pytest.mark.parametrize("discount", [1.0, 0.8])
def test_few_rows_at_first_and_a_past_that_fades(discount: float) -> None:
    """Whatever ridge the evidence chooses after each task: the weights are those of all rows."""
    rng = np.random.default_rng(0)
    model = raw(n_nodes=3, solver=Memory(discount=discount))
    seen: list[tuple[Array, Array]] = []
    for n in (1, 2, 3, 4, 5, 40, 7):
        X = rng.standard_normal((n, 7)) * [1e-2, 1, 1, 1e2, 1, 1, 1]
        y = X @ np.ones(7) + 0.1 * rng.standard_normal(n)
        model.partial_fit(X, y)
        seen.append((X, y))
        if len(seen) == 1:
            continue  # of one row nothing is known but where it is
        weigh = [discount ** ((len(seen) - 1 - t) / 2) for t in range(len(seen))]
        A = np.vstack([X * s for (X, _), s in zip(seen, weigh, strict=True)])
        Y = np.concatenate([y * s for (_, y), s in zip(seen, weigh, strict=True)])
        size = np.sqrt(model.ridge_)
        offline = ridge_solution(A / size, Y[:, None], 1.0)[:, 0] / size
        assert np.linalg.norm(model.coef_ - offline) <= 1e-8 * np.linalg.norm(offline)


@pytest.mark.parametrize("scaling", ["standard", "first", "running"])
@pytest.mark.parametrize("kind", [LocalNetwork, Apart])
def test_scaling_does_not_change_what_evidence_chooses(
    scaling: str, kind: type[LocalNetwork]
) -> None:
    """Columns are standardised for it whatever scaling is."""
    rng = np.random.default_rng(1)
    data = [rng.standard_normal((n, 9)) * 10.0 ** np.arange(-4, 5) + 3 for n in (4, 30, 20, 50)]
    predictions = []
    every: tuple[dict[str, Any], ...] = ({}, {"scaling": scaling})
    for options in every:
        model = raw(n_nodes=3, network=kind(), fit_intercept=True, **options)
        for X in data:
            model.partial_fit(X, X @ np.ones(9))
        predictions.append(model.predict(data[0]))
    assert np.array_equal(*predictions)


def test_a_ridge_is_given_in_the_columns_units() -> None:
    """ "first" are those of the first ten rows or more, and later ones do not move them."""
    rng = np.random.default_rng(0)
    tasks = [rng.standard_normal((n, 3)) * scale for n, scale in ((20, 1.0), (50, 10.0))]
    model = conche.ConcheRegressor(2, solver=Memory(ridge=7.0), scaling="first")
    for X in tasks:
        model.partial_fit(X, X.sum(axis=1))
    np.testing.assert_allclose(model.ridge_, 7.0 * tasks[0].var(axis=0), rtol=1e-12)


def test_a_task_that_comes_again_is_told_and_no_news() -> None:
    """Its rows count in the sums; how many rows there are, they do not say."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((64, 32)), rng.standard_normal(32)
    y = X @ w + 3 * rng.standard_normal(64)
    once = conche.ConcheRegressor(2).fit(X, y)
    again = conche.ConcheRegressor(2).fit(X, y)
    for _ in range(4):
        order = rng.permutation(64)  # in another order, too
        with pytest.warns(conche.ReplayWarning, match=r"task [2-5] has come before"):
            again.partial_fit(X[order], y[order])
    np.testing.assert_allclose(again.predict(X), once.predict(X), rtol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in ((X, 2 * y), (X, 1 - y), (-X, y), (X + 1, y)):  # which are other tasks
            again.partial_fit(*other)


def test_a_secret_decides_the_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    known = rotation(0, 1, 5)
    assert np.array_equal(known, rotation(0, 1, 5))
    assert not np.allclose(known, rotation(0, 2, 5))
    monkeypatch.setenv("CONCHE_SECRET", "only this machine knows")
    assert not np.allclose(known, rotation(0, 1, 5))


def test_sparse_columns_are_exact_too() -> None:
    rng = np.random.default_rng(0)
    model = raw(n_nodes=4, solver=Memory(ridge=0.5))
    tasks = []
    for _ in range(4):
        X = rng.standard_normal((50, 30)) * (rng.random((50, 30)) < 0.1)
        y = X.sum(axis=1) + 0.1 * rng.standard_normal(50)
        tasks.append(Task(X, y))
        model.partial_fit(sparse.csr_array(X), y)
    offline = conche.offline_solution(tasks, ridge=0.5)
    assert np.linalg.norm(model.coef_ - offline) <= 1e-8 * np.linalg.norm(offline)


@pytest.mark.parametrize("kind", KINDS)
def test_hard_streams_are_offline_by_default(kind: str) -> None:
    """Any number of nodes, two noises: the error is one node's, which is the offline ridge's."""
    for noise in (0.3, 0.003):
        stream = hard(kind, 200, 8, 50, noise)
        errors = []
        for K in (1, 4, 64):
            model = raw(n_nodes=K)
            for task in stream.train:
                model.partial_fit(task.X, task.y)
            errors.append(np.mean([np.mean((t.y - model.predict(t.X)) ** 2) for t in stream.test]))
        size = np.sqrt(model.ridge_)
        A, y = (np.concatenate([getattr(t, name) for t in stream.train]) for name in ("X", "y"))
        w = ridge_solution(A / size, y[:, None], 1.0)[:, 0] / size
        offline = np.mean([np.mean((t.y - t.X @ w) ** 2) for t in stream.test])
        assert max(errors) <= 1.001 * offline


def test_one_round_and_no_gap() -> None:
    tasks = conche.gaussian_tasks(8, 50, 40, noise_var=0.1)
    model = conche.train(raw(n_nodes=8), tasks)
    assert [record["round"] for record in model.history_] == [1] * 8
    gap = model.offline_gap_
    assert 0 <= gap.estimate <= gap.bound <= 1e-9
    assert all((record["gap_bound"] or 0.0) <= 1e-9 for record in model.tasks_)
    # once a task: n x p columns; weights are found when they are read
    assert model.tasks_[-1]["bytes"] == 8 * 50 * 40


def test_errors_are_told_where_they_are_asked_for() -> None:
    tasks = conche.gaussian_tasks(3, 50, 10, noise_var=0.1)
    silent, told = raw(2), conche.train(raw(2), tasks)
    for task, record in zip(tasks, told.tasks_, strict=True):
        if hasattr(silent, "state_"):
            before = np.mean((task.y - silent.predict(task.X)) ** 2)
            assert record["before"] == pytest.approx(before, rel=0.02)
        silent.partial_fit(task.X, task.y)
    assert all(record["before"] is record["gap"] is None for record in silent.tasks_)
    last = tasks[-1]
    after = np.mean((last.y - told.predict(last.X)) ** 2)  # the last task ends with evidence
    assert told.tasks_[-1]["after"] == pytest.approx(after, rel=1e-12)
    assert np.array_equal(told.coef_, silent.coef_)


def test_the_gap_is_never_below_the_truth() -> None:
    """Means of 1e7 deviations and no intercept: rounding is told."""
    rng = np.random.default_rng(0)
    for intercept in (False, True):
        for mean in (0.0, 1e3, 1e7):
            X = rng.standard_normal((200, 5)) + mean
            y = X @ rng.standard_normal(5) + rng.standard_normal(200)
            model = raw(2, fit_intercept=intercept, solver=Memory(ridge=0.1)).fit(X, y)
            A, b = X.astype(np.longdouble), y.astype(np.longdouble)
            if intercept:
                A, b = A - A.mean(axis=0), b - b.mean()
            G, c = A.T @ A + np.longdouble(0.1) * np.eye(5), A.T @ b
            best = np.linalg.solve(G.astype(float), c.astype(float)).astype(np.longdouble)
            for _ in range(50):
                best = best + np.linalg.solve(G.astype(float), (c - G @ best).astype(float))

            def objective(w: Array, offset: Any, X: Array = X, y: Array = y) -> Any:
                left = y.astype(np.longdouble) - X.astype(np.longdouble) @ w - offset
                return 0.5 * (left @ left) + 0.05 * (w @ w)

            free = np.longdouble(intercept)
            offset = free * (
                y.astype(np.longdouble).mean() - X.astype(np.longdouble).mean(0) @ best
            )
            least = objective(best, offset)
            ours = objective(model.coef_.astype(np.longdouble), np.longdouble(model.intercept_))
            assert (ours - least) / ours <= model.offline_gap_.bound


@pytest.mark.parametrize("damping", [None, 1.0])
def test_logistic_streams_learn(damping: Any) -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal((10, 3))
    scores = []
    for K in (1, 5):
        model = conche.ConcheClassifier(n_nodes=K, loss="logistic", solver=Memory(ridge=damping))
        rng = np.random.default_rng(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(6):
                X = rng.standard_normal((60, 10))
                model.partial_fit(X, np.argmax(X @ w, axis=1), classes=[0, 1, 2])
        X = rng.standard_normal((1000, 10))
        scores.append(model.score(X, np.argmax(X @ w, axis=1)))
    assert min(scores) > 0.85
    assert abs(scores[0] - scores[1]) < 0.01


@pytest.mark.parametrize("K", [1, 2])
def test_means_of_a_thousand_deviations_without_an_intercept(K: int) -> None:
    rng = np.random.default_rng(0)
    model = conche.CoCoARegressor(K, solver=Memory(ridge=3.0))
    rows, targets = [np.sqrt(3.0) * np.eye(2)], [np.zeros(2)]
    for _ in range(4):
        X = rng.standard_normal((5, 2)) + 1000 * np.array([0.7, 0.9])
        y = rng.standard_normal(5)
        model.partial_fit(X, y)
        rows, targets = [*rows, X], [*targets, y]
    best = np.linalg.lstsq(np.vstack(rows), np.concatenate(targets), rcond=None)[0]
    np.testing.assert_allclose(model.coef_, best, rtol=1e-8)
