"""Saved models: they go on to the last bit; what is not a whole one is refused in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from sklearn.base import clone

import conche
from conche.common.arrays import Array
from conche.common.sealed import DESCRIPTION, digest, seal, unseal
from conche.model_file import FORMAT
from conche.network import LocalNetwork
from conche.nodes.solvers import Solver, SolverOption
from conche.nodes.solvers.damped import DampedSolver
from conche.nodes.solvers.options import About

MODELS = [
    conche.CoCoARegressor(n_nodes=3, n_rounds=2),
    conche.CoCoARegressor(partition=[[1, 0, 5], [2, 4], [3, 6, 7]], solver="damped"),
    conche.ConcheRegressor(n_nodes=4, fit_intercept=True, solver=conche.Memory(discount=0.9)),
    conche.ConcheRegressor(n_nodes=2, solver=conche.Memory(rank=3)),
    conche.ConcheRegressor(n_nodes=2, solver=conche.Memory(rank=0)),
    conche.CoCoAClassifier(n_nodes=2, loss="logistic"),
    conche.ConcheClassifier(n_nodes=4, loss="logistic"),
    conche.CoCoARegressor(n_nodes=2, solver=conche.Exact(local_steps=2), steps="adaptive"),
    conche.CoCoARegressor(n_nodes=2, solver=conche.Damped(0.5, local_steps=3)),
    conche.CoCoARegressor(n_nodes=2, solver=conche.Damped(0.5, local_steps="auto")),
    conche.CoCoARegressor(n_nodes=2, solver="damped", scaling="running"),
    conche.ConcheRegressor(n_nodes=2, solver=conche.Memory(rank=5), missing="mean"),
    conche.CoCoARegressor(n_nodes=2, solver=conche.ElasticNet(0.1, 0.7), fit_intercept=True),
]


def stream(model: Any, n_tasks: int, dtype: Any = np.float64) -> Iterator[tuple[Array, Any]]:
    rng = np.random.default_rng(0)
    for _ in range(n_tasks):
        X = rng.standard_normal((12, 8)).astype(dtype)
        y = rng.standard_normal(12)
        labels = isinstance(model, conche.CoCoAClassifier)
        yield X, (np.where(y > 0, "odd", "even") if labels else y)


def plain(model: Any) -> dict[str, Any]:
    """Its parameters; a solver object as its kind, beside what it says itself."""
    params: dict[str, Any] = model.get_params()
    return params | {"solver": getattr(type(params["solver"]), "__name__", params["solver"])}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_reloaded_model_goes_on_to_the_last_bit(model: Any, dtype: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.conche"
    tasks = list(stream(model, 6, dtype))
    through = clone(model)
    for X, y in tasks[:3]:
        through.partial_fit(X, y)
    conche.save(through, path)
    again = conche.load(path)
    assert type(again) is type(through)
    assert plain(again) == plain(through)
    assert again.history_ == through.history_ and again.tasks_ == through.tasks_
    assert_the_same(again, through, tasks[0][0])
    for X, y in tasks[3:]:
        through.partial_fit(X, y)
        again.partial_fit(X, y)
    assert_the_same(again, through, tasks[0][0])
    assert again.coef_.dtype == through.coef_.dtype
    assert again.n_tasks_seen_ == 6


def assert_the_same(one: Any, other: Any, X: Array) -> None:
    """To the last bit."""
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.intercept_, other.intercept_)
    assert np.array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("discount", [1.0, "auto"])
@pytest.mark.parametrize("p", [60, 200])
def test_products_and_rows_of_the_past_come_back(discount: Any, p: int, tmp_path: Path) -> None:
    """Of 200 columns rows are kept at first, and products later."""
    rng = np.random.default_rng(0)
    model = conche.ConcheRegressor(7, solver=conche.Memory(discount=discount))
    for i in range(4):
        X = rng.standard_normal((40, p)) + 10 * rng.standard_normal(p)
        model.partial_fit(X, rng.standard_normal(40))
        conche.save(model, tmp_path / f"{i}.conche")
        assert_the_same(conche.load(tmp_path / f"{i}.conche"), model, X)


def trained() -> conche.CoCoARegressor:
    model = conche.CoCoARegressor(n_nodes=2)
    for X, y in stream(model, 2):
        model.partial_fit(X, y)
    return model


def test_feature_names_come_back(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(np.eye(4), columns=list("abcd"))
    model = conche.CoCoARegressor(solver="damped").partial_fit(X, np.ones(4))
    conche.save(model, tmp_path / "m")
    again = conche.load(tmp_path / "m")
    assert list(again.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="column 'd' of the stream is missing"):
        again.partial_fit(X[list("abc")], np.ones(4))
    y = np.arange(4.0)
    turned = conche.load(tmp_path / "m").partial_fit(X[list("abdc")], y)  # by name, in any order
    assert np.array_equal(turned.coef_, again.partial_fit(X, y).coef_)


@pytest.mark.parametrize("keep", [0, 5, 100, 0.5, 0.99])
def test_a_truncated_file_is_refused_in_one_line(keep: float, tmp_path: Path) -> None:
    path = tmp_path / "m.conche"
    conche.save(trained(), path)
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    with pytest.raises(conche.ModelFileError, match="m.conche: not a whole model file") as error:
        conche.load(path)
    assert "\n" not in str(error.value)


def test_foreign_and_newer_files_are_refused(tmp_path: Path) -> None:
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
    save_file({"x": np.ones(3)}, path, {"conche": json.dumps({"format": FORMAT})})
    with pytest.raises(conche.ModelFileError, match="x has changed"):
        conche.load(path)
    save_file({"x": np.ones(3)}, path, {"conche": "{"})
    with pytest.raises(conche.ModelFileError, match="header is damaged"):
        conche.load(path)
    with pytest.raises(FileNotFoundError):
        conche.load(tmp_path / "nowhere")


Change = Callable[[dict[str, Array], dict[str, Any]], Any]


def rewritten(path: Path, change: Change, format: int = FORMAT) -> None:
    """The file at path, its arrays and description changed, and sealed as if they were ours."""
    described, arrays = unseal(path, FORMAT)
    described = change(arrays, described) or described
    path.write_bytes(seal(format, json.dumps(described), arrays))


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, d: arrays.__delitem__("past0.XX"),
        lambda arrays, d: arrays.__delitem__("past.known"),
        lambda arrays, d: arrays.update({"past0.XX": np.ones(35)}),
        lambda arrays, d: arrays.update({"past0.XY": np.ones((8, 2))}),
        lambda arrays, d: arrays.update({"past0.mean": np.ones(8)}),
        lambda arrays, d: arrays.update({"past.unit": np.ones(7)}),
        lambda arrays, d: arrays.update({"found.weights": np.ones((7, 1))}),
        lambda arrays, d: arrays.update({"past0.B": np.ones((3, 8))}),
        lambda arrays, d: arrays.update({"past0.ridge": np.ones(3)}),
        lambda arrays, d: arrays.update({"found.offset": np.ones(3)}),
        lambda arrays, d: arrays.update({"found.penalty": np.ones((7, 1))}),
        lambda arrays, d: d.update({"past": None}),
        lambda arrays, d: d["past"].update({"paths": []}),
        lambda arrays, d: d["past"]["paths"][0].__delitem__("n"),
        lambda arrays, d: arrays.update({"history.task": np.ones(1)}),
        lambda arrays, d: d.update({"class": "object"}),
        lambda arrays, d: d.update({"columns": []}),
        lambda arrays, d: d.update({"columns": [[0, 0], [1]]}),
        lambda arrays, d: d["parameters"].update({"solver": "magic"}),
        lambda arrays, d: d["parameters"].update({"surprise": 1}),
        lambda arrays, d: d["schema"].update({"n_features": 10**12}),
        lambda arrays, d: d["schema"].update({"n_features": -1}),
        lambda arrays, d: d["parameters"].update({"n_nodes": 10**15}),
        lambda arrays, d: d["parameters"].update({"partition": [10**15, 2]}),
        lambda arrays, d: d.update({"n_outputs": 10**12}),
        lambda arrays, d: [1],
    ],
)
def test_a_damaged_model_is_refused_with_its_path(change: Change, tmp_path: Path) -> None:
    refused(change, None, tmp_path / "m.conche")


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, d: arrays.__delitem__("node1.weights"),
        lambda arrays, d: arrays.__delitem__("node0.kept.ridge"),
        lambda arrays, d: arrays.update({"node1.weights": np.ones((3, 1))}),
        lambda arrays, d: arrays.update({"node0.kept.ridge": np.ones((3, 7))}),
        lambda arrays, d: d.update({"strengths": []}),
        lambda arrays, d: d.update({"evident": 8}),
    ],
)
def test_damaged_nodes_are_refused_too(change: Change, tmp_path: Path) -> None:
    refused(change, 3, tmp_path / "m.conche")


def refused(change: Change, rank: int | None, path: Path) -> None:
    model = conche.ConcheRegressor(n_nodes=2, solver=conche.Memory(rank))
    for X, y in stream(model, 2):
        model.partial_fit(X, y)
    conche.save(model, path)
    rewritten(path, change)
    with pytest.raises(conche.ModelFileError, match="m.conche: ") as error:
        conche.load(path)
    assert "\n" not in str(error.value)


def test_a_whole_file_without_something_is_of_another_version(tmp_path: Path) -> None:
    path = tmp_path / "m.conche"
    conche.save(trained(), path)
    rewritten(path, lambda arrays, d: d["schema"].__delitem__("homes"))
    with pytest.raises(
        conche.ModelFileError, match="m.conche: written by another version .*'homes'"
    ):
        conche.load(path)


def test_numpy_numbers_and_labels_come_back(tmp_path: Path) -> None:
    (X, y), (X2, y2) = stream(None, 2)
    labels = (y > 0).astype(np.int32)
    numbers: dict[str, Any] = dict(ridge=np.float32(0.5), rank=np.int32(9))
    options: dict[str, Any] = dict(n_nodes=np.int64(2), solver=conche.Memory(**numbers))
    model = conche.ConcheClassifier(**options).fit(X, labels)
    conche.save(model, tmp_path / "m")
    again = conche.load(tmp_path / "m")
    assert type(again) is conche.ConcheClassifier and again.classes_.dtype == np.int32
    for m in (model, again):
        m.partial_fit(X2, (y2 > 0).astype(np.int32))
    assert np.array_equal(again.coef_, model.coef_)


def test_a_model_that_could_not_go_on_is_not_saved(tmp_path: Path) -> None:
    model = trained().set_params(solver="damped")
    with pytest.raises(ValueError, match="the solver of a stream cannot change"):
        conche.save(model, tmp_path / "m")
    with pytest.raises(FileNotFoundError, match="nowhere: no such folder"):
        conche.save(trained(), tmp_path / "nowhere" / "m")


def test_a_failed_save_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m"
    conche.save(trained(), path)
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="disk full"):
            conche.save(trained(), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("older", [0, 1, 2])
def test_a_file_from_before_the_first_release_is_refused_in_one_line(
    older: int, tmp_path: Path
) -> None:
    path = tmp_path / "m.conche"
    conche.save(trained(), path)
    rewritten(path, lambda arrays, described: None, older)
    with pytest.raises(conche.ModelFileError, match=f"format {older}.*train it again") as error:
        conche.load(path)
    assert "\n" not in str(error.value) and str(path) in str(error.value)


class Own(SolverOption):
    """A user's own solver."""

    def solver(self, about: About) -> Solver[Any]:
        return DampedSolver(1.0)


