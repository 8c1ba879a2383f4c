"""damping='auto': judged by tasks before they are learnt; close to the best of its grid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conche
from conche import Task
from conche.common.arrays import Array
from conche.nodes.solvers import Solver, SolverOption
from conche.nodes.solvers.damped import DampedSolver
from conche.nodes.solvers.principal import PrincipalMemory
from conche.nodes.solvers.strengths import STRENGTHS, Strengths

from .helpers.streams import beijing


class Fixed(SolverOption):
    """Some strengths of the default damping; None: all of them, as damping="auto" has it."""

    def __init__(self, base: Solver[Any], strength: float | None):
        self.base, self.strength = base, strength

    def solver(
        self, n_weights: int, seed: int, central: bool = True, sparse: bool = False
    ) -> Solver[Any]:
        each = STRENGTHS if self.strength is None else (self.strength,)
        if isinstance(self.base, PrincipalMemory):
            return replace(self.base, each=each)
        return Strengths(self.base, each)


def drifting(seed: int, scale: float) -> list[Task]:
    """Tasks of small and large signal, correlated columns: no damping is best for all of them."""
    return conche.gaussian_tasks(
        20, 40, 24, n_shared=18, noise_var=scale, correlation=0.5, seed=seed
    )


def weights(model: conche.CoCoARegressor) -> Array:
    """Of all strengths, side by side."""
    return np.concatenate([s.weights for s in model.node_states()])


@pytest.mark.parametrize("solver", ["damped", "memory"])
@pytest.mark.parametrize("noise", [0.01, 1.0, 10.0])
def test_close_to_the_best_and_never_worse_than_the_worst(solver: str, noise: float) -> None:
    results = []
    for seed in range(5):
        tasks = drifting(seed, noise)
        row = []
        for strength in (*STRENGTHS, None):
            base: Solver[Any] = DampedSolver() if solver == "damped" else PrincipalMemory()
            model = conche.CoCoARegressor(n_nodes=4, solver=Fixed(base, strength))
            for task in tasks:
                model.partial_fit(task.X, task.y)
            row.append(conche.generalization_error(model.coef_, tasks) - noise)
        results.append(row)
    *fixed, auto = np.mean(results, axis=0)
    assert auto <= max(fixed)
    # close to the best where the grid makes a difference
    assert auto - min(fixed) <= 0.25 * (max(fixed) - min(fixed)), (auto, fixed)


def test_each_group_is_the_fixed_damping_it_stands_for() -> None:
    tasks = drifting(0, 0.1)
    auto = conche.CoCoARegressor(n_nodes=3, solver=conche.Damped("auto"), n_rounds=2)
    for task in tasks[:6]:
        auto.partial_fit(task.X, task.y)
    for j, strength in enumerate(STRENGTHS):
        fixed = Fixed(DampedSolver(), strength)
        alone = conche.CoCoARegressor(n_nodes=3, solver=fixed, n_rounds=2)
        for task in tasks[:6]:
            alone.partial_fit(task.X, task.y)
        assert weights(auto)[:, j] == pytest.approx(alone.coef_, rel=1e-10)


def test_it_is_judged_by_predictions_made_before_learning() -> None:
    tasks = drifting(1, 0.1)
    model = conche.CoCoARegressor(n_nodes=2, solver=conche.Damped("auto"))
    scores = np.zeros(len(STRENGTHS))
    for task in tasks[:5]:
        if hasattr(model, "state_"):
            scores += 0.5 * np.mean((task.X @ weights(model) - task.y[:, None]) ** 2, axis=0)
        else:
            scores += 0.5 * np.mean(task.y**2)
        model.partial_fit(task.X, task.y)
    chosen = int(np.argmin(scores))
    assert model.state_.judge.scores == pytest.approx(scores)
    assert np.array_equal(model.coef_, weights(model)[:, chosen])


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_classes_intercept_and_saving(tmp_path: Path, loss: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 7)) + 1
    y = np.argmax(X[:, :3] + rng.standard_normal((90, 3)), axis=1)
    model = conche.CoCoAClassifier(
        n_nodes=2,
        loss=loss,
        solver=conche.Damped("auto"),
        fit_intercept=True,
        scaling="first",
        n_rounds=5,
    )
    for part in range(3):
        rows = slice(30 * part, 30 * part + 30)
        model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    assert model.coef_.shape == (3, 7) and np.shape(model.intercept_) == (3,)
    conche.save(model, tmp_path / "m")
    loaded = conche.load(tmp_path / "m")
    assert np.array_equal(loaded.coef_, model.coef_) and loaded.damping_ == model.damping_
    for one in (model, loaded):
        one.partial_fit(X[:30], y[:30])
    assert np.array_equal(loaded.coef_, model.coef_)


@pytest.mark.parametrize("sums", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_rounding_chooses_no_strength(n: int, sums: bool) -> None:
    """Targets that are one number; one sample, of which a gain is as large as its luck."""
    rng, solver = np.random.default_rng(n), conche.Memory(sums=sums)
    for value in (1.0, -3.7, 1e6, 0.0):
        model = conche.ConcheRegressor(n_nodes=2, solver=solver)
        assert model.fit(rng.standard_normal((n, 4)), np.full(n, value)).state_.judge.strength == 1
    for _ in range(20):
        X = rng.standard_normal((1, 4))
        model = conche.CoCoARegressor(2, solver=solver, steps="cg").fit(X, X[:, 0])
        assert model.state_.judge.strength >= 1


def test_auto_is_for_solvers_that_have_damping() -> None:
    auto: Any = "auto"
    with pytest.raises(conche.ParameterError, match="solver='exact' does not take damping"):
        conche.CoCoARegressor().set_params(solver__damping=auto)
    net = conche.ElasticNet(auto, rank=0)
    with pytest.raises(conche.ParameterError, match="alpha='auto' needs a rank above 0"):
        conche.CoCoARegressor(solver=net).fit(np.ones((3, 2)), np.ones(3))


def test_beijing_by_itself() -> None:
    train, test = beijing()
    model = conche.CoCoARegressor(n_nodes=12, solver=conche.Damped("auto"))
    for task in train:
        model.partial_fit(task.X, task.y)
    errors = [np.mean((t.X @ model.coef_ - t.y) ** 2) for t in test]
    assert np.mean(errors) <= 0.46
