"""Models that leave: scikit-learn's own with the same predictions, and ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import conche
from conche.common.arrays import Array

pytestmark = pytest.mark.filterwarnings("ignore")


def data(n_classes: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 200)
    return rng.standard_normal((n_classes, 6))[y] * 2 + rng.standard_normal((200, 6)) + 3, y


CLASSIFIERS = [(c, loss) for c in (2, 4) for loss in ("squared", "logistic")]


@pytest.mark.parametrize(("n_classes", "loss"), CLASSIFIERS)
def test_a_classifier_as_scikit_learn_has_it(n_classes: int, loss: str) -> None:
    X, y = data(n_classes)
    names = np.array(["ant", "bee", "cat", "dog"])[y]
    model = conche.ConcheClassifier(3, loss=loss).fit(X, names)
    plain = conche.to_sklearn(model)
    assert np.array_equal(plain.classes_, model.classes_)
    assert np.array_equal(plain.predict(X), model.predict(X))
    np.testing.assert_allclose(plain.decision_function(X), model.decision_function(X), rtol=1e-9)
    if loss == "logistic":
        np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("outputs", [None, 3])
def test_a_regressor_as_scikit_learn_has_it(outputs: int | None) -> None:
    X, _ = data(2)
    y = np.random.default_rng(1).standard_normal((200, outputs) if outputs else 200)
    X[::7, 2] = np.nan
    model = conche.ConcheRegressor(3, missing="mean").fit(X, y)
    plain = conche.to_sklearn(model)
    np.testing.assert_allclose(plain.predict(X), model.predict(X), rtol=1e-9)
    assert np.ndim(plain.predict(X)) == np.ndim(y)


def test_names_of_columns_and_pipelines_stay() -> None:
    pd = pytest.importorskip("pandas")
    X, y = data(3)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = conche.ConcheClassifier(2).fit(frame, y)
    plain = conche.to_sklearn(model)
    assert plain.feature_names_in_.tolist() == list("abcdef")
    assert np.array_equal(plain.predict(frame), model.predict(frame))
    pipe = conche.StreamPipeline(
        [("scale", StandardScaler()), ("relu", conche.ReLUFeatures(50)), ("model", model)]
    )
    pipe.steps[-1] = ("model", conche.ConcheClassifier(2))
    pipe.partial_fit(X, y)
    assert np.array_equal(conche.to_sklearn(pipe).predict(X), pipe.predict(X))


@pytest.mark.parametrize(("n_classes", "loss"), CLASSIFIERS)
def test_a_classifier_goes_to_onnx(n_classes: int, loss: str) -> None:
    X, y = data(n_classes)
    model = conche.ConcheClassifier(3, loss=loss).fit(X, y)
    labels = onnx(conche.to_sklearn(model), X)[0]
    assert np.mean(labels == model.predict(X)) > 0.99  # single precision


def test_a_pipeline_with_an_imputer_goes_to_onnx() -> None:
    X, _ = data(2)
    y = X @ np.arange(6.0)
    X[::7, 2] = np.nan
    model = conche.ConcheRegressor(3, missing="mean").fit(X, y)
    found = onnx(conche.to_sklearn(model), X)[0]
    np.testing.assert_allclose(np.ravel(found), model.predict(X), rtol=1e-4, atol=1e-4)


def onnx(plain: Any, X: Array) -> list[Any]:
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    made = skl2onnx.to_onnx(plain, X[:1].astype(np.float32))
    session = runtime.InferenceSession(made.SerializeToString())
    return list(session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)}))


def test_what_cannot_leave_is_named() -> None:
    X, _ = data(2)
    with pytest.raises(conche.ParameterError, match="takes a model of Conche, not Standard"):
        conche.to_sklearn(StandardScaler())
    with pytest.raises(NotFittedError):
        conche.to_sklearn(conche.ConcheRegressor())
    alone = conche.ConcheClassifier().fit(X, np.full(200, 7))
    with pytest.raises(conche.ParameterError, match="two classes or more; so far all are 7"):
        conche.to_sklearn(alone)
