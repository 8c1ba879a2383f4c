"""damping='auto': judged by tasks before they are learnt; close to the best of its grid."""

from __future__ import annotations

import numpy as np
import pytest

import conche
from conche.solvers import Auto, Curvature, Damped
from conche.solvers.auto import STRENGTHS

from .streams import beijing


def drifting(seed, scale):
    """Tasks of small and large signal, correlated columns: no damping is best for all of them."""
    return conche.gaussian_tasks(
        20, 40, 24, n_shared=18, noise_var=scale, correlation=0.5, seed=seed
    )


@pytest.mark.parametrize("solver", ["damped", "memory"])
@pytest.mark.parametrize("noise", [0.01, 1.0, 10.0])
def test_close_to_the_best_and_never_worse_than_the_worst(solver, noise):
    results = []
    for seed in range(5):
        tasks = drifting(seed, noise)
        row = []
        for strength in (*STRENGTHS, None):
            model = conche.CoCoARegressor(n_nodes=4, solver=solver)
            base = Damped() if solver == "damped" else Curvature(0)
            solver_object = Auto(base) if strength is None else Auto(base, (strength,))
            model.set_params(solver=solver_object)
            for task in tasks:
                model.partial_fit(task.X, task.y)
            row.append(conche.generalization_error(model.coef_, tasks) - noise)
        results.append(row)
    *fixed, auto = np.mean(results, axis=0)
    assert auto <= max(fixed)
    # close to the best where the grid makes a difference
    assert auto - min(fixed) <= 0.25 * (max(fixed) - min(fixed)), (auto, fixed)


def test_each_group_is_the_fixed_damping_it_stands_for():
    tasks = drifting(0, 0.1)
    auto = conche.CoCoARegressor(n_nodes=3, solver="damped", damping="auto", n_rounds=2)
    for task in tasks[:6]:
        auto.partial_fit(task.X, task.y)
    for j, strength in enumerate(STRENGTHS):
        alone = conche.CoCoARegressor(n_nodes=3, solver=Auto(Damped(), (strength,)), n_rounds=2)
        for task in tasks[:6]:
            alone.partial_fit(task.X, task.y)
        states = [s.weights[:, j] for s in auto._nodes.states()]
        assert np.concatenate(states) == pytest.approx(alone.coef_, rel=1e-10)


def test_it_is_judged_by_predictions_made_before_learning():
    tasks = drifting(1, 0.1)
    model = conche.CoCoARegressor(n_nodes=2, solver="damped", damping="auto")
    scores = np.zeros(len(STRENGTHS))
    for task in tasks[:5]:
        if model.__dict__.get("n_tasks_seen_"):
            W = np.concatenate([s.weights for s in model._nodes.states()])
            scores += 0.5 * np.mean((task.X @ W - task.y[:, None]) ** 2, axis=0)
        else:
            scores += 0.5 * np.mean(task.y**2)
        model.partial_fit(task.X, task.y)
    chosen = int(np.argmin(scores))
    W = np.concatenate([s.weights for s in model._nodes.states()])
    assert model._scores == pytest.approx(scores)
    assert np.array_equal(model.coef_, W[:, chosen])


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_classes_intercept_and_saving(tmp_path, loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 7)) + 1
    y = np.argmax(X[:, :3] + rng.standard_normal((90, 3)), axis=1)
    model = conche.CoCoAClassifier(n_nodes=2, loss=loss, solver="damped", damping="auto",
                                   fit_intercept=True, scaling="first", n_rounds=5)  # fmt: skip
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


def test_auto_is_for_solvers_that_have_damping():
    with pytest.raises(ValueError, match="damping='auto' is for"):
        conche.CoCoARegressor(damping="auto").fit(np.ones((3, 2)), np.ones(3))


def test_beijing_by_itself():
    train, test = beijing()
    model = conche.CoCoARegressor(n_nodes=12, solver="damped", damping="auto")
    for task in train:
        model.partial_fit(task.X, task.y)
    errors = [np.mean((t.X @ model.coef_ - t.y) ** 2) for t in test]
    assert np.mean(errors) <= 0.46
