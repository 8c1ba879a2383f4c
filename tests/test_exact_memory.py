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
    """1 to 400 rows, K from 1 to p, correlation to 0.999, scales 1e-3 to 1e3, duplicate, constant
    and zero columns, several outputs, intercepts."""
    for seed in range(first, first + 100):
        for distance, rounds in exactness(seed):
            assert distance <= 1e-8, seed
            assert rounds == 1, seed


@pytest.mark.parametrize("n_nodes", [12, 132])
def test_beijing_equals_offline(n_nodes: int) -> None:
    train, _ = beijing()
    model = raw(n_nodes=n_nodes, solver=Memory(damping=3.0))
    for t, task in enumerate(train, start=1):
        model.partial_fit(task.X, task.y)
        if t in (1, 2, 24, 48):
            offline = conche.offline_solution(train[:t], damping=3.0)
            distance = np.linalg.norm(model.coef_ - offline) / np.linalg.norm(offline)
            assert distance <= 1e-8, t
    assert len(model.history_) == 48


@pytest.mark.parametrize("first", [1, 4, 9])
def test_few_samples_in_other_units_are_not_lost_in_a_rotation(first: int) -> None:
    """Before there are ten samples, columns are as large as their units make them; the smallest
    must still be known when each gets the ridge that it should have."""
    rng = np.random.default_rng(first)
    units, w = 10.0 ** np.linspace(-4, 4, 9), rng.standard_normal(9)
    here, there = (conche.ConcheRegressor(3, network=n) for n in (LocalNetwork(), Apart()))
    for n in (first, 3, 60, 40):
        Z = rng.standard_normal((n, 9))
        y = Z @ w + 0.1 * rng.standard_normal(n)
        for model in (here, there):
            model.partial_fit(Z * units, y)
        gap = np.abs(here.coef_ - there.coef_) * units
        assert np.max(gap) <= 1e-8 * np.max(np.abs(here.coef_) * units)


def test_single_precision_is_kept_in_double() -> None:
    tasks = conche.gaussian_tasks(6, 40, 20, noise_var=0.1)
    model = raw(n_nodes=4, solver=Memory(damping=1.0))
    for task in tasks:
        model.partial_fit(task.X.astype(np.float32), task.y.astype(np.float32))
    offline = conche.offline_solution(tasks, damping=1.0)
    assert model.coef_.dtype == np.float32
    assert np.linalg.norm(model.coef_ - offline) <= 1e-3 * np.linalg.norm(offline)


@pytest.mark.parametrize("discount", [1.0, 0.8])
def test_the_ridge_may_change_and_the_past_be_discounted(discount: float) -> None:
    """Few samples at first: the default ridge is provisional, and the estimate is the minimiser
    for the ridge in force, with past samples discounted."""
    rng = np.random.default_rng(0)
    model = raw(n_nodes=3, solver=Memory(discount=discount))
    seen: list[tuple[Array, Array]] = []
    for n in (1, 2, 3, 4, 5, 40, 7):
        X = rng.standard_normal((n, 7)) * [1e-2, 1, 1, 1e2, 1, 1, 1]
        y = X @ np.ones(7) + 0.1 * rng.standard_normal(n)
        model.partial_fit(X, y)
        seen.append((X, y))
        ridge = np.concatenate([state.kept["ridge"] for state in model.node_states()[:3]])
        weigh = [discount ** ((len(seen) - 1 - t) / 2) for t in range(len(seen))]
        A = np.vstack([X * s for (X, _), s in zip(seen, weigh, strict=True)])
        Y = np.concatenate([y * s for (_, y), s in zip(seen, weigh, strict=True)])
        size = np.sqrt(ridge * model.state_.judge.strength)
        offline = ridge_solution(A / size, Y[:, None], 1.0)[:, 0] / size
        assert np.linalg.norm(model.coef_ - offline) <= 1e-8 * np.linalg.norm(offline)


@pytest.mark.parametrize("scaling", ["first", "running"])
@pytest.mark.parametrize("kind", [LocalNetwork, Apart])
def test_scaling_does_not_change_what_is_learnt(scaling: str, kind: type[LocalNetwork]) -> None:
    """In units of the ridge, rescaled columns are the same columns."""
    rng = np.random.default_rng(1)
    data = [rng.standard_normal((n, 9)) * 10.0 ** np.arange(-4, 5) + 3 for n in (4, 30, 20, 50)]
    coefs = []
    every: tuple[dict[str, Any], ...] = ({}, {"scaling": scaling})
    for options in every:
        model = raw(
            n_nodes=3, network=kind(), fit_intercept=True, solver=Memory(damping=None), **options
        )
        for X in data:
            model.partial_fit(X, X @ np.ones(9))
        coefs.append(model.predict(data[0]))
    np.testing.assert_allclose(coefs[0], coefs[1], rtol=1e-2)


