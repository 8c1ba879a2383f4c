"""Streams on disk: what is read, block by block, and what is refused by name."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import conche
from conche.common.arrays import Array
from conche.errors import StreamError
from conche.tasks import FileColumns, FileStream, Task, npz, open_table, read_groups
from conche.tasks.arrow import Parquet
from conche.tasks.npz import Npz

from .helpers.files import write_stream


@pytest.fixture
def tasks() -> list[Task]:
    return conche.gaussian_tasks(4, 30, 6, n_shared=3, noise_var=0.1)


@pytest.mark.parametrize("kind", ["parquet", "csv", "npz"])
def test_learning_from_files_is_learning_from_arrays(
    tasks: list[Task], tmp_path: Path, kind: str
) -> None:
    write_stream(tmp_path / "s", tasks, kind)
    stream = FileStream(tmp_path / "s")
    letter = "x" if kind == "npz" else "c"
    assert len(stream) == 4 and stream.columns == [f"{letter}{j}" for j in range(6)]
    on_disk, in_memory = (conche.ConcheRegressor(partition=[4, 2]) for _ in range(2))
    for file, task in zip(stream, tasks, strict=True):
        on_disk.partial_fit(file.X, file.y)
        in_memory.partial_fit(task.X, task.y)
    assert on_disk.coef_ == pytest.approx(in_memory.coef_, rel=1e-9)
    assert on_disk.feature_names_in_.tolist() == stream.columns
    assert on_disk.predict(stream.task(0).X) == pytest.approx(in_memory.predict(tasks[0].X))


def test_a_node_reads_its_own_columns_and_no_others(
    tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stream(tmp_path / "s", tasks[:1], "parquet")
    asked: list[list[str]] = []
    real = Parquet.read

    def read(self: Parquet, names: Sequence[str], rows: Array | None, missing: str) -> Array:
        asked.append(list(names))
        return real(self, names, rows, missing)

    monkeypatch.setattr(Parquet, "read", read)
    task = FileStream(tmp_path / "s").task(0)
    assert asked == []
    conche.CoCoARegressor(partition=[[0, 2, 4], [1, 3, 5]]).partial_fit(task.X, task.y)
    assert asked == [["c0", "c2", "c4"], ["c1", "c3", "c5"]]


def test_an_npz_gives_any_columns_and_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "CHUNK", 50)  # two rows at a time
    X = np.arange(12.0).reshape(4, 3)
    for name, write in (("plain", np.savez), ("packed", np.savez_compressed)):
        for order, kept in (("C", X), ("F", np.asfortranarray(X))):
            file = tmp_path / f"{name}{order}.npz"
            write(file, X=kept, y=np.ones(4), columns=np.array(["a", "b", "c"]))
            table = Npz(file)
            assert table.read(["c", "a"], None, "refuse").tolist() == X[:, [2, 0]].tolist()
            assert table.read(["b"], np.array([3, 1]), "refuse").tolist() == [[10.0], [4.0]]


def with_header(file: Path, shape: str, compressed: bool) -> None:
    """An npz file whose X says that it has this shape, and has 12 numbers."""
    numbers = io.BytesIO()
    np.lib.format.write_array(numbers, np.ones((4, 3)))
    text = numbers.getvalue().replace(b"(4, 3)", shape.encode())
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", kind) as archive:
        spare = len(shape) - len("(4, 3)")
        at = text.index(b"\n")
        archive.writestr("X.npy", text[: at - spare] + text[at:] if spare else text)
        y = io.BytesIO()
        np.lib.format.write_array(y, np.ones(4))
        archive.writestr("y.npy", y.getvalue())


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("shape", ["(4, 9)", "(9, 3)", "(4, 2)", "(99999999, 99999)", "(-4, -3)"])
def test_an_npz_that_says_another_shape_than_it_has_is_refused(
    shape: str, compressed: bool, tmp_path: Path
) -> None:
    with_header(tmp_path / "1.npz", shape, compressed)
    with pytest.raises(StreamError, match=r"1.npz: (cannot be read|X has shape)"):
        FileStream(tmp_path)
    with_header(tmp_path / "1.npz", "(4, 3)", compressed)
    assert FileStream(tmp_path).task(0).X.shape == (4, 3)


def test_a_file_that_becomes_shorter_while_it_is_open_is_an_error(tmp_path: Path) -> None:
    X = np.ones((4000, 30))
    for order in ("C", "F"):
        np.savez(tmp_path / "1.npz", X=np.array(X, order=order), y=np.ones(4000))
        task = FileStream(tmp_path).task(0)
        os.truncate(tmp_path / "1.npz", 200_000)
        with pytest.raises(StreamError, match="1.npz: became shorter while it was read"):
            np.asarray(task.X)


def test_arrays_that_are_not_asked_for_are_not_loaded(tmp_path: Path) -> None:
    odd = np.array([{"a": 1}], dtype=object)
    np.savez(tmp_path / "1.npz", X=np.ones((4, 3)), y=np.ones(4), odd=odd, long=np.ones(9))
    task = FileStream(tmp_path).task(0)
    assert np.asarray(task.X).shape == (4, 3)
    with pytest.raises(StreamError, match="X has shape"):
        FileStream(tmp_path, target="odd").task(0)


def test_one_task_in_two_files_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones((4, 3)), y=np.ones(4))
    (tmp_path / "a.csv").write_text("x0,y\n1,2\n")
    with pytest.raises(StreamError, match="a.npz: the same task as a.csv, a second time"):
        FileStream(tmp_path)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_one_table_with_a_task_column(tasks: list[Task], tmp_path: Path, kind: str) -> None:
    """Rows of a task may lie anywhere; tasks come in the order of their first row."""
    order = np.random.default_rng(0).permutation(120)
    X = np.concatenate([t.X for t in tasks])[order]
    y = np.concatenate([t.y for t in tasks])[order]
    month = np.repeat(["mar", "apr", "jan", "feb"], 30)[order]
    columns = {f"x{j}": X[:, j] for j in range(6)} | {"y": y, "month": month}
    file = tmp_path / f"all.{kind}"
    if kind == "parquet":
        pa.parquet.write_table(pa.table(columns), file, row_group_size=7)
    else:
        pa.csv.write_csv(pa.table(columns), file)
    stream = FileStream(file, task_column="month")
    assert stream.names == list(dict.fromkeys(month.tolist()))
    for task in stream:
        rows = month == task.name
        assert np.array_equal(np.asarray(task.X), X[rows]) and np.array_equal(task.y, y[rows])
        assert np.array_equal(task.X.select(np.array([5, 0])).read(), X[rows][:, [5, 0]])
    with pytest.raises(StreamError, match="no column 'week' for the task"):
        FileStream(file, task_column="week")


def test_features_and_drop_take_names_and_patterns(tmp_path: Path) -> None:
    table = pa.table({"a1": [1.0], "a2": [2.0], "b": [3.0], "y": [0.0], "id": ["q"]})
    pa.csv.write_csv(table, tmp_path / "1.csv")
    assert FileStream(tmp_path, features=["b", "a*"]).columns == ["b", "a1", "a2"]
    assert FileStream(tmp_path, drop=["id", "a2"]).columns == ["a1", "b"]
    with pytest.raises(StreamError, match="no column 'c'"):
        FileStream(tmp_path, features=["c"])
    with pytest.raises(StreamError, match="no column 'z'"):
        FileStream(tmp_path, drop=["z"])
    with pytest.raises(StreamError, match="column 'id' is not numeric"):
        np.asarray(FileStream(tmp_path).task(0).X)


def test_missing_values_pass_only_where_they_are_filled(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1.0, None, 3.0]), "b": [1, 2, 3], "y": [0.0, 1.0, 2.0]})
    pa.parquet.write_table(table, tmp_path / "1.parquet")
    with pytest.raises(StreamError, match="column 'a' has 1 missing value"):
        np.asarray(FileStream(tmp_path).task(0).X)
    read = np.asarray(FileStream(tmp_path, missing="keep").task(0).X)
    assert np.isnan(read[1, 0]) and read[:, 1].tolist() == [1.0, 2.0, 3.0]
    table = pa.table({"a": [1.0], "y": pa.array([None], pa.float64())})
    pa.parquet.write_table(table, tmp_path / "1.parquet")
    with pytest.raises(StreamError, match="column 'y' has 1 missing value"):
        FileStream(tmp_path, missing="keep").task(0)


def test_groups(tmp_path: Path) -> None:
    columns = ["a1", "a2", "b1", "c"]
    path = tmp_path / "groups.json"
    path.write_text(json.dumps({"A": ["a*"], "rest": ["c", "b1"]}))
    assert read_groups(path, columns) == {"A": ["a*"], "rest": ["c", "b1"]}
    toml = tmp_path / "groups.toml"
    toml.write_text('A = ["a*"]\nB = ["b1", "c"]\n')
    assert read_groups(toml, columns) == {"A": ["a*"], "B": ["b1", "c"]}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"A": ["a*"]}, "column 'b1' is on no node"),
        ({"A": ["*"], "B": ["c"]}, "column 'c' is on node 'A' and on 'B'"),
        ({"A": "a1"}, "needs a list of column names"),
        ({"A": ["*"], "B": []}, "node 'B' has no columns"),
        ([1], "expected nodes"),
    ],
)
def test_wrong_groups_are_named(tmp_path: Path, groups: Any, message: str) -> None:
    path = tmp_path / "groups.json"
    path.write_text(json.dumps(groups))
    with pytest.raises(StreamError, match=message.replace("*", r"\*")):
        read_groups(path, ["a1", "a2", "b1", "c"])


def test_truncated_files_are_named(tmp_path: Path, tasks: list[Task]) -> None:
    write_stream(tmp_path, tasks, "parquet")
    file = sorted(Path(tmp_path).iterdir())[2]
    file.write_bytes(file.read_bytes()[:-30])
    stream = FileStream(tmp_path)
    with pytest.raises(StreamError, match=f"{file.name}: cannot be read"):
        list(stream)


def test_other_arrays_and_odd_names_of_an_npz(tmp_path: Path) -> None:
    X = np.ones((4, 2))
    np.savez(tmp_path / "1.npz", X=X, y=np.ones(4), w=np.ones(4))
    assert FileStream(tmp_path).columns == ["x0", "x1"]
    np.savez(tmp_path / "1.npz", X=X, y=np.ones(4), columns=np.array([b"a", b"b"]))
    assert FileStream(tmp_path).columns == ["a", "b"]
    for names in (np.array(3), np.array([["a"], ["b"]]), np.array([1, 2])):
        np.savez(tmp_path / "1.npz", X=X, y=np.ones(4), columns=names)
        with pytest.raises(StreamError, match="array 'columns' must be a list of names"):
            FileStream(tmp_path)
    np.save(tmp_path / "2.npy", X)
    (tmp_path / "2.npy").rename(tmp_path / "1.npz")
    with pytest.raises(StreamError, match="not an npz file of plain arrays"):
        FileStream(tmp_path)
    (tmp_path / "1.npz").unlink()
    np.savez(tmp_path / "1.npz", X=np.array([[1, np.nan]]), y=np.ones(1))
    with pytest.raises(StreamError, match="column 'x1'"):
        np.asarray(FileStream(tmp_path).task(0).X)


def test_empty_texts_are_missing_and_folders_are_no_tasks(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,y\n1,u\n2,\n")
    with pytest.raises(StreamError, match="column 'y' has 1 missing value"):
        FileStream(tmp_path).task(0)
    (tmp_path / "0.csv").mkdir()
    (tmp_path / "2.CSV").write_text("a,y\n1,u\n")
    assert FileStream(tmp_path).names == ["1", "2"]
    with pytest.raises(StreamError, match="is the target and the task column"):
        FileStream(tmp_path / "1.csv", task_column="y")


def test_what_travels_is_small_and_read_where_it_arrives(tasks: list[Task], tmp_path: Path) -> None:
    write_stream(tmp_path / "s", tasks, "parquet")
    with contextlib.chdir(tmp_path):
        block = FileStream("s").task(1).X.select(slice(2, 5))
        sent = pickle.dumps(block.sendable())
    assert len(sent) < 1000
    arrived = pickle.loads(sent)
    assert type(arrived) is FileColumns and arrived.names == ["c2", "c3", "c4"]
    assert np.array_equal(arrived.read(), tasks[1].X[:, 2:5])
    assert np.array_equal(arrived.select(np.array([2, 0])).read(), tasks[1].X[:, [4, 2]])
    assert arrived.shape == (30, 3)


def test_a_file_is_opened_once(
    tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For its columns, for its target, and for the task: the first file, like any other."""
    write_stream(tmp_path / "s", tasks, "parquet")
    opened: list[str] = []
    real = Parquet.__init__

    def init(self: Parquet, path: Path, *reading: Any) -> None:
        opened.append(path.name)
        real(self, path, *reading)

    monkeypatch.setattr(Parquet, "__init__", init)
    stream = FileStream(tmp_path / "s")
    assert stream.task(0).y.dtype.kind == "f"
    assert [np.asarray(task.X).shape for task in stream] == [(30, 6)] * 4
    assert opened == ["00.parquet", "01.parquet", "02.parquet", "03.parquet"]