def test_what_cannot_be_saved_says_so(tmp_path: Path) -> None:
    with pytest.raises(conche.ParameterError, match="not learnt anything"):
        conche.save(conche.CoCoARegressor(), tmp_path / "m")
    nothing: Any = {}
    with pytest.raises(conche.ParameterError, match="cannot save a dict"):
        conche.save(nothing, tmp_path / "m")
    X, y = next(stream(None, 1))
    model = conche.CoCoARegressor(solver=Own()).fit(X, y)
    with pytest.raises(conche.ParameterError, match="whose solver is an object"):
        conche.save(model, tmp_path / "m")
    model = conche.CoCoARegressor(network=LocalNetwork()).fit(X, y)
    conche.save(model, tmp_path / "m")  # a network is where it runs, not what it is
    assert np.array_equal(conche.load(tmp_path / "m").coef_, model.coef_)


def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "m.conche"
    model = conche.ConcheClassifier(n_nodes=2, fit_intercept=True, scaling="first")
    for X, y in stream(model, 3):
        model.partial_fit(X, y)
    conche.save(model, path)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for place in rng.integers(0, 8 * len(whole), 1500):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with pytest.raises(conche.ModelFileError, match="m.conche: ") as error:
            conche.load(path)
        assert "\n" not in str(error.value)


