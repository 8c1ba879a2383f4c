from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import conche
from conche import checkpoint

MODELS = [
    conche.CoCoARegressor(n_nodes=3, n_rounds=2),
    conche.CoCoARegressor(partition=[[1, 0, 5], [2, 4], [3, 6, 7]], solver="damped"),
    conche.ConcheRegressor(n_nodes=4, fit_intercept=True, discount=0.9),
    conche.ConcheRegressor(n_nodes=2, sketch_size=3),
    conche.ConcheRegressor(n_nodes=2, sketch_size=0),
    conche.CoCoAClassifier(n_nodes=2, loss="logistic"),
    conche.ConcheClassifier(n_nodes=4, loss="logistic"),
]


def stream(model, n_tasks, dtype=np.float64):
    rng = np.random.default_rng(0)
    for _ in range(n_tasks):
        X = rng.standard_normal((12, 8)).astype(dtype)
        y = rng.standard_normal(12)
        yield X, (np.where(y > 0, "odd", "even") if hasattr(model, "loss") else y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_reloaded_model_goes_on_to_the_last_bit(model, dtype, tmp_path):
    path = tmp_path / "model.conche"
    tasks = list(stream(model, 6, dtype))
    through = type(model)(**model.get_params())
    for X, y in tasks[:3]:
        through.partial_fit(X, y)
    conche.save(through, path)
    again = conche.load(path)
    assert type(again) is type(through)
    assert again.get_params() == through.get_params()
    assert again.history_ == through.history_
    for X, y in tasks[3:]:
        through.partial_fit(X, y)
        again.partial_fit(X, y)
    assert np.array_equal(again.coef_, through.coef_)
    assert np.array_equal(again.predict(X), through.predict(X))
    assert again.coef_.dtype == through.coef_.dtype
    assert again.n_tasks_seen_ == 6


def trained():
    model = conche.CoCoARegressor(n_nodes=2)
    for X, y in stream(model, 2):
        model.partial_fit(X, y)
    return model


def test_feature_names_come_back(tmp_path):
    import pandas as pd

    X = pd.DataFrame(np.eye(4), columns=list("abcd"))
    model = conche.CoCoARegressor(solver="damped").partial_fit(X, np.ones(4))
    conche.save(model, tmp_path / "m")
    again = conche.load(tmp_path / "m")
    assert list(again.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        again.partial_fit(X[list("abdc")], np.ones(4))


@pytest.mark.parametrize("keep", [0, 5, 100, 0.5, 0.99])
def test_a_truncated_file_is_refused_in_one_line(keep, tmp_path):
    path = tmp_path / "m.conche"
    conche.save(trained(), path)
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    with pytest.raises(conche.ModelFileError, match="m.conche: not a whole model file") as error:
        conche.load(path)
    assert "\n" not in str(error.value)


def test_foreign_and_newer_files_are_refused(tmp_path):
    path = tmp_path / "m"
    path.write_text("PK not a model at all, but long enough to look at")
    with pytest.raises(conche.ModelFileError, match="not a whole model file"):
        conche.load(path)
    save_file({"x": np.ones(3)}, path)
    with pytest.raises(conche.ModelFileError, match="not a Conche model"):
        conche.load(path)
    save_file({"x": np.ones(3)}, path, {"conche": json.dumps({"format": 99})})
    with pytest.raises(conche.ModelFileError, match="newer Conche"):
        conche.load(path)
    save_file({"x": np.ones(3)}, path, {"conche": json.dumps({"format": 1, "class": "object"})})
    with pytest.raises(conche.ModelFileError):
        conche.load(path)
    save_file({"x": np.ones(3)}, path, {"conche": "{"})
    with pytest.raises(conche.ModelFileError):
        conche.load(path)
    with pytest.raises(FileNotFoundError):
        conche.load(tmp_path / "nowhere")


def rewritten(path, change):
    """The file at path, its arrays and description changed."""
    with checkpoint.safe_open(path, framework="numpy") as file:
        described = json.loads(file.metadata()["conche"])
    arrays = load_file(path)
    described = change(arrays, described) or described
    save_file(arrays, path, {"conche": json.dumps(described)})


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, d: arrays.__delitem__("node1.weights"),
        lambda arrays, d: arrays.__delitem__("node0.memory.ridge"),
        lambda arrays, d: arrays.update({"node1.weights": np.ones((3, 1))}),
        lambda arrays, d: arrays.update({"history.task": np.ones(1)}),
        lambda arrays, d: d.update({"class": "object"}),
        lambda arrays, d: d.update({"columns": []}),
        lambda arrays, d: d.update({"columns": [[0, 0], [1]]}),
        lambda arrays, d: d["parameters"].update({"solver": "magic"}),
        lambda arrays, d: d["parameters"].update({"surprise": 1}),
        lambda arrays, d: d.update({"format": "one"}),
        lambda arrays, d: [1],
    ],
)
def test_a_damaged_model_is_refused_with_its_path(change, tmp_path):
    path = tmp_path / "m.conche"
    model = conche.ConcheRegressor(n_nodes=2)
    for X, y in stream(model, 2):
        model.partial_fit(X, y)
    conche.save(model, path)
    rewritten(path, change)
    with pytest.raises(conche.ModelFileError, match="m.conche: ") as error:
        conche.load(path)
    assert "\n" not in str(error.value)