def test_rotated_columns_teach_the_same() -> None:
    """Nodes apart send rotated columns: the same estimate, and nothing that is a column."""
    tasks = conche.gaussian_tasks(4, 30, 12, noise_var=0.1)
    models = [raw(n_nodes=3, network=kind()) for kind in (LocalNetwork, Apart)]
    for task in tasks:
        for model in models:
            model.partial_fit(task.X, task.y)
    here, there = (model.coef_ for model in models)
    assert np.linalg.norm(here - there) <= 1e-10 * np.linalg.norm(here)
    states = models[1].node_states()
    for state in states[:3]:
        turn = state.kept["rotation"]
        np.testing.assert_allclose(turn @ turn.T, np.eye(4), atol=1e-12)
    plain, turned = (model.node_states()[-1].kept["gram"] for model in models)
    assert not np.allclose(plain, turned)
    np.testing.assert_allclose(np.linalg.eigvalsh(plain), np.linalg.eigvalsh(turned), rtol=1e-9)


def test_a_secret_decides_the_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    known = rotation(0, 1, 5)
    assert np.array_equal(known, rotation(0, 1, 5))
    assert not np.allclose(known, rotation(0, 2, 5))
    monkeypatch.setenv("CONCHE_SECRET", "only this machine knows")
    assert not np.allclose(known, rotation(0, 1, 5))


def test_a_stream_goes_on_where_nodes_are_apart() -> None:
    """Begun in one process, without rotation, and gone on with it."""
    tasks = conche.gaussian_tasks(4, 30, 12, noise_var=0.1)
    model, alone = (raw(n_nodes=3) for _ in range(2))
    for i, task in enumerate(tasks):
        if i == 2:
            model.network_.apart = True  # of this object alone
        model.partial_fit(task.X, task.y)
        alone.partial_fit(task.X, task.y)
    assert "rotation" in model.node_states()[0].kept
    assert np.linalg.norm(model.coef_ - alone.coef_) <= 1e-10 * np.linalg.norm(alone.coef_)


def test_sparse_columns_are_exact_too() -> None:
    rng = np.random.default_rng(0)
    model = raw(n_nodes=4, solver=Memory(damping=0.5))
    tasks = []
    for _ in range(4):
        X = rng.standard_normal((50, 30)) * (rng.random((50, 30)) < 0.1)
        y = X.sum(axis=1) + 0.1 * rng.standard_normal(50)
        tasks.append(Task(X, y))
        model.partial_fit(sparse.csr_array(X), y)
    offline = conche.offline_solution(tasks, damping=0.5)
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
            ridge = np.concatenate([s.kept["ridge"] for s in model.node_states()[:K]])
        size = np.sqrt(ridge * model.state_.judge.strength)
        A, y = (np.concatenate([getattr(t, name) for t in stream.train]) for name in ("X", "y"))
        w = ridge_solution(A / size, y[:, None], 1.0)[:, 0] / size
        offline = np.mean([np.mean((t.y - t.X @ w) ** 2) for t in stream.test])
        assert max(errors) <= 1.001 * offline


def test_one_round_and_no_gap() -> None:
    tasks = conche.gaussian_tasks(8, 50, 40, noise_var=0.1)
    model = raw(n_nodes=8)
    for task in tasks:
        model.partial_fit(task.X, task.y)
    assert [record["round"] for record in model.history_] == [1] * 8
    gap = model.offline_gap_
    assert 0 <= gap.estimate <= gap.bound <= 1e-9 * gap.objective
    assert all(record["gap"] <= record["gap_bound"] <= 1e-9 for record in model.tasks_)
    # once a task: n x p columns up, the weights down
    assert model.tasks_[-1]["bytes"] == 8 * (50 * 40 + 40)


@pytest.mark.parametrize("damping", [None, "auto", 1.0])
def test_logistic_streams_learn(damping: Any) -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal((10, 3))
    scores = []
    for K in (1, 5):
        model = conche.ConcheClassifier(n_nodes=K, loss="logistic", solver=Memory(damping=damping))
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
def test_more_rounds_than_one_do_no_harm(K: int) -> None:
    """Columns a thousand standard deviations from zero, and nothing to take that up."""
    rng = np.random.default_rng(0)
    model = conche.CoCoARegressor(K, solver=Memory(damping=3.0), steps="cg", n_rounds=30)
    rows, targets = [np.sqrt(3.0) * np.eye(2)], [np.zeros(2)]
    for _ in range(4):
        X = rng.standard_normal((5, 2)) + 1000 * np.array([0.7, 0.9])
        y = rng.standard_normal(5)
        model.partial_fit(X, y)
        rows, targets = [*rows, X], [*targets, y]
    best = np.linalg.lstsq(np.vstack(rows), np.concatenate(targets), rcond=None)[0]
    np.testing.assert_allclose(model.coef_, best, rtol=1e-8)
    assert len(model.history_) <= 12
