"""Scaling and filling: node by node, nothing leaks, nothing learnt is lost when a scale changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import conche
from conche import Memory, Task
from conche.common.arrays import Array, with_ones
from conche.nodes import Scaling
from conche.nodes.spread import Spread


def stream(
    n_tasks: int = 6, n: int = 60, p: int = 8, seed: int = 0, units: Array | None = None
) -> list[Task]:
    tasks = conche.gaussian_tasks(n_tasks, n, p, n_shared=p, noise_var=0.05, seed=seed)
    units = np.ones(p) if units is None else units
    return [conche.Task(t.X * units + 5 * units, t.y) for t in tasks]


def test_standardised_by_hand_is_standardised_by_the_nodes() -> None:
    tasks = stream(units=10.0 ** np.arange(-3, 5))
    first = tasks[0].X
    by_hand = conche.ConcheRegressor(n_nodes=3, fit_intercept=True)
    by_nodes = conche.ConcheRegressor(n_nodes=3, fit_intercept=True, scaling="first")
    for task in tasks:
        by_hand.partial_fit((task.X - first.mean(0)) / first.std(0), task.y)
        by_nodes.partial_fit(task.X, task.y)
    X = tasks[-1].X
    expected = by_hand.predict((X - first.mean(0)) / first.std(0))
    assert by_nodes.predict(X) == pytest.approx(expected, rel=1e-8)
    assert X @ by_nodes.coef_ + by_nodes.intercept_ == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("solver", ["exact", "damped", "memory"])
def test_units_and_origins_do_not_matter_once_standardised(solver: str) -> None:
    units = 10.0 ** np.array([-6, 6, 0, 3, -3, 1, 2, -1])
    fitted = []
    for scale in (np.ones(8), units):
        model = conche.CoCoARegressor(
            n_nodes=2, solver=solver, n_rounds=3, fit_intercept=True, scaling="running"
        )
        tasks = stream(units=scale)
        for task in tasks:
            model.partial_fit(task.X, task.y)
        fitted.append(model.predict(tasks[0].X))
    assert fitted[0] == pytest.approx(fitted[1], rel=1e-6)


@pytest.mark.parametrize("K", [1, 3])
def test_a_running_scale_changes_nothing_that_was_learnt(K: int) -> None:
    """The first task is a thousand times smaller: weights and curvature take the new unit.

    One node is recursive least squares whatever the units: it ends where it ends unscaled."""
    options: dict[str, Any] = dict(n_nodes=K, solver=Memory(rank=0, ridge=1e-9), n_rounds=60)
    scaled = conche.ConcheRegressor(scaling="running", **options)
    plain = conche.ConcheRegressor(scaling=None, **options)
    for i, task in enumerate(conche.gaussian_tasks(6, 60, 8, n_shared=8, noise_var=0.0)):
        X = (task.X - task.X.mean(0)) * (1e-3 if i == 0 else 1 + i)  # so that no centre moves
        y = X @ task.weights + 0.01 * (i + 1) * np.sin(np.arange(60))
        scaled.partial_fit(X, y)
        plain.partial_fit(X, y)
    tolerance = 1e-5 if K == 1 else 0.01
    assert np.linalg.norm(scaled.coef_ - plain.coef_) <= tolerance * np.linalg.norm(plain.coef_)


def test_numbers_are_those_of_all_samples_together() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 3)) * [1, 10, 100] + [5, 0, -7]
    X[rng.random(X.shape) < 0.2] = np.nan
    scaling = Scaling("running", "mean")
    numbers: Mapping[str, Array] = {}
    for part in np.array_split(X, 7):
        block, numbers, *_ = scaling.apply(part, numbers)
        assert np.all(np.isfinite(block))
    count, mean, deviations, lowest, highest = numbers["seen"]
    assert np.array_equal(count, np.sum(~np.isnan(X), axis=0))
    assert mean == pytest.approx(np.nanmean(X, axis=0))
    assert deviations == pytest.approx(np.nanvar(X, axis=0) * count)
    assert np.array_equal([lowest, highest], [np.nanmin(X, axis=0), np.nanmax(X, axis=0)])
    assert numbers["scale"] == pytest.approx(np.nanstd(X, axis=0))


def test_first_waits_until_a_column_has_shown_itself() -> None:
    scaling = Scaling("first")
    rng = np.random.default_rng(2)
    first = np.column_stack([rng.standard_normal(20) * 3, np.full(20, 4.0)])
    _, numbers, *_ = scaling.apply(first, {})
    assert numbers["scale"][1] == 1.0  # constant so far: harmless
    later = rng.standard_normal((20, 2)) * [4, 100]
    _, numbers2, *_ = scaling.apply(later, numbers)
    assert numbers2["scale"][0] == numbers["scale"][0]  # fixed
    assert numbers2["scale"][1] == pytest.approx(np.std(np.r_[first[:, 1], later[:, 1]]))
    _, numbers3, *_ = scaling.apply(later, numbers2)
    assert np.array_equal(numbers3["scale"], numbers2["scale"])
    ratio = scaling.apply(later * [100, 1], numbers3).rescaled  # another column than it was
    assert ratio is not None and ratio[0] > 1.5 and ratio[1] == 1
    few = scaling.apply(first[:5], {}).numbers
    assert np.array_equal(few["scale"], [1, 1])  # too few to know


def test_missing_values_are_filled_with_the_mean_and_stay_so_in_a_saved_model(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(3)
    model = conche.ConcheRegressor(n_nodes=2, missing="mean", scaling="first", fit_intercept=True)
    for task in stream(p=6):
        X = task.X.copy()
        X[rng.random(X.shape) < 0.1] = np.nan
        model.partial_fit(X, task.y)
    conche.save(model, tmp_path / "m.conche")
    loaded = conche.load(tmp_path / "m.conche")
    X[0] = np.nan
    assert model.state_.coefficients is not None
    filled = np.where(np.isnan(X), model.state_.coefficients.means, X)
    assert loaded.predict(X) == pytest.approx(filled @ model.coef_ + model.intercept_)
    loaded.partial_fit(X, task.y)  # and it goes on as the other does
    model.partial_fit(X, task.y)
    assert np.array_equal(loaded.coef_, model.coef_)
    with pytest.raises(ValueError, match="NaN"):
        conche.ConcheRegressor().partial_fit(X, task.y)


def test_bad_settings_and_sparse_columns_are_refused() -> None:
    X, y = sparse.random_array((20, 4), density=0.5, rng=0), np.ones(20)
    settings: list[dict[str, Any]] = [
        {"scaling": "last"},
        {"missing": "zero"},
        {"missing": "mean"},
    ]
    for bad in settings:
        with pytest.raises(ValueError, match="scaling|missing"):
            conche.ConcheRegressor(**bad).partial_fit(X, y)
    model = conche.ConcheRegressor().partial_fit(X, y)
    model.scaling = None
    with pytest.raises(ValueError, match="the scaling of a stream cannot change"):
        model.partial_fit(X, y)
    model = conche.CoCoARegressor(scaling="first").partial_fit(X.toarray(), y)
    with pytest.raises(ValueError, match="sparse columns, but the stream began with dense ones"):
        model.partial_fit(X, y)


def test_sparse_columns_are_left_as_they_are() -> None:
    X, y = sparse.random_array((60, 5), density=0.5, rng=0, format="csr"), np.arange(60.0)
    model = conche.ConcheRegressor(n_nodes=2, solver=conche.Memory(ridge=1.0))
    for part in (X[:30], X[30:].toarray()):  # nor are dense ones then
        rows = slice(0, 30) if sparse.issparse(part) else slice(30, 60)
        model.partial_fit(part, y[rows])
    A = X.toarray() - X.toarray().mean(axis=0)
    w = np.linalg.solve(A.T @ A + np.eye(5), A.T @ (y - y.mean()))
    assert model.coef_ == pytest.approx(w, rel=1e-7)


def test_errors_before_and_after_each_task_are_recorded() -> None:
    tasks = stream()
    model = conche.ConcheRegressor(n_nodes=2, solver=Memory(ridge=1.0))
    for i, task in enumerate(tasks):
        expected = np.mean(task.y**2) if i == 0 else np.mean((model.predict(task.X) - task.y) ** 2)
        conche.train(model, [task])
        record = model.tasks_[-1]
        assert record["task"] == i + 1 and record["samples"] == 60
        assert record["before"] == pytest.approx(expected)
        assert record["after"] == pytest.approx(np.mean((model.predict(task.X) - task.y) ** 2))
        assert record["bytes"] == model.history_[-1]["bytes"] == 8 * task.X.size


@pytest.mark.parametrize("solver", ["exact", "damped", "memory"])
def test_filling_what_is_not_missing_changes_nothing(solver: str) -> None:
    models = [
        conche.CoCoARegressor(n_nodes=2, solver=solver, missing=m) for m in ("mean", "refuse")
    ]
    for i, task in enumerate(stream()):
        for model in models:
            model.partial_fit(task.X * (1 + i), task.y)
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert [t["before"] for t in models[0].tasks_] == [t["before"] for t in models[1].tasks_]


@pytest.mark.parametrize("scaling", ["first", "running"])
@pytest.mark.parametrize("n_nodes", [1, 3])
def test_means_that_drift_make_nothing_forgotten(scaling: str, n_nodes: int) -> None:
    """y = Xw + 3 without noise, the columns' means anywhere: every task must stay solved."""
    rng = np.random.default_rng(4)
    w = rng.standard_normal(6)
    tasks = [rng.standard_normal((60, 6)) * (1 + i) + m for i, m in enumerate((0, 2, -1, 5, 10))]
    model = conche.ConcheRegressor(n_nodes=n_nodes, fit_intercept=True, scaling=scaling)
    for X in tasks:
        ahead = model.predict(X) if hasattr(model, "coef_") else np.zeros(60)
        conche.train(model, [Task(X, X @ w + 3)])
        assert model.tasks_[-1]["before"] == pytest.approx(np.mean((ahead - X @ w - 3) ** 2))
    assert max(np.mean((model.predict(X) - X @ w - 3) ** 2) for X in tasks) < 0.02


