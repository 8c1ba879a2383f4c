"""What would be learnt wrongly without a word: masks, numbers whose squares overflow, columns that
are not there. One line each, and the model stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import is_classifier

import conche
from conche.common.arrays import MOST_SQUARES, Array, sum_of_squares
from conche.estimators.inputs import name_overflow

from .helpers.commands import run as run_apart
from .helpers.commands import run_here as run

pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 4))
y = X @ [1.0, 2.0, 3.0, 4.0] + rng.standard_normal(60)
LABELS = (y > 0).astype(int)


def masked(values: Array, mask: Any) -> Any:
    return np.ma.MaskedArray(values, mask)


MASKED = masked(X, X > 1.5)
ONE = np.arange(60) == 7


def models() -> list[Any]:
    kinds: list[Any] = [conche.ConcheRegressor(2), conche.ConcheRegressor(2, missing="mean")]
    solvers = "exact", "damped", conche.Memory(3), conche.ElasticNet(0.01)
    kinds += [conche.CoCoARegressor(2, solver=solver) for solver in solvers]
    return [*kinds, conche.ConcheClassifier(2), conche.CoCoAClassifier(2, loss="logistic")]


def large(size: float, dtype: Any = float) -> Array:
    bad = X.astype(dtype)
    bad[7, 2] = size
    return bad


@pytest.mark.parametrize("model", models(), ids=repr)
@pytest.mark.parametrize("size", [1e155, -1e200, 1e308])
@pytest.mark.filterwarnings("error:overflow:RuntimeWarning")
def test_what_overflows_is_named_before_anything_is_learnt(model: Any, size: float) -> None:
    """In the first task and in later ones, with names and without, in any kind of array."""
    t = LABELS if is_classifier(model) else y
    frame = pd.DataFrame(large(size), columns=list("abcd"))
    with pytest.raises(conche.DataError, match="column 'c' is too large: its squares overflow"):
        model.fit(frame, t)
    with pytest.raises(conche.DataError, match="column 2 is too large: its squares overflow"):
        model.fit(large(size), t)
    state = model.fit(X, t).state_
    two = large(size)
    two[8, 2] = -size  # which sum to nothing
    for bad in (large(size), two, large(size).tolist(), np.asfortranarray(two)):
        with pytest.raises(conche.DataError, match="column 2 is too large: its squares overflow"):
            model.partial_fit(bad, t)
        assert model.state_ is state
    if t is y:
        with pytest.raises(conche.DataError, match="the target is too large: its squares overflow"):
            model.partial_fit(X, np.where(np.arange(60) == 3, size, y))
        assert model.state_ is state


def test_sparse_columns_and_several_targets_too() -> None:
    model = conche.ConcheRegressor(2)
    with pytest.raises(conche.DataError, match="column 2 is too large"):
        model.fit(sparse.csr_array(large(1e200)), y)
    with pytest.raises(conche.DataError, match="the target is too large"):
        model.fit(X, np.column_stack([y, 1e160 * y]))
    huge = pytest.raises(conche.DataError, match="sample_weight 1e\\+300 of sample 7 is too large")
    with huge, np.errstate(all="ignore"):
        model.fit(X * 1e10, y, sample_weight=np.where(np.arange(60) == 7, 1e300, 1.0))


def test_what_is_large_and_can_be_learnt_is() -> None:
    """Single precision, whose squares do not overflow in double; whole numbers; 1e140."""
    for bad in (large(1e15, np.float32), large(1e140)):
        assert np.all(np.isfinite(conche.ConcheRegressor(2).fit(bad, y).coef_))
    whole = np.full(60, 2**62) * LABELS
    assert np.all(np.isfinite(conche.ConcheRegressor(2).fit(X, whole).coef_))
    gaps = np.where(X > 1.5, np.nan, X)
    assert np.all(np.isfinite(conche.ConcheRegressor(missing="mean").fit(gaps, y).coef_))


def test_the_culprit_is_found() -> None:
    assert name_overflow(large(1e200), y, "abcd").startswith("column 'c' ")
    assert name_overflow(X, 1e200 * y, None).startswith("the target ")
    assert name_overflow(X, y, None).startswith(f"column {np.argmax(np.sum(X**2, axis=0))} ")
    gaps = np.where(X > 1.5, np.nan, large(1e200))
    assert name_overflow(gaps, y, None).startswith("column 2 ")
    for array in (X, y, X[:, ::2], X.T, X[:0]):
        assert sum_of_squares(array) == pytest.approx(np.sum(array**2))
    assert not sum_of_squares(large(np.nan)) < MOST_SQUARES


@pytest.mark.parametrize("kind", [conche.ConcheRegressor, conche.ConcheClassifier])
def test_masks_are_not_dropped(kind: Any) -> None:
    t = y if kind is conche.ConcheRegressor else LABELS
    model = kind(2).fit(X, t)
    state = model.state_
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: model.partial_fit(MASKED, t), "X has .* masked values .*; missing='mean' fills"),
        (
            lambda: model.partial_fit(X, masked(t, ONE)),
            r"target has 1 .* \(first at row 7\)",
        ),
        (
            lambda: model.partial_fit(X, t, sample_weight=masked(y**2, ONE)),
            "sample_weight has 1",
        ),
        (lambda: model.predict(MASKED), "X has .* masked values"),
        (lambda: model.score(X, masked(t, ONE)), "y has 1 masked value"),
        (lambda: model.score(X, t, masked(y**2, ONE)), "sample_weight has 1 masked value"),
        (lambda: kind(2, missing="mean").fit(X, masked(t, ONE)), "target has 1 masked value"),
        (lambda: conche.Task(X, masked(t, ONE)), "task: y has 1 masked value"),
        (lambda: conche.CosineFeatures(5).fit(MASKED), "X has .* masked values"),
    ]
    for call, said in calls:
        with pytest.raises(conche.DataError, match=said):
            call()
        assert model.state_ is state
    assert np.array_equal(kind(2).fit(masked(X, False), t).coef_, model.coef_)


def test_masked_entries_are_missing_values_where_those_are_filled() -> None:
    gaps = np.where(X > 1.5, np.nan, X)
    expected = conche.ConcheRegressor(2, missing="mean").fit(gaps, y)
    model = conche.ConcheRegressor(2, missing="mean").fit(MASKED, y)
    assert np.array_equal(model.coef_, expected.coef_)
    assert np.array_equal(model.predict(MASKED), expected.predict(gaps))
    task = conche.Task(MASKED, y)
    assert np.array_equal(task.X, gaps, equal_nan=True)
    steps = [("same", "passthrough"), ("head", conche.ConcheRegressor(2, missing="mean"))]
    assert np.array_equal(
        conche.StreamPipeline(steps).partial_fit(MASKED, y)[-1].coef_, model.coef_
    )
    with pytest.raises(conche.DataError, match="missing or infinite"):
        conche.offline_solution([task])


def test_columns_that_are_not_there_are_refused_or_told() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(conche.DataError, match="now missing: - d"):
        conche.ConcheRegressor(2).fit(frame, y).predict(frame[["a", "b", "c"]])
    model = conche.ConcheRegressor(2, missing="mean").fit(frame, y)
    for call in (model.predict, lambda some: model.score(some, y)):
        with pytest.warns(UserWarning, match="X: lacks 2 of the model's 4 columns, such as 'b'"):
            call(frame[["a", "c"]])
    model.predict(frame[["d", "b", "a", "c"]])  # and nothing where all are there


def saved(folder: Path, **change: object) -> None:
    folder.mkdir(exist_ok=True)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    frame.to_csv(folder / "0.csv", index=False)
    frame.assign(**{"d": 2 * X[:, 3]} | change).to_parquet(folder / "1.parquet")  # another task


@pytest.mark.parametrize("missing", ["mean", "refuse"])
def test_files_name_what_overflows(missing: str, tmp_path: Path) -> None:
    options = ["--target", "y", "--nodes", "2", "--missing", missing, "--out", "m"]
    for column, what in (("c", "1.parquet: column 'c'"), ("y", "task 1: the target")):
        saved(tmp_path / column, **{column: 1e200})
        done = run("train", column, *options, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert f"{what} is too large: its squares overflow" in done.stderr
        assert conche.load(tmp_path / "m.partial").n_tasks_seen_ == 1
        (tmp_path / "m.partial").unlink()
    saved(tmp_path / "good")
    assert run("train", "good", *options, cwd=tmp_path).returncode == 0
    done = run("evaluate", "m", "y", "--target", "y", cwd=tmp_path)
    assert done.returncode == 2 and "task 1: the target is too large" in done.stderr
    done = run("predict", "m", "c/1.parquet", cwd=tmp_path)
    assert done.returncode == 2 and "column 'c' is too large" in done.stderr
    narrow = pd.DataFrame(X[:, :2], columns=list("ab")).assign(y=y)
    (tmp_path / "narrow").mkdir()
    narrow.to_csv(tmp_path / "narrow" / "0.csv", index=False)
    for command in (["predict", "m", "narrow/0.csv"], ["evaluate", "m", "narrow", "--target", "y"]):
        told = run_apart(*command, cwd=tmp_path)
        if missing == "refuse":
            assert told.returncode == 2 and "column 'c' of the model is missing" in told.stderr
        else:
            assert told.returncode == 0 and "lacks 2 of the model's 4 columns" in told.stderr


@pytest.mark.parametrize("name", ["c.npz", "c.sparse.npz", "c.svm"])
def test_other_files_name_it_too(name: str, tmp_path: Path) -> None:
    from sklearn.datasets import dump_svmlight_file

    path = tmp_path / name.replace(".sparse", "")
    if name == "c.npz":
        np.savez(path, X=large(1e200), y=y)
    elif name == "c.svm":
        dump_svmlight_file(large(1e200), y, str(path))
    else:
        sparse.save_npz(path, sparse.csr_array(large(1e200)))
        np.save(tmp_path / "c.y.npy", y)
    done = run("train", path, "--target", "y", "--nodes", "2", "--out", "m", cwd=tmp_path)
    assert done.returncode == 2 and "column 'x2' is too large" in done.stderr, done.stderr
