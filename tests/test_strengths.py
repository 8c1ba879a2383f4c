"""Beyond the rank several ridges learn side by side: by evidence first, then judged by tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conche
from conche import Memory, Task
from conche.common.arrays import Array
from conche.nodes.solvers import principal
from conche.nodes.solvers.principal import STRENGTHS

from .helpers.models import raw

pytestmark = pytest.mark.filterwarnings(
    "ignore::conche.errors.OfflineGapWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


def correlated(seed: int, noise_var: float, n_tasks: int = 12, n: int = 40) -> list[Task]:
    return conche.gaussian_tasks(
        n_tasks, n, 60, n_shared=60, noise_var=noise_var, correlation=0.8, seed=seed
    )


def taught(model: Any, tasks: list[Task]) -> Any:
    for task in tasks:
        model.partial_fit(task.X, task.y)
    return model


def weights(model: Any) -> Array:
    """Of all strengths, side by side."""
    return np.concatenate([state.weights for state in model.node_states()])


@pytest.mark.parametrize("noise_var", [0.001, 0.1, 10.0])
def test_close_to_the_best_strength(noise_var: float) -> None:
    """In the mean over streams, of what strengths differ by."""
    results = []
    for seed in range(5):
        tasks = correlated(seed, noise_var)
        model = taught(raw(4, solver=Memory(rank=30), n_rounds=20), tasks)
        each = [conche.generalization_error(w, tasks) for w in weights(model).T]
        results.append([*each, conche.generalization_error(model.coef_, tasks)])
    *fixed, chosen = np.mean(results, axis=0)
    assert chosen - min(fixed) <= 0.05 * (max(fixed) - min(fixed)), (chosen, fixed)


@pytest.mark.parametrize("rank", [30, 200])
def test_each_is_the_strength_it_stands_for(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = correlated(0, 0.1, 4)
    model = taught(raw(3, solver=Memory(rank=min(rank, 59))), tasks)
    for j, strength in enumerate(STRENGTHS):
        monkeypatch.setattr(principal, "STRENGTHS", (strength, strength))
        alone = taught(raw(3, solver=Memory(rank=min(rank, 59))), tasks)
        np.testing.assert_allclose(weights(model)[:, j], alone.coef_, rtol=1e-2, atol=1e-4)
        assert alone.damping_ == pytest.approx(strength, rel=0.5)  # columns of about variance one


def test_it_is_judged_by_predictions_made_before_learning() -> None:
    """For ever, from the first task on that the rank has no room for."""
    model, scores = raw(2, solver=Memory(rank=30)), np.zeros(len(STRENGTHS))
    chosen = set()
    for task in (*correlated(1, 0.1, 2), *correlated(2, 10.0)):
        before = weights(model) if hasattr(model, "state_") else np.zeros((60, len(STRENGTHS)))
        scores += 0.5 * np.mean((task.X @ before - task.y[:, None]) ** 2, axis=0)
        model.partial_fit(task.X, task.y)
        assert model.state_.judge.scores == pytest.approx(scores)
        first = len(model.tasks_) == 1
        best = model.state_.judge.evident if first else int(np.argmin(scores))
        assert np.array_equal(model.coef_, weights(model)[:, best])
        chosen.add(best)
    assert len(chosen) > 2


OWN = np.r_[:20, 21:61]  # of 60 columns on three nodes and an intercept


def likelihoods(X: Array, y: Array) -> Array:
    """Minus twice the restricted log likelihood for all strengths, by the definition, of columns of
    ridge one and targets with any mean."""
    n = len(y)
    Q = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:]  # no mean is left
    Z, z = Q.T @ X, Q.T @ y
    values = []
    for s in STRENGTHS:
        V = np.eye(n - 1) + Z @ Z.T / s
        values.append(np.linalg.slogdet(V)[1] + (n - 1) * np.log(z @ np.linalg.solve(V, z)))
    return np.array(values)


@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_while_all_rows_are_kept_the_likeliest_is_chosen(mean: float) -> None:
    """After every task, and whatever the targets' mean."""
    found = set()
    for seed in range(12):
        noise_var = 10.0 ** (seed % 4 - 2.5)
        tasks = correlated(seed, noise_var, n_tasks=3, n=16)
        model = conche.ConcheRegressor(3, solver=Memory(rank=50), scaling=None)
        for t, task in enumerate(tasks, start=1):
            model.partial_fit(task.X, task.y + mean)
            units = np.concatenate([state.kept["ridge"] for state in model.node_states()])[OWN]
            X = np.concatenate([task.X for task in tasks[:t]]) / np.sqrt(units)
            values = likelihoods(X, np.concatenate([task.y for task in tasks[:t]]))
            place = model.state_.judge.evident
            assert place is not None and values[place] <= values.min() + 0.5, (seed, t, values)
            found.add(place)
    assert len(found) >= 4


