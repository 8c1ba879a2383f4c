"""conche train, predict, evaluate: as a user runs them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import pytest

import conche
from conche.cli import main

from .streams import need

CONCHE = [sys.executable, "-c", "from conche.cli import main; main()"]


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object, cwd: Path | None = None) -> Done:
    """The command line, in this process: starting another takes longer than most of the work."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["conche", *map(str, arguments)]),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return Done(int(ended.value.code or 0), out.getvalue(), err.getvalue())


def write(folder: Path, tasks, names=None, kind="parquet") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i, task in enumerate(tasks):
        columns = {f"c{j}": task.X[:, j] for j in range(task.X.shape[1])} | {"y": task.y}
        file = folder / f"{i:03d}.{kind}"
        save = pa.parquet.write_table if kind == "parquet" else pa.csv.write_csv
        save(pa.table(columns), file)


@pytest.fixture
def streams(tmp_path: Path) -> Path:
    tasks = conche.gaussian_tasks(8, 60, 10, n_shared=8, noise_var=0.1)
    halves = [(conche.Task(t.X[:40], t.y[:40]), conche.Task(t.X[40:], t.y[40:])) for t in tasks]
    write(tmp_path / "train", [a for a, _ in halves])
    write(tmp_path / "test", [b for _, b in halves])
    return tmp_path


def test_files_in_a_model_out(streams):
    done = run("train", streams / "train", "--target", "y", "--nodes", 3, "--out", streams / "m")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "before" in lines[0] and "after" in lines[0] and len(lines) == 10
    assert "8 tasks, 3 node(s)" in lines[-1]
    same = conche.ConcheRegressor(n_nodes=3, fit_intercept=True, scaling="first")
    rows = []
    test = list(conche.FileStream(streams / "test"))
    for task in conche.FileStream(streams / "train"):
        same.partial_fit(task.X, task.y)
        rows.append([np.mean((same.predict(t.X) - t.y) ** 2) for t in test])
    model = conche.load(streams / "m")
    assert np.array_equal(model.coef_, same.coef_)
    assert model.stream_["tasks"] == [f"{i:03d}" for i in range(8)]

    done = run("evaluate", streams / "m", streams / "test", "--target", "y", "--json",
               "--offline", streams / "train", "--plot", streams / "matrix.png")  # fmt: skip
    found = json.loads(done.stdout)
    assert np.array(found["matrix"]) == pytest.approx(np.array(rows))
    assert found["average"] == pytest.approx(np.mean(rows[-1]))
    assert found["forgetting"] == pytest.approx(np.mean((np.array(rows[-1]) - np.diag(rows))[:-1]))
    X = [
        np.hstack([np.asarray(t.X), np.ones((40, 1))]) for t in conche.FileStream(streams / "train")
    ]
    y = [t.y for t in conche.FileStream(streams / "train")]
    best = np.linalg.lstsq(np.concatenate(X), np.concatenate(y))[0]
    offline = [np.mean((np.asarray(t.X) @ best[:-1] + best[-1] - t.y) ** 2) for t in test]
    assert found["offline"] == pytest.approx(np.mean(offline))
    assert (streams / "matrix.png").stat().st_size > 10_000
    shown = run("evaluate", streams / "m", streams / "test", "--target", "y").stdout
    assert f"average {np.mean(rows[-1]):.3f}" in shown and "forgetting" in shown

    file = sorted((streams / "test").iterdir())[0]
    done = run("predict", streams / "m", file)
    got = [float(line) for line in done.stdout.splitlines()[1:]]
    assert done.stdout.startswith("prediction\n")
    assert got == pytest.approx(same.predict(test[0].X))
    assert run("predict", streams / "m", file, "--out", streams / "p.parquet").returncode == 0
    table = pa.parquet.read_table(streams / "p.parquet")
    assert table["prediction"].to_numpy() == pytest.approx(np.array(got))


