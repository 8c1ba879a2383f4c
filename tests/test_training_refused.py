"""What `conche train`, `predict` and `evaluate` refuse: one line that says what and where."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import conche
from conche.cli.words import in_options

from .helpers.commands import CONCHE
from .helpers.commands import run_here as run
from .helpers.files import write_halves


@pytest.fixture
def streams(tmp_path: Path) -> Path:
    write_halves(tmp_path)
    return tmp_path


def broken(streams: Path, how: str) -> None:
    file = streams / "train" / "004.parquet"
    table = pa.parquet.read_table(file)
    if how == "truncated":
        file.write_bytes(file.read_bytes()[:-50])
    elif how == "text":
        table = table.set_column(2, "c2", pa.array(["x"] * 40))
    elif how == "no target":
        table = table.drop_columns(["y"])
    elif how == "twice":
        table = table.rename_columns(["c0", "c0", *table.column_names[2:]])
    elif how == "missing column":
        table = table.drop_columns(["c3"])
    elif how == "extra column":
        table = table.append_column("new", pa.array(["text"] * 40))
    elif how == "nan":
        table = table.set_column(2, "c2", pa.array([np.nan] * 40))
    elif how == "target inf":
        table = table.set_column(10, "y", pa.array([np.inf] * 40))
    elif how == "empty":
        table = table.slice(0, 0)
    if how != "truncated":
        pa.parquet.write_table(table, file)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("truncated", "004.parquet: cannot be read"),
        ("text", "004.parquet: column 'c2' is not numeric"),
        ("no target", "004.parquet: no column 'y' for the target"),
        ("twice", "004.parquet: two columns are called 'c0'"),
        ("missing column", "004.parquet: column 'c3' of the first task is missing"),
        ("extra column", "004.parquet: column 'new' is not numeric"),
        ("nan", "004.parquet: column 'c2' has missing"),
        ("target inf", "004.parquet: column 'y' has missing or infinite"),
        ("empty", "004.parquet: no rows"),
    ],
)
def test_wrong_files_are_one_line_and_the_checkpoint_is_intact(
    streams: Path, how: str, message: str
) -> None:
    broken(streams, how)
    options = "--target y --nodes 2 --checkpoint state --out m"
    done = run("train", "train", *options.split(), cwd=streams)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1 and message in done.stderr, done.stderr
    assert not (streams / "m").exists()
    if how in ("text", "extra column", "nan", "target inf"):  # found when it is read
        assert (
            "4 tasks learnt, up to '003': in state, and once that is mended, --resume goes on"
            in done.stderr
        )
        assert conche.load(streams / "state" / "model.conche").n_tasks_seen_ == 4
    else:  # before the first task
        assert not (streams / "state" / "model.conche").exists()


def test_a_late_label_a_task_of_one_row_and_constant_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    labels = [["a", "b"], ["a", "b"], ["a", "c"]]
    (tmp_path / "s").mkdir()
    for i, two in enumerate(labels):
        n = 1 if i == 1 else 30
        X = np.full((n, 3), 2.0) if i == 0 else rng.standard_normal((n, 3))
        y = np.array(two)[np.arange(n) % 2]
        columns = {f"c{j}": X[:, j] for j in range(3)} | {"y": y}
        pa.csv.write_csv(pa.table(columns), tmp_path / "s" / f"{i}.csv")
    options = ["train", "s", "--target", "y", "--out", "m"]
    found = run(*options, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    model = conche.load(tmp_path / "m")
    assert model.classes_.tolist() == ["a", "b", "c"] and np.all(np.isfinite(model.coef_))
    done = run(*options, "--classes", "a,b,c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(conche.load(tmp_path / "m").coef_, model.coef_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--nodes 11", "10 columns fit on 1 to 10 nodes"),
        ("--nodes 2 --groups g.json", "--nodes or --groups"),
        ("--groups nothing.json", "nothing.json: cannot be read"),
        ("--solver magic", "solver='magic'"),
        ("--solver exact --rank 5", "--rank is no option of --solver exact"),
        ("--l1-ratio 0.2", "--l1-ratio is no option of --solver memory"),
        ("--solver elastic-net --alpha much", "--alpha much must be a number or auto"),
        ("--solver elastic-net --alpha 1 --damping 2", "--damping is no option of --solver"),
        ("--solver elastic-net --alpha -1", "alpha=-1.0"),
        ("--rank -1", "rank=-1"),
        ("--lost 0.1", "--lost is for"),
        ("--ridge much", "'--ridge': Input should be a valid number"),
        ("--scaling last", "scaling='last'"),
        ("--missing zero", "missing='zero'"),
        ("--rounds 0", "n_rounds=0"),
        ("--resume", "--resume needs --checkpoint"),
        ("--network pigeon", "network='pigeon'"),
        ("--steps warp", "steps='warp'"),
        ("--features q", "no column 'q'"),
        ("--loss hinge --classify", "loss='hinge'"),
    ],
)
def test_wrong_options_are_one_line(streams: Path, options: str, message: str) -> None:
    done = run("train", "train", "--target", "y", "--out", "m", *options.split(), cwd=streams)
    assert done.returncode == 2, done.stdout
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and in_options(message) in lines[0], lines
    assert not (streams / "m").exists()


def test_other_wrong_commands(streams: Path) -> None:
    options = ["train", streams / "train", "--target", "y", "--out", streams / "m"]
    for arguments, message in (
        (
            ["train", streams / "nothing", "--target", "y", "--out", streams / "m"],
            "no such file or folder",
        ),
        ([*options[:-1], streams / "no" / "m"], "no such folder"),
        (["predict", streams / "nothing", streams / "x.csv"], "nothing"),
        (["evaluate", streams / "train" / "000.parquet", streams, "--target", "y"], "not a whole"),
    ):
        done = run(*arguments)
        assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1
        assert message in done.stderr
    state = [*options, "--checkpoint", streams / "state"]
    assert run(*state).returncode == 0
    assert "has a checkpoint" in run(*state).stderr
    other = run(*state, "--resume", "--nodes", 2)
    assert other.returncode == 2 and "begun with --nodes none, not 2" in other.stderr
    (streams / "train" / "002.parquet").rename(streams / "train" / "002b.parquet")
    moved = run(*state, "--resume")
    assert "task 3 was '002', the stream now has '002b' there" in moved.stderr
    (streams / "train" / "002b.parquet").rename(streams / "train" / "002.parquet")
    wrong = pa.csv.read_csv(pa.BufferReader(b"c0,c1\n1,2\n"))
    pa.csv.write_csv(wrong, streams / "w.csv")
    done = run("predict", streams / "m", streams / "w.csv")
    assert "column 'c2' of the model is missing" in done.stderr and done.returncode == 2


def test_an_error_is_exactly_one_line_and_success_is_silent_on_stderr(streams: Path) -> None:
    """In a process of its own: no blank lines of a progress bar, no warnings with source lines."""
    options = ["train", str(streams / "train"), "--target", "y", "--out", str(streams / "m")]
    done = subprocess.run([*CONCHE, *options], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    broken(streams, "nan")
    done = subprocess.run([*CONCHE, *options], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("conche: ")
    assert done.stderr.count("\n") == 1
    table = pa.parquet.read_table(streams / "train" / "000.parquet")
    large = table.set_column(10, "y", pa.array(np.full(40, 1e200)))
    pa.parquet.write_table(large, streams / "train" / "004.parquet")
    done = subprocess.run([*CONCHE, *options], capture_output=True, text=True)
    assert done.stderr.count("\n") <= 1 and "Warning" not in done.stderr


def test_what_a_checkpoint_was_begun_with_is_compared(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    (tmp_path / "s").mkdir()
    for i in range(2):
        X = rng.standard_normal((30, 2))
        columns = {"a": X[:, 0], "b": X[:, 1], "y": X[:, 0], "z": X[:, 1], "k": np.arange(30) % 3}
        pa.parquet.write_table(pa.table(columns), tmp_path / "s" / f"{i}.parquet")
    base = ["train", tmp_path / "s", "--features", "a,b", "--out", tmp_path / "m", "--resume"]
    assert run(*base, "--target", "y", "--checkpoint", tmp_path / "c1").returncode == 0
    other = run(*base, "--target", "z", "--checkpoint", tmp_path / "c1")
    assert other.returncode == 2 and "begun with the target 'y', not 'z'" in other.stderr
    labels = [*base, "--target", "k", "--classify", "--checkpoint", tmp_path / "c2", "--classes"]
    assert run(*labels, "0,1,2").returncode == 0
    other = run(*labels, "0,1")
    assert other.returncode == 2 and "has the classes [0, 1, 2]; list them all" in other.stderr
    assert "whole numbers" in run(*labels, "0,1.5").stderr
    assert "--loss is for labels" in run(*base, "--target", "y", "--loss", "logistic").stderr
    model = conche.ConcheRegressor().fit(X, X[:, 0])
    (tmp_path / "c3").mkdir()
    conche.save(model, tmp_path / "c3" / "model.conche")
    other = run(*base, "--target", "y", "--checkpoint", tmp_path / "c3")
    assert other.returncode == 2 and "cannot be resumed" in other.stderr
    (tmp_path / "file").write_text("")
    other = run(*base, "--target", "y", "--checkpoint", tmp_path / "file")
    assert other.returncode == 2 and "is not a folder" in other.stderr


def test_a_model_without_names_does_not_guess(tmp_path: Path) -> None:
    X = np.random.default_rng(4).standard_normal((20, 3))
    conche.save(conche.ConcheRegressor().fit(X, X.sum(1)), tmp_path / "m")
    columns = {f"c{j}": X[:, j] for j in range(3)}
    pa.csv.write_csv(pa.table(columns), tmp_path / "right.csv")
    pa.csv.write_csv(pa.table(columns | {"y": X.sum(1)}), tmp_path / "more.csv")
    assert run("predict", tmp_path / "m", tmp_path / "right.csv").returncode == 0
    done = run("predict", tmp_path / "m", tmp_path / "more.csv")
    assert done.returncode == 2 and "4 columns, and the model, which has no names" in done.stderr
    pa.csv.write_csv(pa.table({"c0": X[:, 0], "y": X.sum(1)}), tmp_path / "less.csv")
    done = run("evaluate", tmp_path / "m", tmp_path / "less.csv", "--target", "y")
    assert done.returncode == 2 and "1 columns for the model's 3" in done.stderr