@pytest.mark.parametrize("n", [35, 50, 300])
def test_in_the_first_task_the_likeliest_is_chosen_whatever_the_rank(n: int) -> None:
    """Merged by columns, by rows, by range; the determinant is known nearly."""
    for seed in range(12):
        (task,) = correlated(seed, 10.0 ** (seed % 4 - 2.5), n_tasks=1, n=n)
        model = conche.ConcheRegressor(3, solver=Memory(rank=20), scaling=None)
        model.partial_fit(task.X, task.y)
        units = np.concatenate([state.kept["ridge"] for state in model.node_states()])[OWN]
        values = likelihoods(task.X / np.sqrt(units), task.y)
        place = model.state_.judge.evident
        assert place is not None
        assert values[place] - values.min() <= 0.1 * np.ptp(values), (seed, values)


def test_rounding_chooses_no_strength() -> None:
    """Targets that are one number; and samples too few to say anything."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 40):
        X = rng.standard_normal((n, 60))
        chosen = {
            conche.ConcheRegressor(2, solver=Memory(rank=50))
            .fit(X, np.full(n, value))
            .state_.judge.strength
            for value in (1.0, -3.7, 1e6)
        }
        assert len(chosen) == 1
    model = conche.ConcheRegressor(2, solver=Memory(rank=50))
    assert model.fit(X[:3], X[:3, 0]).state_.judge.strength == STRENGTHS[0] == 2


@pytest.mark.parametrize("rank", [5, 80])
def test_classes_that_come_later_and_saving(tmp_path: Path, rank: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 100)) + 1
    y = np.argmax(X[:, :3] + rng.standard_normal((90, 3)), axis=1)
    X, y = X[np.argsort(y)], np.sort(y)
    model = conche.ConcheClassifier(2, solver=Memory(rank=rank))
    for rows in np.array_split(np.arange(75), 3):
        model.partial_fit(X[rows], y[rows])
    assert model.coef_.shape == (3, 100)
    conche.save(model, tmp_path / "m")
    loaded = conche.load(tmp_path / "m")
    assert loaded.state_.judge == model.state_.judge and loaded.damping_ == model.damping_
    for one in (model, loaded):
        one.partial_fit(X[75:], y[75:])
    assert np.array_equal(loaded.coef_, model.coef_)


def test_one_strength_where_it_is_given_or_nothing_can_be_compared() -> None:
    X, y = np.random.default_rng(0).standard_normal((20, 9)), np.arange(20) % 2
    for solver, loss in (
        (Memory(rank=4, ridge=3.0), "squared"),
        (Memory(rank=0), "squared"),
        (Memory(), "squared"),
        (Memory(rank=4), "logistic"),
    ):
        model = conche.ConcheClassifier(2, solver=solver, loss=loss).fit(X, y)
        assert model.state_.judge.strengths == (1.0,)


def test_auto_is_no_damping() -> None:
    auto: Any = "auto"
    for solver, name in ((conche.Damped(damping=auto), "damping"), (Memory(ridge=auto), "ridge")):
        with pytest.raises(conche.ParameterError, match=f"{name}='auto' must be a number"):
            conche.CoCoARegressor(solver=solver).fit(np.ones((3, 2)), np.ones(3))
    with pytest.raises(conche.ParameterError, match="solver='exact' does not take ridge"):
        conche.CoCoARegressor().set_params(solver__ridge=1.0)
    net = conche.ElasticNet(auto, rank=0)
    with pytest.raises(conche.ParameterError, match="alpha='auto' needs a rank above 0"):
        conche.CoCoARegressor(solver=net).fit(np.ones((3, 2)), np.ones(3))