def test_numpy_numbers_and_labels_come_back(tmp_path):
    X, y = next(stream(None, 1))
    labels = (y > 0).astype(np.int32)
    options = dict(n_nodes=np.int64(2), damping=np.float32(0.5), sketch_size=np.int32(9))
    model = conche.ConcheClassifier(**options).fit(X, labels)
    conche.save(model, tmp_path / "m")
    again = conche.load(tmp_path / "m")
    assert again.classes_.dtype == np.int32
    for m in (model, again):
        m.partial_fit(X, labels)
    assert np.array_equal(again.coef_, model.coef_)


def test_a_model_that_could_not_go_on_is_not_saved(tmp_path):
    model = trained().set_params(solver="damped")
    with pytest.raises(ValueError, match="the solver of a stream cannot change"):
        conche.save(model, tmp_path / "m")
    with pytest.raises(FileNotFoundError, match="nowhere: no such folder"):
        conche.save(trained(), tmp_path / "nowhere" / "m")


def test_a_failed_save_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "m"
    conche.save(trained(), path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(checkpoint.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        conche.save(trained(), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_from_before_certificates_is_read(tmp_path):
    path = tmp_path / "m.conche"
    model = conche.ConcheRegressor(n_nodes=2)
    for X, y in stream(model, 2):
        model.partial_fit(X, y)
    conche.save(model, path)

    def older(arrays, described):
        for key in ("bound", "accuracy", "disagreement"):
            del arrays[f"history.{key}"]
            described["arrays"].remove(f"history.{key}")
        for key in ("aggregation", "local_steps", "l1_ratio"):
            del described["parameters"][key]

    rewritten(path, older)
    again = conche.load(path)
    assert np.array_equal(again.coef_, model.coef_) and np.isnan(again.history_[0]["bound"])


def test_what_cannot_be_saved_says_so(tmp_path):
    with pytest.raises(ValueError, match="not learnt anything"):
        conche.save(conche.CoCoARegressor(), tmp_path / "m")
    with pytest.raises(TypeError, match="cannot save a dict"):
        conche.save({}, tmp_path / "m")
    from conche.network import LocalNetwork
    from conche.solvers import Damped

    X, y = next(stream(None, 1))
    model = conche.CoCoARegressor(solver=Damped(1.0)).fit(X, y)
    with pytest.raises(ValueError, match="whose solver is an object"):
        conche.save(model, tmp_path / "m")
    model = conche.CoCoARegressor(network=LocalNetwork()).fit(X, y)
    conche.save(model, tmp_path / "m")  # a network is where it runs, not what it is
    assert np.array_equal(conche.load(tmp_path / "m").coef_, model.coef_)