@pytest.mark.parametrize("kind", ["parquet", "npz"])
def test_ten_times_the_columns_take_about_ten_times_as_long(tmp_path: Path, kind: str) -> None:
    """Opening, listing every column by name, and reading block by block; not a hundred times."""

    def seconds(p: int) -> float:
        clock = time.perf_counter()
        stream = FileStream(tmp_path / f"{p}", features=names)
        read_groups(tmp_path / "g.json", stream.columns)
        X = stream.task(0).X
        for first in range(0, p, 100):
            X.select(slice(first, first + 100)).read()
        return time.perf_counter() - clock

    best = []
    for p in (1000, 10_000):
        write_stream(tmp_path / f"{p}", [Task(np.ones((2, p)), np.ones(2))], kind)
        names = FileStream(tmp_path / f"{p}").columns
        (tmp_path / "g.json").write_text(json.dumps({"all": names}))
        best.append(min(seconds(p) for _ in range(3)))
    assert best[1] < 40 * best[0]


def test_patterns_and_names_with_brackets(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a[1],a[2],b,y\n1,2,3,4\n")
    assert FileStream(tmp_path, features=["a[1]"]).columns == ["a[1]"]
    assert FileStream(tmp_path, features=["a?1]", "a*"]).columns == ["a[1]", "a[2]"]


def test_suffixes_are_known_in_capitals_and_others_refused(tmp_path: Path) -> None:
    (tmp_path / "1.CSV").write_text("a,y\n1,2\n")
    assert open_table(tmp_path / "1.CSV").names == ["a", "y"]
    (tmp_path / "1.txt").write_text("a,y\n1,2\n")
    with pytest.raises(StreamError, match="1.txt: expected a file that ends in .parquet, .csv"):
        open_table(tmp_path / "1.txt")


def test_a_target_of_another_length_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "1.npz", X=np.ones((4, 2)), y=np.ones(3))
    with pytest.raises(StreamError, match=r"1.npz: X has shape \(4, 2\) and y \(3,\)"):
        FileStream(tmp_path).task(0)


BARE = """
import sys
for name in ("pyarrow", "matplotlib", "typer", "rich"):
    sys.modules[name] = None  # as if it were not installed
import conche
from conche.errors import MissingExtraError
model = conche.ConcheRegressor(n_nodes=2)
for task in conche.FileStream(sys.argv[1]):
    model.partial_fit(task.X, task.y)
print(model.n_tasks_seen_)
try:
    conche.FileStream(sys.argv[2])
except MissingExtraError as error:
    print(error)
"""


def test_the_core_does_without_extras(tasks: list[Task], tmp_path: Path) -> None:
    """No pyarrow, matplotlib, typer, rich: import, learn from npz; Parquet names the extra."""
    write_stream(tmp_path / "s", tasks, "npz")
    write_stream(tmp_path / "p", tasks, "parquet")
    command = [sys.executable, "-c", BARE, str(tmp_path / "s"), str(tmp_path / "p")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    learnt, said = done.stdout.splitlines()
    assert learnt == "4"
    assert said.startswith("reading Parquet and CSV needs pyarrow: pip install 'conche[files]'")
