"""scikit-learn's contract, and a model that survives bad input."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info

import conche
from conche.common.arrays import Array
from conche.network import LocalNetwork

HALF: Any = 2.5  # what types would refuse

ESTIMATORS = [
    conche.CoCoARegressor(),
    conche.CoCoARegressor(solver="damped", n_rounds=20, fit_intercept=True),
    conche.CoCoARegressor(n_rounds=5, steps="cg"),
    conche.ConcheRegressor(),
    conche.ConcheRegressor(solver=conche.Memory(ridge=1.0)),
    conche.ConcheRegressor(solver=conche.Memory(rank=3), fit_intercept=True),
    conche.CoCoARegressor(solver=conche.ElasticNet(0.01), steps="adaptive", n_rounds=5),
    conche.CoCoAClassifier(),
    conche.CoCoAClassifier(loss="logistic", n_rounds=20),
    conche.ConcheClassifier(),
    conche.ConcheClassifier(solver=conche.Memory(ridge=1.0)),
    conche.ConcheClassifier(loss="logistic", fit_intercept=True),
    conche.CosineFeatures(20),
]


Test = TypeVar("Test", bound=Callable[..., None])


def not_promised(estimator: Any) -> dict[str, str]:
    """Checks that ask for what we do not say."""
    if getattr(estimator, "solver", None) == "memory" and estimator.loss == "squared":
        why = "the ridge is chosen for fewer rows where weights differ (Kish); a given one is not"
        checks = ("dense", "sparse")
        return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in checks}
    if isinstance(getattr(estimator, "solver", None), conche.Memory) and estimator.solver.rank:
        return {
            "check_sample_weight_equivalence_on_sparse_data": "more rows are merged otherwise",
        }
    if type(estimator) is conche.CoCoAClassifier:  # Algorithm 1 has no intercept to move
        return {"check_class_weight_classifiers": "without an intercept labels cannot move"}
    return {}


every_check: Callable[[Test], Test] = parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=not_promised
)


@every_check
@pytest.mark.filterwarnings("ignore::conche.NearSquareWarning")
@pytest.mark.filterwarnings("ignore:.*array API.*")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def data(n: int = 30, p: int = 8, outputs: int | None = None, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    shape = n if outputs is None else (n, outputs)
    return rng.standard_normal((n, p)), rng.standard_normal(shape)


@pytest.mark.parametrize(
    "model", [conche.CoCoARegressor(n_nodes=3), conche.ConcheRegressor(n_nodes=3)]
)
def test_fit_starts_over_and_partial_fit_goes_on(model: Any) -> None:
    (X, y), (X2, y2) = data(), data(seed=1)
    once = clone(model).fit(X, y)
    twice = clone(model).fit(X2, y2).fit(X, y)
    assert np.array_equal(once.coef_, twice.coef_)
    assert twice.n_tasks_seen_ == 1
    on = clone(model).fit(X, y).partial_fit(X2, y2)
    assert on.n_tasks_seen_ == 2
    assert not np.allclose(on.coef_, once.coef_)


@pytest.mark.parametrize("make", [conche.CoCoARegressor, conche.ConcheRegressor])
def test_two_dimensional_targets_are_columns_of_one_dimensional_ones(make: Any) -> None:
    X, Y = data(outputs=3)
    X2, Y2 = data(seed=1, outputs=3)
    model = make(n_nodes=3)
    together = clone(model).partial_fit(X, Y).partial_fit(X2, Y2)
    assert together.coef_.shape == (3, 8)
    assert together.predict(X).shape == (30, 3)
    for j in range(3):
        alone = clone(model).partial_fit(X, Y[:, j]).partial_fit(X2, Y2[:, j])
        np.testing.assert_allclose(together.coef_[j], alone.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [conche.CoCoARegressor, conche.ConcheRegressor])
@pytest.mark.parametrize("K", [1, 2, 8])
def test_float32_stays_float32(make: Any, K: int) -> None:
    X, y = data(n=200)
    X2, y2 = data(n=20, seed=1)
    single = make(n_nodes=K).fit(X.astype(np.float32), y).partial_fit(X2.astype(np.float32), y2)
    double = make(n_nodes=K).fit(X, y).partial_fit(X2, y2)
    assert single.coef_.dtype == np.float32
    assert single.predict(X.astype(np.float32)).dtype == np.float32
    past = single.state_.past  # sums are in double precision
    assert past is None or past.best.sums.XY.dtype == np.float64
    assert all(state.weights.dtype == np.float32 for state in single.node_states())
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-3, atol=1e-3)


def test_pandas_columns_are_remembered_and_checked() -> None:
    pd = pytest.importorskip("pandas")
    X, y = data()
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)])
    model = conche.CoCoARegressor(n_nodes=2).partial_fit(frame, y)
    assert list(model.feature_names_in_) == list(frame.columns)
    with pytest.raises(conche.DataError, match="column 'x3' of the stream is missing"):
        model.partial_fit(frame.rename(columns={"x3": "other"}), y)


def test_intercept_is_the_constant_column_of_the_first_node() -> None:
    X, y = data()
    ones = np.hstack([X[:, :4], np.ones((30, 1)), X[:, 4:]])
    model = conche.CoCoARegressor(n_nodes=2, n_rounds=3, fit_intercept=True).fit(X, y + 5)
    by_hand = conche.CoCoARegressor(partition=[5, 4], n_rounds=3).fit(ones, y + 5)
    assert model.intercept_ == pytest.approx(by_hand.coef_[4])
    np.testing.assert_allclose(model.coef_, np.delete(by_hand.coef_, 4))
    np.testing.assert_allclose(model.predict(X), by_hand.predict(ones))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_one_against_the_rest(loss: str) -> None:
    rng = np.random.default_rng(0)
    centres = 3 * rng.standard_normal((3, 8))
    labels = np.array(["ash", "beech", "cedar"])
    model = conche.ConcheClassifier(n_nodes=4, loss=loss)
    for _ in range(3):
        which = rng.integers(0, 3, 60)
        X = centres[which] + rng.standard_normal((60, 8))
        model.partial_fit(X, labels[which])
    assert model.coef_.shape == (3, 8)
    assert model.score(X, labels[which]) > 0.9
    if loss == "logistic":
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_pipelines_take_streams() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((50, 6))
    y = X[:, 0] > 0.5
    pipe = make_pipeline(conche.CosineFeatures(40), conche.ConcheClassifier(n_nodes=4)).fit(X, y)
    assert pipe.score(X, y) > 0.8


BAD = {
    "other columns": (np.ones((5, 9)), np.ones(5), "8 features"),
    "NaN": (np.full((5, 8), np.nan), np.ones(5), "NaN"),
    "infinite": (np.full((5, 8), np.inf), np.ones(5), "infinity"),
    "NaN in y": (np.ones((5, 8)), np.full(5, np.nan), "NaN"),
    "empty": (np.ones((0, 8)), np.ones(0), "0 sample"),
    "lengths": (np.ones((5, 8)), np.ones(4), "inconsistent"),
    "outputs": (np.ones((5, 8)), np.ones((5, 2)), r"y has shape \(5, 2\)"),
}


@pytest.mark.parametrize("make", [conche.CoCoARegressor, conche.ConcheRegressor])
@pytest.mark.parametrize("call", ["partial_fit", "fit"])
@pytest.mark.parametrize("kind", BAD)
def test_bad_tasks_leave_the_model_as_it_was(make: Any, call: str, kind: str) -> None:
    if call == "fit" and kind in ("other columns", "outputs"):
        pytest.skip("fit starts over: any shape will do")
    X, y = data()
    model = make(n_nodes=2).partial_fit(X, y)
    before, state = dict(vars(model)), model.state_
    coef, history = model.coef_.copy(), len(model.history_)
    bad_X, bad_y, message = BAD[kind]
    with pytest.raises(conche.DataError, match=message):
        getattr(model, call)(bad_X, bad_y)
    assert vars(model) == before and model.state_ is state
    assert np.array_equal(model.coef_, coef)
    assert len(model.history_) == history
    undisturbed = make(n_nodes=2).partial_fit(X, y)
    for m in (model, undisturbed):
        m.partial_fit(*data(seed=1))
    assert np.array_equal(model.coef_, undisturbed.coef_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(n_nodes=9), "n_nodes=9: 8 columns fit on 1 to 8 nodes"),
        (dict(n_rounds=0), "n_rounds=0 must be a whole number of at least 1"),
        (dict(solver="magic"), "solver='magic' must be one of"),
        (dict(solver=conche.Damped(-1.0)), "damping=-1.0"),
        (dict(solver=conche.Memory(rank=HALF)), "rank=2.5"),
        (
            dict(solver=conche.Memory(discount=1.5)),
            "discount=1.5 must be a number of at least 0 and at most 1",
        ),
        (dict(steps="nesterov"), "steps='nesterov'"),
        (dict(network="telegraph"), "network='telegraph'"),
        (dict(tol=-1e-3), "tol=-0.001"),
        (dict(partition=[3, 4]), "add up to 7, but there are 8 columns"),
        (dict(partition=3), "partition=3 must list"),
        (dict(partition=[[0, [1]], [2]]), "block 0 must be a list of column indices"),
        (dict(network=None), "network=None"),
        (dict(fit_intercept=2), "fit_intercept=2"),
        (dict(solver=conche.Damped(float("inf"))), "damping=inf"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(conche.ParameterError, match=message) as error:
        conche.CoCoARegressor(**settings).fit(*data())
    assert "\n" not in str(error.value)


def test_a_loss_that_is_none_and_probabilities_of_squares() -> None:
    X, _ = data()
    y = np.arange(30) % 2
    model = conche.CoCoAClassifier().partial_fit(X, y)
    with pytest.raises(conche.ParameterError, match="loss='hinge'"):
        conche.CoCoAClassifier(loss="hinge").fit(X, y)
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (dict(fit_intercept=False), "fit_intercept"),
        (dict(n_nodes=3), "n_nodes"),
        (dict(partition=[1, 7]), "partition"),
        (dict(network=LocalNetwork()), "network"),
        (dict(seed=1), "solver"),
    ],
)
def test_a_stream_keeps_what_it_was_begun_with(change: dict[str, Any], name: str) -> None:
    X, y = data()
    model = conche.ConcheRegressor(n_nodes=2).partial_fit(X, y).set_params(**change)
    with pytest.raises(conche.ParameterError, match=f"the {name} of a stream cannot change"):
        model.partial_fit(X, y)
    assert model.n_tasks_seen_ == 1
    model.set_params(n_rounds=3, tol=1e-3).fit(X, y)


def test_missing_values_are_named_in_one_line() -> None:
    X, y = data()
    X[3, 5] = np.nan
    with pytest.raises(conche.DataError, match="NaN.*row 3, column 5") as error:
        conche.CoCoARegressor().fit(X, y)
    assert "\n" not in str(error.value)


def test_probabilities_of_hopeless_samples_are_still_probabilities() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8)).astype(np.float32)
    model = conche.ConcheClassifier(loss="logistic").fit(X, rng.integers(0, 3, 60))
    p = model.predict_proba(3000 * X)
    assert np.all(np.isfinite(p))
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)


def test_fits_in_threads_leave_blas_as_it_was() -> None:
    def threads() -> list[int]:
        return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

    before = threads()
    X, y = data(n=2000, p=200)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: conche.CoCoARegressor(n_nodes=4).fit(X, y), range(12)))
    assert threads() == before


def test_a_stream_keeps_its_solver() -> None:
    X, y = data()
    model = conche.CoCoARegressor(solver="damped").partial_fit(X, y)
    model.set_params(solver__damping=1.0)
    with pytest.raises(conche.ParameterError, match="the solver of a stream cannot change"):
        model.partial_fit(X, y)