def test_killed_at_any_moment_and_resumed_the_model_is_the_same_to_the_last_bit(tmp_path):
    write(tmp_path / "s", conche.gaussian_tasks(30, 400, 60, n_shared=30, noise_var=0.1))
    options = ["train", tmp_path / "s", "--target", "y", "--nodes", 4, "--scaling", "running"]
    assert run(*options, "--out", tmp_path / "whole").returncode == 0
    state = tmp_path / "state"
    again = [*options, "--checkpoint", state, "--resume", "--out", tmp_path / "resumed"]
    kills = 0
    for wanted in (1, 7, 8, 20):
        command = [*CONCHE, *map(str, again)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:  # a line a task
                if line.startswith(f"{wanted - 1:03d}"):
                    os.kill(process.pid, signal.SIGKILL)
                    kills += 1
    assert kills >= 2
    done = run(*again)
    assert done.returncode == 0 and "going on after" in done.stdout
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    assert [f.name for f in state.iterdir() if not f.name.endswith(".tmp")] == ["model.conche"]


def test_new_months_are_learnt_later(streams):
    """A checkpoint also serves a stream that has grown."""
    more = streams / "train" / "007.parquet"
    later = more.read_bytes()
    more.unlink()
    options = ["train", streams / "train", "--target", "y", "--checkpoint", streams / "state",
               "--resume", "--out", streams / "m"]  # fmt: skip
    assert run(*options).returncode == 0
    more.write_bytes(later)
    done = run(*options)
    assert "going on after 006: 7 of 8 were learnt" in done.stdout
    fresh = streams / "fresh"
    run("train", streams / "train", "--target", "y", "--out", fresh)
    assert fresh.read_bytes() == (streams / "m").read_bytes()


def test_labels_of_text(tmp_path):
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        (tmp_path / part).mkdir()
        for i in range(3):
            X = rng.standard_normal((60, 4))
            kind = np.array(["ham", "spam", "wurst"])[np.argmax(X[:, :3], axis=1)]
            columns = {f"c{j}": X[:, j] for j in range(4)} | {"kind": kind}
            pa.csv.write_csv(pa.table(columns), tmp_path / part / f"{i}.csv")
    done = run("train", tmp_path / "train", "--target", "kind", "--nodes", 2, "--loss", "logistic",
               "--out", tmp_path / "m")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "error rate" in done.stdout
    found = json.loads(run("evaluate", tmp_path / "m", tmp_path / "test", "--target", "kind",
                           "--json").stdout)  # fmt: skip
    assert found["metric"] == "error rate" and found["average"] < 0.15
    done = run("predict", tmp_path / "m", tmp_path / "test" / "0.csv")
    header, first = done.stdout.splitlines()[:2]
    assert header == "prediction,p(ham),p(spam),p(wurst)"
    assert first.split(",")[0] in ("ham", "spam", "wurst")
    assert sum(map(float, first.split(",")[1:])) == pytest.approx(1)


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
        table = table.append_column("new", pa.array(np.ones(40)))
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
        ("extra column", "004.parquet: column 'new' is not in the first task"),
        ("nan", "004.parquet: column 'c2' has missing"),
        ("target inf", "004.parquet: column 'y' has missing or infinite"),
        ("empty", "004.parquet: no rows"),
    ],
)
def test_wrong_files_are_one_line_and_the_checkpoint_is_intact(streams, how, message):
    broken(streams, how)
    state = streams / "state"
    done = run("train", streams / "train", "--target", "y", "--nodes", 2, "--checkpoint", state,
               "--out", streams / "m")  # fmt: skip
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1 and message in done.stderr, done.stderr
    assert not (streams / "m").exists()
    assert conche.load(state / "model.conche").n_tasks_seen_ == 4