@pytest.mark.parametrize("scaling", ["first", "running"])
def test_a_column_that_was_constant_and_then_is_not(scaling: str) -> None:
    rng = np.random.default_rng(5)
    model = conche.ConcheRegressor(fit_intercept=True, scaling=scaling)
    tasks = []
    for level, spread in ((7, 0), (1000, 1), (990, 5)):
        X = rng.standard_normal((50, 3))
        X[:, 2] = level + spread * X[:, 2]
        tasks.append((X, X[:, 0] + X[:, 2]))
        model.partial_fit(*tasks[-1])
    assert max(np.mean((model.predict(X) - y) ** 2) for X, y in tasks) < 0.5
    assert model.coef_ == pytest.approx([1, 0, 1], abs=1e-3)


@pytest.mark.parametrize("value", [1.21883593, 5.70454218, 1e9 / 3, -0.1])
def test_a_constant_column_has_no_weight(value: float) -> None:
    """Whatever its mean rounds to, what is left of it is not a column."""
    rng = np.random.default_rng(0)
    for n in (9, 24, 63, 101):
        X = np.column_stack([rng.standard_normal((n, 3)), np.full(n, value)])
        model = conche.ConcheRegressor(n_nodes=2)
        for _ in range(3):
            model.partial_fit(X, X[:, 0] + rng.standard_normal(n))
        assert model.coef_[3] == 0 and np.max(np.abs(model.coef_)) < 3


