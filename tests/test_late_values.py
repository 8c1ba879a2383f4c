"""Values of a text that come late: zero before they came, and wherever they are absent later."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conche
from conche.common.arrays import Array
from conche.tasks import Reading

from .helpers.commands import run as run_apart
from .helpers.commands import run_here as run

pd = pytest.importorskip("pandas")

WORTH = {"clear": 0.0, "rain": 3.0, "grey": -5.0, "storm": 4.0}
FIRST = ["clear", "rain"]
MONTHS = [FIRST, [*FIRST, "grey"], [*FIRST, "grey", "storm"], FIRST]
NAMES = ["a", *(f"sky={sky}" for sky in WORTH)]
NOISE = 0.09
OPTIONS = ["--target", "y", "--categories", "sky", "--nodes", "2"]


def frame(t: int, seed: int = 0, n: int = 200) -> Any:
    rng = np.random.default_rng([seed, t])
    a, sky = rng.standard_normal(n), rng.choice(MONTHS[t], n)
    y = 2 * a + np.array([WORTH[s] for s in sky]) + NOISE * rng.standard_normal(n)
    return pd.DataFrame({"a": a, "sky": sky, "y": y})


def indicators(table: Any) -> Any:
    """As a pipeline of pandas makes them: columns of the values that are there, and no others."""
    texts = pd.get_dummies(table["sky"], prefix="sky", prefix_sep="=", dtype=float)
    return pd.concat([table[["a"]], texts], axis=1)


def whole(table: Any) -> Any:
    """With a column for every value there is."""
    return indicators(table).reindex(columns=NAMES, fill_value=0.0)


def as_csv(table: Any, path: Path) -> None:
    table.to_csv(path.with_suffix(".csv"), index=False)


def as_parquet(table: Any, path: Path) -> None:
    table.to_parquet(path.with_suffix(".parquet"))


def as_indicators(table: Any, path: Path) -> None:
    as_csv(indicators(table).assign(y=table["y"]), path)


def as_npz(table: Any, path: Path) -> None:
    X = indicators(table)
    np.savez(path.with_suffix(".npz"), X=X.to_numpy(), columns=list(X.columns), y=table["y"])


FORMATS = [as_csv, as_parquet, as_indicators, as_npz]


def written(folder: Path, save: Callable[[Any, Path], None], seed: int = 0) -> Path:
    folder.mkdir()
    for t in range(len(MONTHS)):
        save(frame(t, seed), folder / str(t))
    return folder


def as_nodes(folder: Path, seed: int = 0) -> Path:
    """A file for the target, one for ``a`` and one for the sky, row by row."""
    for name, own in (("target", ["y"]), ("north", ["a"]), ("south", ["sky"])):
        (folder / name).mkdir(parents=True)
        for t in range(len(MONTHS)):
            frame(t, seed)[own].to_csv(folder / name / f"{t}.csv", index=False)
    text = """
        target = {files = "target", column = "y"}
        nodes.north = {files = "north"}
        nodes.south = {files = "south", categories = "sky"}
    """
    (folder / "stream.toml").write_text("\n".join(line.strip() for line in text.splitlines()))
    return folder / "stream.toml"


def right(model: Any) -> None:
    """As good as the truth on every month, and the same as with all columns from the start."""
    tests = [frame(t, 1) for t in range(len(MONTHS))]
    names = [name.rpartition("/")[2] for name in model.feature_names_in_]
    assert sorted(names) == sorted(NAMES)
    for table in tests:
        found = whole(table)[names].to_numpy() @ model.coef_ + model.intercept_
        assert np.mean((found - table["y"]) ** 2) < 1.3 * NOISE**2


@pytest.mark.parametrize("missing", ["refuse", "mean"])
@pytest.mark.parametrize("save", FORMATS)
def test_from_files(save: Any, missing: str, tmp_path: Path) -> None:
    """Trained, and trained with a stop after every task; tested and predicted from."""
    written(tmp_path / "train", save)
    written(tmp_path / "test", save, 1)
    options = OPTIONS if save in (as_csv, as_parquet) else [*OPTIONS[:2], *OPTIONS[4:]]
    options = [*options, "--missing", missing]
    done = run("train", "train", *options, "--out", "m", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1: 1 new column: sky=grey" in done.stdout and done.stderr == ""
    right(conche.load(tmp_path / "m"))
    (tmp_path / "some").mkdir()
    for file in sorted((tmp_path / "train").iterdir()):
        shutil.copy(file, tmp_path / "some")
        stopped = [*options, "--checkpoint", "state", "--resume", "--out", "n"]
        done = run("train", "some", *stopped, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()
    done = run("evaluate", "m", "test", "--target", "y", "--json", cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    last = next((tmp_path / "test").glob("3.*"))
    done = run("predict", "m", last, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    found = np.array(done.stdout.split()[1:], dtype=float)
    assert np.mean((found - frame(3, 1)["y"]) ** 2) < 1.3 * NOISE**2


@pytest.mark.parametrize("missing", ["refuse", "mean"])
def test_from_files_of_the_nodes(missing: str, tmp_path: Path) -> None:
    as_nodes(tmp_path / "train")
    as_nodes(tmp_path / "test", 1)
    stream = "train/stream.toml"
    options = ["--missing", missing, "--checkpoint", "state", "--resume"]
    done = run("train", stream, *options, "--out", "m", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    right(conche.load(tmp_path / "m"))
    done = run("train", stream, *options, "--out", "n", cwd=tmp_path)  # the marks are as they were
    assert done.returncode == 0, done.stderr
    done = run("evaluate", "m", "test/stream.toml", "--json", cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    done = run("predict", "m", "test/stream.toml", "--tasks", "3", cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def learnt(frames: list[Any], **options: Any) -> Any:
    model = conche.ConcheRegressor(2, **options)
    for table in frames:
        model.partial_fit(indicators(table), table["y"])
    return model


@pytest.mark.parametrize("missing", ["refuse", "mean"])
def test_from_frames(missing: str, tmp_path: Path) -> None:
    """In Python, alone and after a step that leaves frames as they are; after a model is loaded."""
    frames = [frame(t) for t in range(len(MONTHS))]
    model = learnt(frames, missing=missing)
    right(model)
    half = learnt(frames[:3], missing=missing)
    conche.save(half, tmp_path / "m")
    again = conche.load(tmp_path / "m").partial_fit(indicators(frames[3]), frames[3]["y"])
    assert np.array_equal(again.coef_, model.coef_)
    from sklearn.preprocessing import FunctionTransformer

    steps = [("sky", FunctionTransformer(indicators)), ("head", conche.ConcheRegressor(2))]
    pipeline = conche.StreamPipeline(steps)
    for table in frames:
        pipeline.partial_fit(table, table["y"])
    np.testing.assert_allclose(pipeline.predict(frames[3]), model.predict(indicators(frames[3])))
    expected = whole(frames[3]).to_numpy() @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(indicators(frames[3])), expected)


@pytest.mark.parametrize("solver", ["exact", conche.Memory(2, ridge=0.1), conche.ElasticNet(1e-6)])
def test_whatever_the_solver(solver: Any) -> None:
    """The same as with columns of zeros from the start."""
    frames = [frame(t) for t in range(len(MONTHS))]
    late = conche.CoCoARegressor(1, solver=solver, fit_intercept=True)
    early = conche.CoCoARegressor(1, solver=solver, fit_intercept=True)
    for table in frames:
        late.partial_fit(indicators(table), table["y"])
        early.partial_fit(whole(table), table["y"])
    X = whole(frame(2, 1))
    np.testing.assert_allclose(late.predict(X), early.predict(X), atol=0.05)


@pytest.mark.parametrize("save", [as_csv, as_parquet])
def test_a_text_that_is_empty_is_missing_in_all_of_its_values(save: Any, tmp_path: Path) -> None:
    """In a row or in a whole file; late ones as well as the first."""
    for t in range(4):
        table = frame(t)
        table.loc[:: 2 if t == 3 else 50, "sky"] = None
        save(table, tmp_path / str(t))
    reading = Reading(categories=("sky",))
    stream = conche.FileStream(tmp_path, reading=reading, missing="keep")
    model = conche.ConcheRegressor(2, missing="mean")
    for task in stream:
        model.partial_fit(task.X, task.y)
    X = conche.FileStream(tmp_path, reading=reading, missing="keep").of_model(NAMES).task(3).X
    gone = np.isnan(np.asarray(X))
    assert gone[0, 1:].all() and not gone[1].any() and not gone[:, 0].any()
    np.testing.assert_allclose(np.asarray(X)[1::2], whole(frame(3))[1::2])
    done = run("train", tmp_path, *OPTIONS, "--out", "m", cwd=tmp_path)
    assert done.returncode == 2 and "column 'sky=clear' has 4 missing" in done.stderr


@pytest.mark.parametrize("save", FORMATS)
def test_a_text_that_is_absent_altogether_is_missing(save: Any, tmp_path: Path) -> None:
    written(tmp_path / "train", save)
    last = next((tmp_path / "train").glob("3.*"))
    last.unlink()
    save(frame(3)[["a", "y"]].assign(sky=None), tmp_path / "train" / "3")
    if save is not as_npz:  # as_indicators leaves nothing of it
        as_csv(frame(3)[["a", "y"]], tmp_path / "train" / "3")
        (tmp_path / "train" / "3.parquet").unlink(missing_ok=True)
    options = OPTIONS if save in (as_csv, as_parquet) else [*OPTIONS[:2], *OPTIONS[4:]]
    done = run("train", "train", *options, "--out", "m", cwd=tmp_path)
    assert done.returncode == 2 and "column 'sky=clear' of the first task is" in done.stderr
    done = run("train", "train", *options, "--missing", "mean", "--out", "m", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    file = next((tmp_path / "train").glob("3.*"))
    warned = run_apart("predict", "m", file, cwd=tmp_path)
    assert warned.returncode == 0 and "lacks 4 of the model's 5 columns, such as" in warned.stderr


@pytest.mark.parametrize("categories", ["sky", "all"])
@pytest.mark.parametrize("save", [as_csv, as_parquet])
def test_a_text_that_is_empty_throughout_is_missing(
    save: Any, categories: str, tmp_path: Path
) -> None:
    """Whose type nobody can tell: it is not a column of numbers."""
    written(tmp_path / "train", save)
    next((tmp_path / "train").glob("3.*")).unlink()
    save(frame(3).assign(sky=None), tmp_path / "train" / "3")
    options = ["--target", "y", "--categories", categories, "--nodes", "2", "--out", "m"]
    done = run("train", "train", *options, cwd=tmp_path)
    assert done.returncode == 2 and "column 'sky=clear' has 200 missing values" in done.stderr
    (tmp_path / "m.partial").unlink()
    done = run("train", "train", *options, "--missing", "mean", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(conche.load(tmp_path / "m").feature_names_in_) == NAMES


def test_a_late_text_that_turns_into_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    for t in range(3):
        table = frame(t)
        table = table.drop(columns="sky") if t == 0 else table
        as_csv(table.assign(sky=table["a"]) if t == 2 else table, tmp_path / "train" / str(t))
    options = ["--target", "y", "--categories", "all", "--nodes", "1", "--out", "m"]
    done = run("train", "train", *options, "--missing", "mean", cwd=tmp_path)
    assert done.returncode == 2 and "column 'sky' has numbers here, and was" in done.stderr


def test_names_without_a_text_stay_missing() -> None:
    """Only beside another value of the same text is a column zero."""
    X: Array = np.random.default_rng(0).standard_normal((20, 3))
    model = conche.ConcheRegressor(1).fit(pd.DataFrame(X, columns=["a", "b", "sky=rain"]), X[:, 0])
    for names in (["a", "sky=grey"], ["a", "b"], ["a", "b", "wind=rain"]):
        frame = pd.DataFrame(X[:, : len(names)], columns=names)
        with pytest.raises(conche.DataError, match="of the stream is missing"):
            model.partial_fit(frame, X[:, 0])
