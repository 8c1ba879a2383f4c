"""Transformers before a stream's estimator, and features that every node computes for itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, RobustScaler, StandardScaler

import conche
from conche.common.arrays import Array
from conche.model_file import load_run
from conche.tasks.features import RandomColumns

Raw = list[tuple[Array, Array]]


@pytest.fixture
def raw() -> Raw:
    rng = np.random.default_rng(0)
    return [(rng.random((40, 5)), rng.integers(0, 2, 40)) for _ in range(4)]


def test_each_node_computes_its_own_share(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = raw[0]
    features = conche.CosineFeatures(12, scale=1.0, seed=3).fit(X)
    asked = []
    real = RandomColumns.read

    def read(self: RandomColumns) -> Array:
        block = real(self)
        asked.append(block.shape)
        return block

    monkeypatch.setattr(RandomColumns, "read", read)
    lazy = conche.CoCoAClassifier(partition=[5, 7]).partial_fit(features.columns(X), y)
    assert asked == [(40, 5), (40, 7)]
    dense = conche.CoCoAClassifier(partition=[5, 7]).partial_fit(features.transform(X), y)
    assert lazy.coef_ == pytest.approx(dense.coef_, rel=1e-9)
    assert np.array_equal(lazy.predict(features.columns(X)), dense.predict(features.transform(X)))


def test_a_pipeline_learns_a_stream(raw: Raw) -> None:
    pipe = conche.StreamPipeline(
        [
            ("features", conche.CosineFeatures(30, scale=1.0, seed=1)),
            ("model", conche.ConcheClassifier(n_nodes=3)),
        ]
    )
    features = conche.CosineFeatures(30, scale=1.0, seed=1).fit(raw[0][0])
    model = conche.ConcheClassifier(n_nodes=3)
    for X, y in raw:
        pipe.partial_fit(X, y, classes=[0, 1])
        model.partial_fit(features.transform(X), y, classes=[0, 1])
    assert pipe[-1].coef_ == pytest.approx(model.coef_, rel=1e-6)
    X = raw[0][0]
    assert np.array_equal(pipe.predict(X), model.predict(features.transform(X)))
    fitted = make_pipeline(conche.CosineFeatures(30), conche.ConcheClassifier(n_nodes=3))
    assert fitted.fit(*raw[0]).predict(X).shape == (40,)


def test_steps_that_learn_go_on_and_others_are_fitted_once(raw: Raw) -> None:
    pipe = conche.StreamPipeline(
        [
            ("same", "passthrough"),
            ("running", StandardScaler()),
            ("once", FunctionTransformer()),
            ("model", conche.ConcheRegressor()),
        ]
    )
    for X, y in raw:
        pipe.partial_fit(X, y.astype(float))
    everything = np.concatenate([X for X, _ in raw])
    assert pipe["running"].mean_ == pytest.approx(everything.mean(axis=0))
    fixed = conche.StreamPipeline([("scale", RobustScaler()), ("model", conche.ConcheRegressor())])
    for X, y in raw:
        fixed.partial_fit(X, y.astype(float))
    assert fixed["scale"].center_ == pytest.approx(np.median(raw[0][0], axis=0))


def test_a_failed_task_changes_no_step(raw: Raw) -> None:
    pipe = conche.StreamPipeline([("s", StandardScaler()), ("model", conche.ConcheRegressor())])
    X, y = raw[0]
    pipe.partial_fit(X, y.astype(float))
    mean, coef = pipe["s"].mean_.copy(), pipe["model"].coef_.copy()
    with pytest.raises(ValueError, match="NaN"):
        pipe.partial_fit(X + 1, np.full(40, np.nan))
    assert np.array_equal(pipe["s"].mean_, mean) and np.array_equal(pipe["model"].coef_, coef)


def test_a_pipeline_of_ours_is_saved_and_goes_on(raw: Raw, tmp_path: Path) -> None:
    for features in (conche.CosineFeatures(30), conche.ReLUFeatures(20, scale=0.5, seed=3)):
        pipe = conche.StreamPipeline(
            [("features", features), ("model", conche.ConcheClassifier(n_nodes=3))]
        )
        for X, y in raw[:2]:
            pipe.partial_fit(X, y)
        conche.save(pipe, tmp_path / "p")
        again = conche.load(tmp_path / "p")
        X, y = raw[2]
        assert np.array_equal(again.partial_fit(X, y).predict(X), pipe.partial_fit(X, y).predict(X))
        assert np.array_equal(again[-1].coef_, pipe[-1].coef_)
        assert repr(again[0]) == repr(pipe[0])
    with pytest.raises(conche.ModelFileError, match="a pipeline, which is for Python"):
        load_run(tmp_path / "p")


def test_a_pipeline_of_others_is_refused_by_name(raw: Raw, tmp_path: Path) -> None:
    pipe = conche.StreamPipeline(
        [("scale", StandardScaler()), ("model", conche.ConcheClassifier())]
    )
    pipe.partial_fit(*raw[0])
    with pytest.raises(conche.ParameterError, match="with a StandardScaler .'scale'.: only Cosine"):
        conche.save(pipe, tmp_path / "p")
    fresh = conche.StreamPipeline(
        [("f", conche.CosineFeatures(3)), ("m", conche.ConcheClassifier())]
    )
    with pytest.raises(conche.ParameterError, match="'f' of this pipeline has not learnt"):
        conche.save(fresh, tmp_path / "p")
    assert not (tmp_path / "p").exists()