def test_a_label_never_seen_a_task_of_one_row_and_constant_columns(tmp_path):
    rng = np.random.default_rng(1)
    labels = [["a", "b"], ["a", "b"], ["a", "c"]]
    (tmp_path / "s").mkdir()
    for i, two in enumerate(labels):
        n = 1 if i == 1 else 30
        X = np.full((n, 3), 2.0) if i == 0 else rng.standard_normal((n, 3))
        y = np.array(two)[np.arange(n) % 2]
        columns = {f"c{j}": X[:, j] for j in range(3)} | {"y": y}
        pa.csv.write_csv(pa.table(columns), tmp_path / "s" / f"{i}.csv")
    state = tmp_path / "state"
    done = run("train", tmp_path / "s", "--target", "y", "--checkpoint", state, "--out",
               tmp_path / "m")  # fmt: skip
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1
    assert "task 2: label 'c' was never seen" in done.stderr
    model = conche.load(state / "model.conche")
    assert model.n_tasks_seen_ == 2 and np.all(np.isfinite(model.coef_))
    done = run("train", tmp_path / "s", "--target", "y", "--classes", "a,b,c", "--out",
               tmp_path / "m")  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--nodes 11", "10 columns fit on 1 to 10 nodes"),
        ("--nodes 2 --groups g.json", "--nodes or --groups"),
        ("--groups nothing.json", "nothing.json: cannot be read"),
        ("--solver magic", "solver='magic'"),
        ("--damping much", "--damping much must be a number or auto"),
        ("--scaling last", "scaling='last'"),
        ("--missing zero", "missing='zero'"),
        ("--rounds 0", "n_rounds=0"),
        ("--resume", "--resume needs --checkpoint"),
        ("--network pigeon", "network='pigeon'"),
        ("--acceleration warp", "--acceleration warp"),
        ("--features q", "no column 'q'"),
        ("--loss hinge --classify", "loss='hinge'"),
    ],
)
def test_wrong_options_are_one_line(streams, options, message):
    done = run("train", streams / "train", "--target", "y", "--out", streams / "m",
               *options.split(), cwd=streams)  # fmt: skip
    assert done.returncode == 2, done.stdout
    assert len(done.stderr.strip().splitlines()) == 1 and message in done.stderr, done.stderr
    assert not (streams / "m").exists()


def test_other_wrong_commands(streams):
    options = ["train", streams / "train", "--target", "y", "--out", streams / "m"]
    for arguments, message in (
        (["train", streams / "nothing", "--target", "y", "--out", streams / "m"], "no .parquet"),
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
    assert other.returncode == 2 and "begun with n_nodes=None, not 2" in other.stderr
    (streams / "train" / "002.parquet").rename(streams / "train" / "002b.parquet")
    moved = run(*state, "--resume")
    assert "task 3 was '002', the stream now has '002b' there" in moved.stderr
    (streams / "train" / "002b.parquet").rename(streams / "train" / "002.parquet")
    wrong = pa.csv.read_csv(pa.BufferReader(b"c0,c1\n1,2\n"))
    pa.csv.write_csv(wrong, streams / "w.csv")
    done = run("predict", streams / "m", streams / "w.csv")
    assert "column 'c2' of the model is missing" in done.stderr and done.returncode == 2


def test_beijing_from_parquet_on_disk(tmp_path):
    example = Path(__file__).parents[1] / "examples" / "beijing.py"
    data = need("beijing-air", "beijing12.npz").parent
    subprocess.run([sys.executable, example, "--data", data, "--out", tmp_path], check=True)
    groups = ["--groups", tmp_path / "stations.json", "--missing", "mean", "--target", "pm25",
              "--scaling", "none"]  # fmt: skip
    limits = {"memory": 0.418, "damped": 0.46}
    for solver, limit in limits.items():
        extra = ["--damping", "auto"] if solver == "damped" else []
        done = run("train", tmp_path / "train", *groups, "--solver", solver, *extra, "--out",
                   tmp_path / solver)  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = json.loads(run("evaluate", tmp_path / solver, tmp_path / "test", "--target", "pm25",
                               "--offline", tmp_path / "train", "--json").stdout)  # fmt: skip
        assert found["average"] <= limit
        assert found["average"] <= limit / 0.405 * found["offline"]
        assert len(found["errors"]) == 48


def test_a_long_stream_keeps_memory_flat(tmp_path):
    """Forty tasks: what is resident after the tenth and after the last."""
    write(tmp_path / "s", conche.gaussian_tasks(2, 4000, 100, n_shared=50))
    for i in range(2, 40):
        (tmp_path / "s" / f"{i:03d}.parquet").hardlink_to(tmp_path / "s" / f"{i % 2:03d}.parquet")
    code = """
import resource, sys, conche
def resident():
    return int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize() / 1e6
model = conche.ConcheRegressor(n_nodes=4)
for i, task in enumerate(conche.FileStream(sys.argv[1])):
    model.partial_fit(task.X, task.y)
    if i == 9:
        tenth = resident()
print(resident() - tenth)
"""
    if not Path("/proc/self/statm").exists():
        pytest.skip("no /proc to read the resident memory from")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "s")], capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert float(done.stdout) < 50


