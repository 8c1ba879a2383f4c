"""A ridge that is given is used as given; `ridge_` is what it says, however the rows came."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

import conche
from conche import Memory
from conche.common.arrays import Array
from conche.network import Network
from conche.network.ray import RayNetwork

from .helpers.long_double import Wide, discounted, needs_long_double

HERE = Path(__file__).parents[1]
MPIEXEC = Path(sys.executable).with_name("mpiexec")
UNITS = 10.0 ** np.linspace(0, 7, 12)
STRENGTHS = (1e-3, 1.0, 1e3)


class Rows(NamedTuple):
    X: Array
    y: Array
    v: Array | None = None

    def part(self, rows: Array) -> Rows:
        return Rows(self.X[rows], self.y[rows], None if self.v is None else self.v[rows])


def rows(seed: int = 0, n: int = 300, outputs: int = 1, weighed: bool = False) -> Rows:
    """Correlated columns in units from 1 to 1e7, with means of their own."""
    rng = np.random.default_rng(seed)
    p = len(UNITS)
    Z = rng.standard_normal((n, p)) @ (np.eye(p) + 0.3 * rng.standard_normal((p, p)))
    Y = Z @ rng.standard_normal((p, outputs)) + rng.standard_normal((n, outputs)) + 2
    v = rng.uniform(0.1, 3, n) if weighed else None
    return Rows((Z + rng.standard_normal(p)) * UNITS, Y if outputs > 1 else Y[:, 0], v)


def learnt(data: Rows, n_nodes: int = 1, cuts: Sequence[int] = (7, 50, 200), **options: Any) -> Any:
    """After tasks that end at ``cuts``, and one with the rest."""
    model = conche.ConcheRegressor(n_nodes, **options)
    for some in np.split(np.arange(len(data.y)), [cut for cut in cuts if cut < len(data.y)]):
        model.partial_fit(*data.part(some))
    return model


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference over the largest number; of what is zero, the difference."""
    return float(np.max(np.abs(ours - theirs)) / (np.max(np.abs(theirs)) or 1.0))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_nodes", [1, 4])
