"""conche train, predict, evaluate: as a user runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.linear_model import Ridge

import conche
from conche.common.arrays import Array
from conche.estimators.base import LinearModel
from conche.model_file import load_run
from conche.tasks.arrow import Parquet

from .helpers.commands import CONCHE
from .helpers.commands import run_here as run
from .helpers.files import assert_the_same_but_for_errors, write, write_halves
from .helpers.streams import need


@pytest.fixture
def streams(tmp_path: Path) -> Path:
    write_halves(tmp_path)
    return tmp_path


def test_files_in_a_model_out(streams: Path) -> None:
    done = run("train", streams / "train", "--target", "y", "--nodes", 3, "--out", streams / "m")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "8 tasks, 000 to 007" in lines[0] and len(lines) == 13
    assert "before" in lines[2] and "after" in lines[2]
    assert max(map(len, lines[:-1])) <= 80
    assert "8 tasks, 3 nodes of" in lines[-1]
    rows: list[Array] = []
    test = list(conche.FileStream(streams / "test"))

    def judged(name: str, record: Any) -> None:  # with the ridge in force, as its errors
        now = same.state_.snapshot()
        predicted = (np.asarray(t.X) @ now["coef"][0, 0] + now["intercept"][0, 0] for t in test)
        rows.append(
            np.array([np.mean((v - t.y) ** 2) for v, t in zip(predicted, test, strict=True)])
        )

    same = conche.ConcheRegressor(n_nodes=3)
    conche.train(same, conche.FileStream(streams / "train"), progress=judged)
    assert rows[-1] == pytest.approx([np.mean((same.predict(t.X) - t.y) ** 2) for t in test])
    alpha = float(np.mean(same.ridge_ / np.var(offline_rows(streams)[0], axis=0)))
    assert lines[-2].startswith(f"ridge: as Ridge(alpha={alpha:.3g}) on standardised columns")
    model = conche.load(streams / "m")
    assert np.array_equal(model.coef_, same.coef_)
    _, learnt = load_run(streams / "m")
    assert learnt is not None and learnt.tasks == tuple(f"{i:03d}" for i in range(8))

    beside = "--json --offline train --plot matrix.png"
    done = run("evaluate", "m", "test", "--target", "y", *beside.split(), cwd=streams)
    found = json.loads(done.stdout)
    assert np.array(found["matrix"]) == pytest.approx(np.array(rows))
    assert found["average"] == pytest.approx(np.mean(rows[-1]))
    assert found["forgetting"] == pytest.approx(np.mean((np.array(rows[-1]) - np.diag(rows))[:-1]))
    X, y = offline_rows(streams)
    best = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y)[0]
    least = [np.mean((np.asarray(t.X) @ best[:-1] + best[-1] - t.y) ** 2) for t in test]
    assert found["least_squares_errors"] == pytest.approx(least)
    assert found["least_squares"] == pytest.approx(np.mean(least))
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


def offline_rows(streams: Path) -> tuple[Array, Array]:
    """All rows that are learnt."""
    tasks = list(conche.FileStream(streams / "train"))
    return np.vstack([np.asarray(t.X) for t in tasks]), np.concatenate([t.y for t in tasks])


def test_killed_at_any_moment_and_resumed_the_model_is_the_same_to_the_last_bit(
    tmp_path: Path,
) -> None:
    write(tmp_path / "s", conche.gaussian_tasks(30, 400, 60, n_shared=30, noise_var=0.1))
    options: list[object] = ["train", tmp_path / "s", "--target", "y", "--nodes", 4]
    options += ["--scaling", "running"]
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


def test_new_months_are_learnt_later(streams: Path) -> None:
    """A checkpoint also serves a stream that has grown."""
    more = streams / "train" / "007.parquet"
    later = more.read_bytes()
    more.unlink()
    options = "--target y --checkpoint state --resume --out m"
    assert run("train", "train", *options.split(), cwd=streams).returncode == 0
    more.write_bytes(later)
    done = run("train", "train", *options.split(), cwd=streams)
    assert "going on after 006: 7 of 8 were learnt" in done.stdout
    fresh = streams / "fresh"
    run("train", streams / "train", "--target", "y", "--out", fresh)
    assert_the_same_but_for_errors(streams / "m", fresh)


def test_labels_of_text(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        (tmp_path / part).mkdir()
        for i in range(3):
            X = rng.standard_normal((60, 4))
            kind = np.array(["ham", "spam", "wurst"])[np.argmax(X[:, :3], axis=1)]
            columns = {f"c{j}": X[:, j] for j in range(4)} | {"kind": kind}
            pa.csv.write_csv(pa.table(columns), tmp_path / part / f"{i}.csv")
    options = "--target kind --nodes 2 --loss logistic --out m"
    done = run("train", "train", *options.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "error rate" in done.stdout
    found = json.loads(
        run("evaluate", tmp_path / "m", tmp_path / "test", "--target", "kind", "--json").stdout
    )
    assert found["metric"] == "error rate" and found["average"] < 0.15
    done = run("predict", tmp_path / "m", tmp_path / "test" / "0.csv")
    header, first = done.stdout.splitlines()[:2]
    assert header == "prediction,p(ham),p(spam),p(wurst)"
    assert first.split(",")[0] in ("ham", "spam", "wurst")
    assert sum(map(float, first.split(",")[1:])) == pytest.approx(1)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_evaluation_beside_ridge_and_least_squares(
    streams: Path, monkeypatch: pytest.MonkeyPatch, fit_intercept: bool
) -> None:
    """Both with the model's intercept; ridge where the model knows its own."""
    test, (X, y) = list(conche.FileStream(streams / "test")), offline_rows(streams)
    model = conche.ConcheRegressor(fit_intercept=fit_intercept).fit(X, y)
    conche.save(model, streams / "m")
    unit = np.linspace(1, 7, X.shape[1])

    def average(alpha: float) -> float:
        best = Ridge(alpha=alpha, fit_intercept=fit_intercept).fit(X / unit, y)
        left = [best.predict(np.asarray(t.X) / unit) - t.y for t in test]
        return float(np.mean([np.mean(e**2) for e in left]))

    asked = ("evaluate", "m", "test", "--target", "y", "--offline", "train")
    monkeypatch.setattr(LinearModel, "ridge_", property(lambda _: 2 * unit**2), raising=False)
    found = json.loads(run(*asked, "--json", cwd=streams).stdout)
    assert found["offline"] == pytest.approx(average(2.0))
    assert found["least_squares"] == pytest.approx(average(0.0))
    shown = run(*asked, cwd=streams).stdout
    assert f"own ridge: {average(2.0):.3f}" in shown and "  least squares  " in shown

    monkeypatch.setattr(LinearModel, "ridge_", property(lambda _: unknown()))
    found = json.loads(run(*asked, "--json", cwd=streams).stdout)
    assert found["offline"] is None and found["offline_errors"] is None
    assert found["least_squares"] == pytest.approx(average(0.0))
    assert "ridge" not in run(*asked, cwd=streams).stdout