def test_sparse_columns_and_float32_after_float64_are_taken() -> None:
    task = stream(p=6)[0]
    model = conche.ConcheRegressor(missing="mean").partial_fit(task.X.astype(np.float32), task.y)
    assert model.predict(sparse.csr_array(task.X.astype(np.float32))).shape == (60,)
    more = stream(p=6)[1]
    dense, mixed = (conche.ConcheRegressor().partial_fit(task.X, task.y) for _ in range(2))
    dense.partial_fit(more.X, more.y)
    mixed.partial_fit(sparse.csr_array(more.X), more.y)
    np.testing.assert_allclose(mixed.coef_, dense.coef_, rtol=1e-9)
    features = conche.CosineFeatures(9).fit(task.X)
    model = conche.ConcheRegressor(n_nodes=2)
    model.partial_fit(features.columns(task.X.astype(np.float32)), task.y)
    model.partial_fit(features.columns(task.X), task.y)
    assert model.coef_.dtype == np.float32


@pytest.mark.parametrize("weights", [None, np.r_[np.zeros(3), np.ones(197)]])
def test_a_column_that_hardly_ever_leaves_its_mean_counts_for_its_farthest_sample(
    weights: Array | None,
) -> None:
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.standard_normal(200), np.zeros(200), 5.0 + (rng.random(200) < 0.1)])
    X[100, 1] = -8.0
    X[0, 1] = 1e6 if weights is not None else 0.0  # weighs nothing
    seen = Spread.of(X, weights=weights)
    w = np.ones(200) if weights is None else weights
    far = np.abs(X - np.average(X, axis=0, weights=w))[w > 0].max(axis=0)
    variance = np.average((X - np.average(X, axis=0, weights=w)) ** 2, axis=0, weights=w)
    np.testing.assert_allclose(seen.sizes, np.maximum(variance, (0.25 * far) ** 2))
    assert seen.sizes[0] == pytest.approx(variance[0]) and seen.sizes[1] > 10 * variance[1]
    if weights is None:
        thin = Spread.of(sparse.csr_array(X))
        np.testing.assert_allclose(thin.to_array(), seen.to_array(), atol=1e-12)
        parts = Spread.nothing(3)
        for part in np.array_split(X, 7):
            parts = parts.joined(Spread.of(part))
        np.testing.assert_allclose(parts.sizes, seen.sizes)
        np.testing.assert_allclose(seen.rescaled(np.full(3, 10.0)).sizes, seen.sizes / 100)