def deep(depth: int) -> Any:
    inside: Any = 0
    for _ in range(depth):
        inside = [inside]
    return inside


ODD: list[Any] = [None, -1, 0, 1e308, [], {}, [[]], "", "x" * 99, True, 2**70, deep(500)]
ODD += ["<U99999999"]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_whatever_a_description_holds_there_is_one_error_or_a_model(
    odd: Any, tmp_path: Path
) -> None:
    """Every entry in turn, and every entry of its entries."""
    path = tmp_path / "m.conche"
    model = conche.ConcheClassifier(n_nodes=2, solver=conche.Memory(rank=3))
    for X, y in stream(model, 2):
        model.partial_fit(X, y)
    conche.save(model, path)
    described, arrays = unseal(path, FORMAT)
    places: list[tuple[str, ...]] = [(key,) for key in described]
    for key, inside in described.items():
        places += [(key, own) for own in inside] if isinstance(inside, dict) else []
    for first, *rest in places:
        changed = json.loads(json.dumps(described))
        inside, last = (changed[first], rest[0]) if rest else (changed, first)
        inside[last] = odd
        path.write_bytes(seal(FORMAT, json.dumps(changed), arrays))
        told = ""
        try:
            conche.load(path)
        except conche.ConcheError as error:
            told = str(error)
        assert "\n" not in told, (first, rest)