def test_an_error_is_exactly_one_line_and_success_is_silent_on_stderr(streams):
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


def test_the_error_matrix_is_what_predict_gave_at_the_time(tmp_path):
    rng = np.random.default_rng(2)
    for part in ("train", "test"):
        (tmp_path / part).mkdir()
        for i in range(4):
            X = rng.standard_normal((50, 3)) * (1 + i) + 3 * i
            y = X @ [1.0, 2.0, 3.0]
            columns = {f"c{j}": pa.array(X[:, j]) for j in range(3)} | {"y": pa.array(y)}
            gaps = pa.array(rng.random(50) < 0.2)
            columns["c1"] = pa.compute.if_else(gaps, None, columns["c1"])
            pa.parquet.write_table(pa.table(columns), tmp_path / part / f"[bold]{i}.parquet")
    done = run("train", tmp_path / "train", "--target", "y", "--missing", "mean", "--nodes", 2,
               "--out", tmp_path / "m")  # fmt: skip
    assert done.returncode == 0, done.stderr
    model = conche.ConcheRegressor(n_nodes=2, missing="mean", scaling="first", fit_intercept=True)
    test = list(conche.FileStream(tmp_path / "test", missing="keep"))
    rows = []
    for task in conche.FileStream(tmp_path / "train", missing="keep"):
        model.partial_fit(task.X, task.y)
        rows.append([np.mean((model.predict(t.X) - t.y) ** 2) for t in test])
    found = json.loads(run("evaluate", tmp_path / "m", tmp_path / "test", "--target", "y",
                           "--json").stdout)  # fmt: skip
    assert np.array(found["matrix"]) == pytest.approx(np.array(rows))
    shown = run("evaluate", tmp_path / "m", tmp_path / "test", "--target", "y")
    assert shown.returncode == 0 and "[bold]1" in shown.stdout  # names are not markup


def test_what_a_checkpoint_was_begun_with_is_compared(tmp_path):
    rng = np.random.default_rng(3)
    (tmp_path / "s").mkdir()
    for i in range(2):
        X = rng.standard_normal((30, 2))
        columns = {"a": X[:, 0], "b": X[:, 1], "y": X[:, 0], "z": X[:, 1],
                   "k": np.arange(30) % 3}  # fmt: skip
        pa.parquet.write_table(pa.table(columns), tmp_path / "s" / f"{i}.parquet")
    base = ["train", tmp_path / "s", "--features", "a,b", "--out", tmp_path / "m", "--resume"]
    assert run(*base, "--target", "y", "--checkpoint", tmp_path / "c1").returncode == 0
    other = run(*base, "--target", "z", "--checkpoint", tmp_path / "c1")
    assert other.returncode == 2 and "begun with the target 'y', not 'z'" in other.stderr
    labels = [*base, "--target", "k", "--classify", "--checkpoint", tmp_path / "c2", "--classes"]
    assert run(*labels, "0,1,2").returncode == 0
    other = run(*labels, "0,1,2,3")
    assert other.returncode == 2 and "begun with the classes [0, 1, 2]" in other.stderr
    assert "whole numbers" in run(*labels, "0,1.5").stderr
    assert "--loss is for labels" in run(*base, "--target", "y", "--loss", "logistic").stderr
    model = conche.ConcheRegressor(fit_intercept=True, scaling="first").fit(X, X[:, 0])
    (tmp_path / "c3").mkdir()
    conche.save(model, tmp_path / "c3" / "model.conche")
    other = run(*base, "--target", "y", "--checkpoint", tmp_path / "c3")
    assert other.returncode == 2 and "cannot be resumed" in other.stderr
    (tmp_path / "file").write_text("")
    other = run(*base, "--target", "y", "--checkpoint", tmp_path / "file")
    assert other.returncode == 2 and "is not a folder" in other.stderr


def test_a_model_without_names_does_not_guess(tmp_path):
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