@pytest.mark.parametrize("scale", [None, "own"])
def test_one_look_sees_what_two_see(scale: str | None) -> None:
    """Columns are centred and looked at in one pass; the plain way is to look at them first."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((700, 6)) * [1, 1e-6, 1e6, 1, 1, 1] + [0, 1e-3, 3e6, 1e4, 0, 0]
    X[:, 4], X[:, 5] = 0.1, rng.random(700) < 0.01
    centre = X.mean(axis=0) + 0.3 * X.std(axis=0)
    by = np.ones(6) if scale is None else 1 + X.std(axis=0)
    out = np.empty_like(X)
    seen, squares = Spread.centred(X, centre, out, None if scale is None else by)
    np.testing.assert_allclose(out, (X - centre) / by, rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(squares, np.sum(out**2, axis=0), rtol=1e-12)
    plain = Spread.of(X)
    size = np.abs(X).max(axis=0)
    units = [np.ones(6), size, size**2, size, size]
    for now, then, unit in zip(seen.to_array(), plain.to_array(), units, strict=True):
        np.testing.assert_allclose(now / unit, then / unit, rtol=1e-9, atol=1e-12)
    assert seen.mean[4] == seen.lowest[4] == 0.1  # a constant is its own mean
    moved, ready = seen.moved(centre, 1 / by).with_ones(700), with_ones(out)
    for now, then in zip(moved.to_array(), Spread.of(ready).to_array(), strict=True):
        np.testing.assert_allclose(now, then, rtol=1e-9, atol=1e-9 * np.abs(then).max())


def test_columns_that_keep_their_units_are_the_scaled_ones() -> None:
    rng = np.random.default_rng(6)
    first = rng.standard_normal((50, 4)) * [1, 100, 1, 1] + [0, 5, 1e3, 2]
    first[:, 3] = 2.0
    later = first[:30] * [1, 1, 7, 1]  # varies more than it did: its scale changes
    scaling = Scaling("first", centred=True)
    numbers: Mapping[str, Array] = {}
    others: Mapping[str, Array] = {}
    for part in (first, later):
        plain = scaling.apply(part, numbers, ones=True)
        stretched = scaling.apply(part, others, ones=True, stretched=True)
        assert plain.by is None and stretched.by is not None
        assert plain.squares is not None and stretched.squares is not None
        np.testing.assert_allclose(stretched.block * stretched.by, plain.block, rtol=1e-12)
        np.testing.assert_allclose(stretched.squares, plain.squares, rtol=1e-12)
        numbers, others = plain.numbers, stretched.numbers
    np.testing.assert_allclose(others["scale"], numbers["scale"], rtol=1e-13)
