"""What samples weigh: 3 is as much as three of them, whatever learns from them.

A ridge that is chosen is chosen for fewer rows where weights differ, so here it is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import conche
from conche import ElasticNet, Memory
from conche.common.arrays import Array

from .helpers.commands import run_here as run

pytestmark = pytest.mark.filterwarnings("ignore")
Weighed = list[tuple[Array, Array, Array]]
P = 9


def stream(labels: bool, seed: int = 0) -> Weighed:
    """Three tasks of unlike columns, and whole weights, zero among them."""
    rng = np.random.default_rng(seed)
    tasks = []
    for _ in range(3):
        n = int(rng.integers(15, 60))
        X = rng.standard_normal((n, P)) * rng.uniform(0.1, 5, P) + rng.uniform(-3, 3, P)
        y = X @ np.arange(P) + rng.standard_normal(n)
        weights = rng.integers(0, 4, n).astype(float)
        weights[:2] = 2.0
        tasks.append((X, np.digitize(y, [-20, 20]) if labels else y, weights))
    return tasks


def repeated(X: Array, y: Array, weights: Array) -> tuple[Array, Array]:
    rows = np.repeat(np.arange(len(y)), weights.astype(int))
    return X[rows], y[rows]


REGRESSORS: list[Callable[[int], Any]] = [
    lambda K: conche.CoCoARegressor(K, n_rounds=4),
    lambda K: conche.CoCoARegressor(K, solver="damped", n_rounds=4, fit_intercept=True),
    lambda K: conche.CoCoARegressor(K, solver=ElasticNet(0.1), n_rounds=100, fit_intercept=True),
    lambda K: conche.ConcheRegressor(K, solver=Memory(ridge=1.0)),
    lambda K: conche.ConcheRegressor(K, scaling="running", solver=Memory(ridge=1.0)),
    lambda K: conche.ConcheRegressor(K, solver=Memory(rank=4, ridge=1.0), tol=1e-12),
    lambda K: conche.ConcheRegressor(K, solver=Memory(rank=4), tol=1e-12),
    lambda K: conche.CoCoARegressor(
        K + 1, solver=Memory(rank=0), n_rounds=20, network=conche.Graph("complete")
    ),
]
CLASSIFIERS: list[Callable[[int], Any]] = [
    lambda K: conche.CoCoAClassifier(K, loss="logistic", n_rounds=20),
    lambda K: conche.ConcheClassifier(K, solver=Memory(ridge=1.0)),
    lambda K: conche.ConcheClassifier(K, loss="logistic"),
    lambda K: conche.ConcheClassifier(K, loss="logistic", solver=Memory(rank=4)),
]


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("make", REGRESSORS + CLASSIFIERS)
def test_weights_are_as_many_samples(make: Callable[[int], Any], form: Any, K: int) -> None:
    weighed, plain = make(K), make(K)
    if form is not np.asarray and weighed.scaling == "running":
        pytest.skip("sparse columns are not scaled")
    for X, y, weights in stream(make in CLASSIFIERS):
        weighed.partial_fit(form(X), y, sample_weight=weights)
        many_X, many_y = repeated(X, y, weights)
        plain.partial_fit(form(many_X), many_y)
    scale = np.max(np.abs(plain.coef_))
    assert np.max(np.abs(weighed.coef_ - plain.coef_)) <= 1e-6 * scale
    ours, theirs = (model.history_[-1]["loss"] for model in (weighed, plain))
    assert ours == (theirs if theirs is None else pytest.approx(theirs, rel=1e-5))


def test_a_ridge_is_chosen_for_as_many_rows_as_say_as_much() -> None:
    """Equal weights change nothing; of unequal ones two heavy rows say no more than two."""
    X, y, _ = stream(False)[0]
    plain = conche.ConcheRegressor(2).fit(X, y)
    thrice = conche.ConcheRegressor(2).fit(X, y, sample_weight=np.full(len(y), 3.0))
    np.testing.assert_allclose(thrice.coef_, plain.coef_, rtol=1e-9)
    np.testing.assert_allclose(thrice.ridge_, 3 * plain.ridge_, rtol=1e-9)
    heavy = np.where(np.arange(len(y)) < len(y) // 2, 1000.0, 0.001)
    few = conche.ConcheRegressor(2).fit(X, y, sample_weight=heavy)
    alone = conche.ConcheRegressor(2).fit(X[: len(y) // 2], y[: len(y) // 2])
    np.testing.assert_allclose(few.coef_, alone.coef_, rtol=1e-4)  # light rows weigh a millionth


def test_a_weight_is_a_row_times_its_root() -> None:
    """Any weights: the offline ridge solution of weighed squares."""
    rng = np.random.default_rng(1)
    model = conche.ConcheRegressor(3, solver=Memory(ridge=2.0), fit_intercept=False, scaling=None)
    G, b = 2.0 * np.eye(P), np.zeros(P)
    for X, y, _ in stream(False):
        w = rng.exponential(size=len(y))
        model.partial_fit(X, y, sample_weight=w)
        G, b = G + X.T @ (w[:, None] * X), b + X.T @ (w * y)
    np.testing.assert_allclose(model.coef_, np.linalg.solve(G, b), rtol=1e-9)


def test_balanced_classes_weigh_the_same_in_the_stream_so_far() -> None:
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1, 2], [60, 30, 10])
    X = rng.standard_normal((100, P)) + 0.5 * y[:, None]
    balanced = conche.ConcheClassifier(2, class_weight="balanced").fit(X, y)
    by_hand = conche.ConcheClassifier(2).fit(X, y, sample_weight=(100 / 3) / np.bincount(y)[y])
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, rtol=1e-9)
    given = conche.ConcheClassifier(2, class_weight={0: 1.0, 2: 5.0}).fit(X, y)
    fives = conche.ConcheClassifier(2).fit(X, y, sample_weight=np.array([1.0, 1.0, 5.0])[y])
    np.testing.assert_allclose(given.coef_, fives.coef_, rtol=1e-9)
    more = rng.integers(0, 2, 40)
    balanced.partial_fit(X[:40], more)
    counts = np.bincount(np.concatenate([y, more]))
    by_hand.partial_fit(X[:40], more, sample_weight=(140 / 3) / counts[more])
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, rtol=1e-9)


def test_class_weights_are_saved(tmp_path: Path) -> None:
    X, y, _ = stream(True)[0]
    for asked in ("balanced", {0: 2.0, 1: 1.0}):
        model = conche.ConcheClassifier(2, class_weight=asked).fit(X, y)
        conche.save(model, tmp_path / "m")
        again = conche.load(tmp_path / "m")
        assert again.class_weight == asked
        assert np.array_equal(again.partial_fit(X, y).coef_, model.partial_fit(X, y).coef_)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(5), "sample_weight -1.0 of sample 0"),
        (np.array([1, 1, np.nan, 1, 1]), "sample_weight nan of sample 2"),
        (np.array([1, np.inf, 1, 1, 1]), "sample_weight inf of sample 1"),
        (np.zeros(5), "zero for every sample"),
        (np.ones(4), r"shape \(4,\), for 5 samples"),
        (["a"] * 5, "must be numbers"),
    ],
)
def test_bad_weights_change_nothing(weights: Any, message: str) -> None:
    X = np.arange(10.0).reshape(5, 2)
    model = conche.ConcheRegressor(2).fit(X, np.arange(5.0))
    before = model.state_
    with pytest.raises(conche.DataError, match=message):
        model.partial_fit(X, np.arange(5.0), sample_weight=weights)
    assert model.state_ is before
    with pytest.raises(conche.ConcheError, match="class_weight"):
        conche.ConcheClassifier(class_weight="fair").fit(X, [0, 1, 0, 1, 1])
    with pytest.raises(conche.ConcheError, match="is a text, but those of the stream are numbers"):
        conche.ConcheClassifier(class_weight={"1": 2.0}).fit(X, [0, 1, 0, 1, 1])
    with pytest.raises(conche.ConcheError, match=r"class_weight\[1\]=-2"):
        conche.ConcheClassifier(class_weight={1: -2}).fit(X, [0, 1, 0, 1, 1])


def test_weights_from_files(tmp_path: Path) -> None:
    """``--weight``: as many rows; kept out of the features; another column is refused."""
    (tmp_path / "w").mkdir()
    (tmp_path / "r").mkdir()
    for t, (X, y, weights) in enumerate(stream(False)):
        table = np.column_stack([X, y, weights])
        head = ",".join([*(f"c{j}" for j in range(P)), "y", "n"])
        np.savetxt(tmp_path / "w" / f"{t}.csv", table, delimiter=",", header=head, comments="")
        table = np.column_stack(repeated(X, y, weights))
        head = head.removesuffix(",n")
        np.savetxt(tmp_path / "r" / f"{t}.csv", table, delimiter=",", header=head, comments="")
    options = ["--target", "y", "--nodes", "3", "--ridge", "1", "--out", "m"]
    done = run("train", "w", *options, "--weight", "n", "--checkpoint", "state", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    weighed = conche.load(tmp_path / "m").coef_
    assert run("train", "r", *options, cwd=tmp_path).returncode == 0
    np.testing.assert_allclose(weighed, conche.load(tmp_path / "m").coef_, rtol=1e-7)
    for more, message in (
        (["--weight", "k"], "no column 'k' for the weight"),
        (["--weight", "y"], "is the target and the weight"),
        (["--checkpoint", "state", "--resume"], "the weight 'n', not None"),
        (["--class-weight", "balanced"], "--class-weight is for labels"),
    ):
        done = run("train", "w", *options, *more, cwd=tmp_path)
        assert done.returncode == 2 and message in done.stderr, done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
