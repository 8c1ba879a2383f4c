"""Columns and nodes that join a stream: what it equals, on every engine, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import conche
from conche import Memory
from conche.common.arrays import Array
from conche.network import LocalNetwork

from .helpers.commands import run_here as run
from .helpers.files import assert_the_same_but_for_errors
from .helpers.models import Apart

pd = pytest.importorskip("pandas")

Frames = list[tuple[Any, Array]]
NAMES = ["a", "b", "c", "d", "e", "f", "g"]
ARRIVING = [["a", "b", "c"], ["a", "b", "c", "d"], ["c", "a", "b", "d"], NAMES, NAMES]


def stream(arriving: list[list[str]] = ARRIVING, seed: int = 0, shift: float = 0.0) -> Frames:
    """Tasks whose targets depend on whatever columns are there."""
    rng = np.random.default_rng(seed)
    w = dict(zip(NAMES, rng.standard_normal(len(NAMES)), strict=True))
    tasks = []
    for t, names in enumerate(arriving):
        X = rng.standard_normal((15 + 3 * t, len(names))) * 2 + shift
        y = X @ np.array([w[name] for name in names]) + 0.1 * rng.standard_normal(len(X))
        tasks.append((pd.DataFrame(X, columns=names), y))
    return tasks


def learnt(tasks: Frames, K: int | None = 3, **options: Any) -> conche.ConcheRegressor:
    model = conche.ConcheRegressor(K, **options)
    for X, y in tasks:
        model.partial_fit(X, y)
    return model


def offline(tasks: Frames, names: list[str], ridge: float) -> Array:
    """Ridge regression on all rows, with zeros where a column was not there."""
    X = np.vstack([frame.reindex(columns=names).fillna(0.0) for frame, _ in tasks])
    y = np.concatenate([y for _, y in tasks])
    return np.asarray(np.linalg.solve(X.T @ X + ridge * np.eye(len(names)), X.T @ y))


@pytest.mark.parametrize("K", [1, 2, 3])
def test_late_columns_equal_the_offline_solution_with_zeros_before(K: int) -> None:
    tasks = stream()
    for t in range(1, len(tasks) + 1):
        model = learnt(tasks[:t], K, solver=Memory(ridge=0.7), fit_intercept=False, scaling=None)
        names = list(model.feature_names_in_)
        assert names == NAMES[: len(names)] and len(names) == len(set().union(*ARRIVING[:t]))
        best = offline(tasks[:t], names, 0.7)
        np.testing.assert_allclose(model.coef_, best, rtol=1e-8, atol=1e-11)
    assert sorted(np.concatenate(list(model.partition_))) == list(range(7))


@pytest.mark.parametrize("rank", [None, 4, 0])
def test_with_an_intercept_it_is_the_mean_of_the_first_task_that_has_the_column(
    rank: int | None,
) -> None:
    """In any origin and unit: that of all rows, or beyond the rank that of its first task, which is
    to the tolerance of the rounds. With four columns at first, a rank of four loses nothing."""
    tasks = stream(shift=5.0)
    model = learnt(tasks, 2, solver=Memory(rank, ridge=0.7), tol=1e-12, n_rounds=200)
    first: dict[str, tuple[float, float]] = {}
    for X, _ in tasks:
        first = {name: (X[name].mean(), X[name].std(ddof=0)) for name in X.columns} | first
    means = {name: mean for name, (mean, _) in first.items()}
    A = pd.concat([X.reindex(columns=NAMES).fillna(means) for X, _ in tasks]).to_numpy()
    y = np.concatenate([y for _, y in tasks])
    unit = np.array([first[name][1] for name in NAMES]) if rank == 0 else A.std(axis=0)
    own = Ridge(alpha=0.7, solver="svd").fit(A / unit, y).coef_ / unit
    if rank != 0:
        np.testing.assert_allclose(model.coef_, own, rtol=1e-8)
    else:
        assert model.offline_gap_.bound >= 0
        assert np.linalg.norm(model.coef_ - own) <= 0.3 * np.linalg.norm(own)


def test_a_column_that_has_settled_waits_for_no_other_on_its_node() -> None:
    """Few samples a task, and another new column in each: the ridge of a column is its own affair,
    whoever shares its node, in one process or in several."""
    rng = np.random.default_rng(0)
    w, tasks = rng.standard_normal(7), []
    for t, n in enumerate((40, 5, 4, 6, 60, 30)):
        X = pd.DataFrame(rng.standard_normal((n, 7)) * np.arange(1, 8), columns=NAMES)
        tasks.append((X[NAMES[: min(3 + t, 7)]], X.to_numpy() @ w + rng.standard_normal(n)))
    partitions = [
        [NAMES],
        [["a", "d", "g"], ["b", "e"], ["c", "f"]],
        [["a"], ["b", "c"], NAMES[3:]],
    ]
    one, *others = (
        learnt(tasks, None, partition=p, network=network)
        for p in partitions
        for network in (LocalNetwork(), Apart())
    )
    for other in others:
        np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-10)


def test_the_order_in_which_columns_come_does_not_matter() -> None:
    tasks = stream()
    turned = [(X[list(reversed(X.columns))], y) for X, y in tasks]
    plain, other = (learnt(t, 2, solver=Memory(ridge=1.0)) for t in (tasks, turned))
    where = [list(other.feature_names_in_).index(name) for name in plain.feature_names_in_]
    np.testing.assert_allclose(other.coef_[where], plain.coef_, rtol=1e-8)


def test_columns_that_stay_away_count_as_missing() -> None:
    tasks = stream([["a", "b", "c"], ["a", "c"], ["b", "c", "d"]], shift=3.0)
    model = learnt(tasks, 2, missing="mean")
    filled, means = [], tasks[0][0].mean()
    rows = tasks[0][0]
    for X, y in tasks:
        rows = pd.concat([rows, X]) if X is not tasks[0][0] else rows
        means = rows.mean()
        filled.append((X.reindex(columns=[n for n in "abcd" if n in means]).fillna(means), y))
    same = learnt(filled, 2)
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-6)
    some = tasks[1][0]
    with pytest.warns(UserWarning, match="lacks 2 of the model's 4 columns, such as 'b'"):
        assert model.predict(some).shape == (len(some),)


def test_a_new_column_goes_to_the_smallest_node_or_where_names_say() -> None:
    tasks = stream()
    assert [len(block) for block in learnt(tasks, 3).partition_] == [3, 2, 2]
    named = learnt(tasks, None, partition=[["a", "d"], ["b", "c", "[e-g]"]])
    assert [block.tolist() for block in named.partition_] == [[0, 3], [1, 2, 4, 5, 6]]
    joins = learnt(tasks, None, partition=[["z*", "d"], ["a", "b"], ["e", "g"], ["c"]])
    assert [block.tolist() for block in joins.partition_] == [[0, 1], [2, 5], [3], [4, 6]]


@pytest.mark.parametrize("rank", [None, 4, 0])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_node_may_join_with_its_columns(rank: int | None, loss: str) -> None:
    """The same as if its columns had joined another node; exactly with lossless memory, which a
    rank of four is to a stream that began with three columns."""
    tasks = [(X, (y > 0).astype(int)) for X, y in stream()]
    models = [conche.ConcheClassifier(loss=loss, solver=Memory(rank)) for _ in range(2)]
    models[0].set_params(partition=[["a", "b", "c"], ["d"], ["e", "f", "g"]])
    models[1].set_params(partition=[["a", "b", "c", "d", "e", "f", "g"]])
    for X, y in tasks:
        for model in models:
            model.partial_fit(X, y)
    assert [len(model.partition_) for model in models] == [3, 1]
    if rank != 0:
        np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-6)
    X, y = tasks[-1]
    assert models[0].score(X, y) >= models[1].score(X, y) - 0.1


SOLVERS = ["exact", "damped", conche.Damped(damping=3.0), conche.ElasticNet(0.01)]


@pytest.mark.parametrize("solver", SOLVERS)
def test_algorithm_1_takes_new_columns_too(solver: Any) -> None:
    model = conche.CoCoARegressor(2, solver=solver, n_rounds=50)
    for X, y in stream():
        model.partial_fit(X, y)
    assert model.coef_.shape == (7,) and np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize("rank", [None, 4])
def test_a_saved_stream_goes_on_with_new_columns(rank: int | None, tmp_path: Path) -> None:
    tasks = stream()
    partition = [["a", "b"], ["c", "d"], ["e", "f", "g"]]
    options: dict[str, Any] = dict(K=None, partition=partition, solver=Memory(rank))
    whole = learnt(tasks, **options)
    for t in range(1, len(tasks)):
        conche.save(learnt(tasks[:t], **options), tmp_path / "m", timings=False)
        again = conche.load(tmp_path / "m")
        for X, y in tasks[t:]:
            again.partial_fit(X, y)
        conche.save(again, tmp_path / "a", timings=False)
        conche.save(whole, tmp_path / "b", timings=False)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_bad_columns_are_named_and_change_nothing() -> None:
    tasks = stream()
    model = learnt(tasks[:2])
    before = model.state_
    X, y = tasks[1]
    twice = X.set_axis(["a", "a", "c", "d"], axis=1)
    for bad, message in [
        (X.rename(columns={"b": "B"}), "column 'b' of the stream is missing"),
        (X.drop(columns="c"), "column 'c' of the stream is missing; with missing='mean'"),
        (twice, "column 'b' of the stream is missing"),
        (X.assign(z="text"), "could not convert string to float"),
        (X.assign(z=np.nan), "contains NaN"),
    ]:
        with pytest.raises(conche.DataError, match=message):
            model.partial_fit(bad, y)
        assert model.state_ is before
    again = model.partial_fit(*tasks[2])
    assert again.n_tasks_seen_ == 3
    for partition, message in [
        ([["a"], ["b"]], "column 'c' is in no block"),
        ([["a", "b"], ["b", "c"]], "column 'b' is in block 0 and in block 1"),
        ([["a", 1], ["b", "c"]], "block 0 must list names"),
    ]:
        with pytest.raises(conche.ParameterError, match=message):
            conche.ConcheRegressor(partition=partition).fit(*tasks[0])
    with pytest.raises(conche.ParameterError, match="the columns of X have none"):
        conche.ConcheRegressor(partition=[["a"], ["b"]]).fit(np.eye(2), np.ones(2))


def written(folder: Path, arriving: list[list[str]] = ARRIVING, seed: int = 0) -> Frames:
    folder.mkdir()
    tasks = stream(arriving, seed)
    for t, (X, y) in enumerate(tasks):
        X.assign(y=y).to_csv(folder / f"{t}.csv", index=False)
    return tasks


@pytest.mark.parametrize("more", ["--nodes 2", "--groups groups.json", "--nodes 3 --rank 4"])
def test_a_stream_of_files_with_new_columns_stopped_after_every_task(
    more: str, tmp_path: Path
) -> None:
    """The same model as without a stop, and the same weights as in Python."""
    tasks = written(tmp_path / "train")
    groups = {"one": ["a", "b", "[cd]"], "late": ["e", "f"]}
    (tmp_path / "groups.json").write_text(json.dumps(groups))
    options = ["--target", "y", *more.split()]
    done = run("train", "train", *options, "--out", "whole", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1: 1 new column: d" in done.stdout and "3: 3 new columns: e, f, ..." in done.stdout
    (tmp_path / "some").mkdir()
    for t in range(len(tasks)):
        shutil.copy(tmp_path / "train" / f"{t}.csv", tmp_path / "some")
        asked = [*options, "--checkpoint", "state", "--resume", "--out", "m"]
        done = run("train", "some", *asked, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert_the_same_but_for_errors(tmp_path / "m", tmp_path / "whole")
    model = conche.load(tmp_path / "m")
    python: dict[str, Any] = dict(K=2)
    if "groups" in more:
        python = dict(K=None, partition=list(groups.values()))
        assert [len(block) for block in model.partition_] == [4, 3]
    elif "rank" in more:
        python = dict(K=3, solver=Memory(4))
    np.testing.assert_allclose(model.coef_, learnt(tasks, **python).coef_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*they are filled in every row")
def test_files_that_lack_columns_are_filled_where_that_is_asked_for(tmp_path: Path) -> None:
    arriving = [["a", "b", "c"], ["a", "c", "d"], ["b", "c", "d"]]
    written(tmp_path / "train", arriving)
    written(tmp_path / "test", arriving, seed=5)
    options = ["--target", "y", "--nodes", "2", "--out", "m"]
    done = run("train", "train", *options, cwd=tmp_path)
    assert done.returncode == 2 and "1.csv: column 'b' of the first task is miss" in done.stderr
    done = run("train", "train", *options, "--missing", "mean", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("evaluate", "m", "test", "--target", "y", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.shape(json.loads(done.stdout)["matrix"]) == (3, 3)
    done = run("predict", "m", tmp_path / "test" / "0.csv", cwd=tmp_path)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 16, done.stderr


def test_resuming_knows_early_tasks_again_although_columns_have_come(tmp_path: Path) -> None:
    written(tmp_path / "train")
    asked = ["--target", "y", "--nodes", "2", "--checkpoint", "s", "--resume", "--out", "m"]
    assert run("train", "train", *asked, cwd=tmp_path).returncode == 0
    shutil.rmtree(tmp_path / "train")
    written(tmp_path / "train", seed=1)
    done = run("train", "train", *asked, cwd=tmp_path)
    assert done.returncode == 2 and "task '0' is not the one that was learnt" in done.stderr


@pytest.mark.parametrize(("rank", "node"), [(None, 0), (None, 1), (4, 1), (0, 1)])
def test_a_node_may_leave_and_the_others_make_up_for_it(
    rank: int | None, node: int, tmp_path: Path
) -> None:
    """With lossless memory: the offline solution on the data without its columns, now and after
    more tasks; the rise is that of the offline objective."""
    tasks = stream([NAMES] * 6)
    solver = Memory(rank, ridge=0.7)
    options: dict[str, Any] = dict(solver=solver, fit_intercept=False, scaling=None)
    options |= dict(tol=1e-13, n_rounds=200)
    model = learnt(tasks[:4], 3, **options)
    gone = [NAMES[j] for j in list(model.partition_)[node]]
    names = [name for name in NAMES if name not in gone]
    before = model.coef_
    left = model.drop_node(node)
    assert list(model.feature_names_in_) == names and len(model.partition_) == 2
    rest = [(X[names], y) for X, y in tasks]
    objective = [_objective(tasks[:4], NAMES, before), _objective(rest[:4], names, model.coef_)]
    if rank is None:
        np.testing.assert_allclose(model.coef_, offline(rest[:4], names, 0.7), rtol=1e-8)
        assert left.rise == pytest.approx(objective[1] - objective[0], rel=1e-8)
        assert left.share == pytest.approx(left.rise / objective[0], rel=1e-6)
        assert model.offline_gap_.bound < 1e-9
    elif rank:
        assert objective[1] < _objective(rest[:4], names, before[: len(names)])
        assert model.offline_gap_.bound == np.inf  # nobody knows any more, and it says so
    conche.save(model, tmp_path / "m")
    again = conche.load(tmp_path / "m")
    for X, y in rest[4:]:
        model.partial_fit(X, y)
        again.partial_fit(X, y)
    assert np.array_equal(again.coef_, model.coef_)
    if rank is None:
        np.testing.assert_allclose(model.coef_, offline(rest, names, 0.7), rtol=1e-8)


def _objective(tasks: Frames, names: list[str], w: Array) -> float:
    squares = sum(float(np.sum((y - X[names].to_numpy() @ w) ** 2)) for X, y in tasks)
    return 0.5 * (squares + 0.7 * float(w @ w))


def test_who_cannot_leave_is_named() -> None:
    model = learnt(stream(), 2)
    before = model.state_
    for node, message in [(2, "nodes 0 to 1"), ("b", "number of a")]:
        with pytest.raises(conche.ParameterError, match=message):
            model.drop_node(node)  # type: ignore[arg-type]  # on purpose
    assert model.state_ is before
    with pytest.raises(conche.ParameterError, match="the only node"):
        learnt(stream(), 1).drop_node(0)
    with pytest.raises(conche.ParameterError, match="holds the intercept"):
        learnt(stream(), 2, solver=Memory(rank=0)).drop_node(0)  # sums centre by themselves
    plain = conche.CoCoARegressor(3).fit(*stream()[0])
    assert np.isnan(plain.drop_node(0).rise) and plain.coef_.shape == (2,)