def test_text_that_only_looks_like_a_description_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.conche"
    for text in (b"[" * 100_000, b"1" * 1_000_000, b"\xff\xfe", b"", b"null"):
        array = np.frombuffer(text, np.uint8)
        digests = {DESCRIPTION: digest(array)}
        header = {"conche": json.dumps({"format": FORMAT, "digests": digests})}
        save_file({DESCRIPTION: array}, path, header)
        with pytest.raises(conche.ModelFileError, match="m.conche: "):
            conche.load(path)
    for text in (b"[" * 100_000, b'{"format": ' + b"1" * 100_000 + b"}", b"[]", b'{"format": []}'):
        save_file({"x": np.ones(3)}, path, {"conche": text.decode()})
        with pytest.raises(conche.ModelFileError, match="header is damaged"):
            conche.load(path)


def test_eleven_million_columns_can_be_saved(tmp_path: Path) -> None:
    p = 11_000_000
    X, y = np.ones((2, p), np.float32), np.array([1.0, 2.0], np.float32)
    X[1, : p // 2] = -1
    half = np.arange(p)
    model = conche.CoCoARegressor(partition=[half[::2], half[1::2]], solver="damped").fit(X, y)
    conche.save(model, tmp_path / "m")
    again = conche.load(tmp_path / "m")
    assert np.array_equal(again.coef_, model.coef_)