def unknown() -> None:
    raise AttributeError("no ridge")


def test_beijing_from_parquet_on_disk(tmp_path: Path) -> None:
    example = Path(__file__).parents[1] / "examples" / "beijing.py"
    data = need("beijing-air", "beijing12.npz").parent
    subprocess.run([sys.executable, example, "--data", data, "--out", tmp_path], check=True)
    options = "--target pm25 --groups stations.json --missing mean --scaling none --out m"
    limits = {"memory": 0.418, "damped": 0.46}
    for solver, limit in limits.items():
        asked = f"{options} --solver {solver}"
        done = run("train", "train", *asked.split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        asked = "--target pm25 --offline train --json"
        found = json.loads(run("evaluate", "m", "test", *asked.split(), cwd=tmp_path).stdout)
        assert found["average"] <= limit
        assert found["average"] <= limit / 0.405 * found["least_squares"]
        assert len(found["errors"]) == 48


def test_a_long_stream_keeps_memory_flat(tmp_path: Path) -> None:
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
    command = [sys.executable, "-c", code, str(tmp_path / "s")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 50


def test_the_error_matrix_is_what_predict_gave_at_the_time(tmp_path: Path) -> None:
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
    options = "--target y --missing mean --nodes 2 --out m"
    done = run("train", "train", *options.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    model = conche.ConcheRegressor(n_nodes=2, missing="mean")
    test = list(conche.FileStream(tmp_path / "test", missing="keep"))
    rows = []
    for task in conche.FileStream(tmp_path / "train", missing="keep"):
        model.partial_fit(task.X, task.y)
        rows.append([np.mean((model.predict(t.X) - t.y) ** 2) for t in test])
    found = json.loads(
        run("evaluate", tmp_path / "m", tmp_path / "test", "--target", "y", "--json").stdout
    )
    assert np.array(found["matrix"]) == pytest.approx(np.array(rows))
    shown = run("evaluate", tmp_path / "m", tmp_path / "test", "--target", "y")
    assert shown.returncode == 0 and "[bold]1" in shown.stdout  # names are not markup


def test_every_file_is_opened_once(streams: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real = Parquet.__init__

    def init(self: Parquet, path: Path, *reading: Any) -> None:
        opened.append(path.stem)
        real(self, path, *reading)

    monkeypatch.setattr(Parquet, "__init__", init)
    assert run("train", "train", "--target", "y", "--out", "m", cwd=streams).returncode == 0
    names = [f"{i:03d}" for i in range(8)]
    assert opened == names


@pytest.mark.parametrize(
    ("options", "solver"),
    [
        ("--rank 5 --ridge 2 --discount 0.9", conche.Memory(5, 2.0, 0.9)),
        ("--solver damped --damping 2 --local-steps 3", conche.Damped(2.0, 3)),
        ("--solver exact --local-steps 4 --steps adaptive", conche.Exact(4)),
        ("--solver elastic-net --alpha 0.1 --l1-ratio 0.3", conche.ElasticNet(0.1, 0.3)),
    ],
)
def test_options_of_the_solver_make_the_solver(streams: Path, options: str, solver: Any) -> None:
    done = run("train", "train", "--target", "y", "--out", "m", *options.split(), cwd=streams)
    assert done.returncode == 0, done.stderr
    model = conche.load(streams / "m")
    assert repr(model.solver) == repr(solver)
    assert model.steps == ("adaptive" if "adaptive" in options else type(model)().steps)


def test_names_in_capitals_are_trained_on_and_predicted_for(tmp_path: Path) -> None:
    for name in ("A.CSV", "B.Csv"):
        (tmp_path / name).write_text("a,b,y\n1,2,3\n2,1,3\n3,5,8\n")
    done = run("train", ".", "--target", "y", "--out", "m", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("predict", "m", "A.CSV", "--out", "P.CSV", cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "P.CSV").read_text().startswith('"prediction"')