@pytest.mark.parametrize("ridge", STRENGTHS)
@pytest.mark.parametrize(("outputs", "weighed"), [(1, False), (3, False), (1, True), (2, True)])
def test_without_scaling_it_is_ridge(
    ridge: float, n_nodes: int, intercept: bool, outputs: int, weighed: bool
) -> None:
    data = rows(outputs=outputs, weighed=weighed)
    options: dict[str, Any] = {"scaling": None, "fit_intercept": intercept}
    model = learnt(data, n_nodes=n_nodes, solver=Memory(ridge=ridge), **options)
    theirs = Ridge(alpha=ridge, fit_intercept=intercept).fit(data.X, data.y, data.v)
    assert apart(model.coef_ * UNITS, theirs.coef_ * UNITS) <= 1e-9
    assert apart(model.intercept_, theirs.intercept_) <= 1e-9
    np.testing.assert_allclose(model.ridge_, np.full(model.coef_.shape, ridge), rtol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_nodes", [1, 4])
@pytest.mark.parametrize("ridge", STRENGTHS)
@pytest.mark.parametrize("n", [10, 300])
@pytest.mark.parametrize(("outputs", "weighed"), [(1, False), (3, False), (1, True), (2, True)])
def test_with_standard_columns_it_is_standard_scaler_and_ridge(
    ridge: float, n_nodes: int, intercept: bool, n: int, outputs: int, weighed: bool
) -> None:
    """Without an intercept, columns are divided by their deviation and not centred."""
    data = rows(n=n, outputs=outputs, weighed=weighed)
    options: dict[str, Any] = {"scaling": "standard", "fit_intercept": intercept}
    model = learnt(data, n_nodes=n_nodes, solver=Memory(ridge=ridge), **options)
    scaler = StandardScaler(with_mean=intercept).fit(data.X, sample_weight=data.v)
    theirs = Ridge(alpha=ridge, fit_intercept=intercept)
    theirs.fit(scaler.transform(data.X), data.y, data.v)
    assert apart(model.coef_ * scaler.scale_, theirs.coef_) <= 1e-9
    origin = theirs.intercept_ - (theirs.coef_ / scaler.scale_) @ (intercept * scaler.mean_)
    assert apart(model.intercept_, origin) <= 1e-9
    expected = np.broadcast_to(ridge * scaler.var_, model.coef_.shape)
    np.testing.assert_allclose(model.ridge_, expected, rtol=1e-9)


@needs_long_double
@pytest.mark.parametrize("ridge", [None, 1.0])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("scaling", [None, "first", "standard"])
@pytest.mark.parametrize("discount", [1.0, 0.8])
def test_the_weights_minimise_what_ridge_says(
    ridge: float | None, intercept: bool, scaling: str | None, discount: float
) -> None:
    """The gradient of the squared errors and of the ridge is zero, in every column and output."""
    data, cuts = rows(outputs=2, weighed=True), (40, 90)
    solver = Memory(ridge=ridge, discount=discount)
    model = learnt(data, 3, cuts, solver=solver, scaling=scaling, fit_intercept=intercept)
    assert model.ridge_.shape == model.coef_.shape and np.all(model.ridge_ > 0)
    assert data.v is not None
    v = discounted(np.split(data.v, cuts), discount)[:, None]
    W = model.coef_.astype(Wide).T
    left = data.y - data.X @ W - model.intercept_
    size = np.sqrt(np.sum(v * data.X.astype(Wide) ** 2, axis=0))
    level = np.sqrt(np.sum(v * data.y**2, axis=0))
    gradient = data.X.T @ (v * left) - model.ridge_.T * W
    assert np.max(np.abs(gradient) / size[:, None] / level) <= 1e-9
    if intercept:
        assert np.max(np.abs(np.sum(v * left, axis=0)) / level) <= 1e-9 * np.sqrt(v.sum())


@pytest.mark.parametrize("given", [None, 1.0])
def test_what_never_varied_has_no_ridge_or_no_weights(given: float | None) -> None:
    """A constant column: ridge 0 and weight 0. A constant target: ridge inf, and all weights 0."""
    X, y, _ = rows(outputs=2)
    X[:, [2, 5]], y[:, 1] = (0.1, 0.0), 0.3
    model = learnt(Rows(X, y), 2, solver=Memory(ridge=given))
    varied = ~np.isin(np.arange(len(UNITS)), (2, 5))
    assert np.array_equal(model.ridge_[0] > 0, varied)
    assert np.array_equal(model.coef_[0] != 0, varied)
    assert np.all(np.isinf(model.ridge_[1])) and not np.any(model.coef_[1])
    assert model.predict(X)[:, 1] == pytest.approx(np.full(len(X), 0.3), rel=1e-14)


def spread(predictions: Array, reference: Array) -> float:
    """The largest difference of two predictions over the deviation of one, of the worst output."""
    deviation: Array = np.std(reference, axis=0)
    return float(np.max(np.abs(predictions - reference) / deviation))


@pytest.mark.parametrize("n", [9, 30, 300])
@pytest.mark.parametrize("intercept", [True, False])
def test_neither_order_nor_tasks_nor_nodes_matter(n: int, intercept: bool) -> None:
    """Evidence chooses the ridge, from the same rows each time."""
    data, rng = rows(1, n, outputs=2, weighed=True), np.random.default_rng(n)
    first = learnt(data, cuts=(), fit_intercept=intercept)
    expected = first.predict(data.X)
    for n_nodes in (1, 2, 4, 12):
        for _ in range(3):
            mixed = data.part(rng.permutation(n))
            cuts = np.unique(rng.integers(1, n, rng.integers(0, 8))).tolist()
            model = learnt(mixed, n_nodes, cuts, fit_intercept=intercept)
            assert spread(model.predict(data.X), expected) <= 1e-9
            np.testing.assert_allclose(model.ridge_, first.ridge_, rtol=1e-6)


def differences(network: Network | str) -> float:
    """Of models on a network, and of one that learns the same rows at once in this process."""
    worst = 0.0
    for seed, intercept, ridge in ((0, True, None), (1, False, None), (2, True, 3.0)):
        data = rows(seed, 120, outputs=2, weighed=True)
        options: dict[str, Any] = {"fit_intercept": intercept, "solver": Memory(ridge=ridge)}
        here, there = learnt(data, 1, (), **options), learnt(data, 4, network=network, **options)
        worst = max(worst, spread(there.predict(data.X), here.predict(data.X)))
    return worst


def test_ray_predicts_the_same(network: RayNetwork) -> None:
    assert differences(network) <= 1e-9


@pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists(),
    reason="mpi4py and an mpiexec beside python are not installed (conche[mpi])",
)
def test_mpi_predicts_the_same() -> None:
    script = (
        "from tests.test_given_ridge import differences as d; assert d('mpi') <= 1e-9, d('mpi')"
    )
    command = [str(MPIEXEC), "-n", "2", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE, timeout=100)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 1e-30, 1e-9])
def test_too_weak_a_ridge_for_few_rows_is_refused(ridge: float, intercept: bool) -> None:
    """The weights would be rounding; what is strong enough is used, as scikit-learn would."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 50)), rng.standard_normal(6)
    options: dict[str, Any] = {"fit_intercept": intercept, "scaling": None}
    weak = conche.ConcheRegressor(2, solver=Memory(ridge=ridge), **options).fit(X, y)
    with pytest.raises(conche.ParameterError, match="too weak for fewer rows than columns"):
        _ = weak.coef_
    given = conche.ConcheRegressor(2, solver=Memory(ridge=1e-3), **options).fit(X, y)
    expected = Ridge(alpha=1e-3, fit_intercept=intercept).fit(X, y)
    np.testing.assert_allclose(given.coef_, expected.coef_, rtol=1e-9)
