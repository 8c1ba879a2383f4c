"""The command line as people use it every day: quickly, in pipes, in scripts, on small screens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

import conche
from conche.common import threads
from conche.evaluation import Evaluation
from conche.measures import METRICS
from conche.memory import Sums, solve

from .helpers.commands import CONCHE
from .helpers.commands import run_here as run

pd = pytest.importorskip("pandas")


def written(folder: Path, names: list[str], n: int = 30) -> Path:
    folder.mkdir()
    for seed, name in enumerate(names):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, 3))
        table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=X @ [1.0, 2.0, 3.0] + 0.1)
        table.to_csv(folder / f"{name}.csv", index=False)
    return folder


def test_help_and_import_load_next_to_nothing() -> None:
    code = (
        "import sys, conche; from conche.cli import main; sys.argv = ['conche', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([m for m in ('scipy', 'sklearn', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr
    assert "train" in done.stdout and set(conche.__all__) < set(dir(conche))


def test_a_run_is_recorded_and_can_be_run_again(tmp_path: Path) -> None:
    written(tmp_path / "s", ["0", "1"])
    options = ["--target", "y", "--nodes", "3", "--rank", "2", "--no-intercept", "--out", "m"]
    assert run("train", "s", *options, cwd=tmp_path).returncode == 0
    record = tomllib.loads((tmp_path / "m.toml").read_text())
    assert record["nodes"] == 3 and record["rank"] == 2 and record["intercept"] is False
    assert len(record["learnt"]["seconds"]) == 2 and min(record["learnt"]["seconds"]) > 0
    first = (tmp_path / "m").read_bytes()
    again = run("train", "--config", "m.toml", "--out", "m2", cwd=tmp_path)
    assert again.returncode == 0 and (tmp_path / "m2").read_bytes() == first
    other = run("train", "--config=m.toml", "--nodes", "1", "--out", "m3", cwd=tmp_path)
    assert other.returncode == 0 and "1 node of 3" in other.stdout
    told = json.loads(run("info", "m", "--json", cwd=tmp_path).stdout)
    assert [task["seconds"] for task in told["history"]] == record["learnt"]["seconds"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "c.toml: cannot be read (No such file"),
        ("nodes = [", "c.toml: is not TOML"),
        ('stream = "s"\nnodse = 3', "c.toml: 'nodse' is no option; there are alpha,"),
        ('stream = "s"\nnodes = [3, 4]', "c.toml: nodes must be one value"),
        ('stream = "s"\ntarget = "y"\nout = "m"\nnodes = "many"', "Invalid value for '--nodes'"),
        ('target = "y"\nout = "m"', "Missing argument"),
    ],
)
def test_a_bad_config_is_named(text: str | None, said: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "c.toml").write_text(text)
    done = run("train", "--config", "c.toml", cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_json_and_quiet(tmp_path: Path) -> None:
    written(tmp_path / "s", ["0", "1"])
    options = ["--target", "y", "--nodes", "3", "--out", "m"]
    done = run("train", "s", *options, "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["tasks"] == 2 and told["history"][1]["name"] == "1"
    done = run("train", "s", *options, "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nobody_reads_on(tmp_path: Path) -> None:
    """What is being learnt is kept, and nothing is said of it."""
    written(tmp_path / "s", [str(i) for i in range(300)])
    train = f"{' '.join(CONCHE)} train s --target y --nodes 1 --out m"
    script = f"{train} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == ["300 tasks, 0 to 299", "0"] and done.stderr == ""
    assert conche.load(tmp_path / "m").n_tasks_seen_ == 300


def test_the_shell_completes(tmp_path: Path) -> None:
    asked = {"_CONCHE_COMPLETE": "complete_bash", "COMP_WORDS": "conche ev", "COMP_CWORD": "1"}
    done = subprocess.run(
        CONCHE, cwd=tmp_path, capture_output=True, text=True, env=os.environ | asked, timeout=60
    )
    assert done.stdout.split() == ["evaluate"]


def test_tables_fit_a_screen_and_never_cut_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"station-west-{i:02d}" for i in range(9)] + [
        "a-very-long-name-of-a-station-in-the-east"
    ]
    written(tmp_path / "s", names)
    done = run("train", "s", "--target", "y", "--nodes", "1", "--out", "m", cwd=tmp_path)
    rows = done.stdout.splitlines()[1:-1]
    assert max(map(len, rows)) <= 80 and sum("station-west-" in row for row in rows) == 9
    for command in (["evaluate", "m", "s", "--target", "y"], ["info", "m"]):
        table = run(*command, cwd=tmp_path).stdout.splitlines()
        assert max(map(len, table)) <= 80
        assert sum(row.strip().startswith("station-west-0") for row in table) == 9
        wide = run(*command, "--wide", cwd=tmp_path).stdout
        assert all(name in wide for name in names)
    assert "a-very-long…n-the-east" in run("info", "m", cwd=tmp_path).stdout


def test_correlated_columns_are_measured(tmp_path: Path) -> None:
    """As sensors that all see the same weather: no theory, and Algorithm 1 may diverge there."""
    rng = np.random.default_rng(0)
    (tmp_path / "s").mkdir()
    for t in range(4):
        X = rng.standard_normal((60, 1)) + 0.2 * rng.standard_normal((60, 24))
        table = pd.DataFrame(X, columns=[f"x{j}" for j in range(24)]).assign(y=X.sum(axis=1))
        table.to_csv(tmp_path / "s" / f"{t}.csv", index=False)
    done = run("plan", "--data", "s", cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    shown = " ".join(done.stdout.split())
    assert "no theory covers that" in shown and "all tasks were learnt" in shown
    done = run("plan", "--data", "s", "--missing", "median", cwd=tmp_path)
    assert done.returncode == 2 and "--missing median" in done.stderr
    sizes = "--features 64 --samples 32 --tasks 4 --shared 32 --noise 0.1"
    done = run("plan", *sizes.split(), cwd=tmp_path)
    assert "Algorithm 1's predicted error is" in " ".join(done.stdout.split())
    told = json.loads(run("plan", *sizes.split(), "--json", cwd=tmp_path).stdout)
    assert told["method"].startswith("Algorithm 1")


def test_the_demo_shows_what_it_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conche reaches the line of offline least squares; Algorithm 1 does not."""
    from conche.cli import demo

    monkeypatch.setattr(demo, "SEEDS", 1)
    monkeypatch.setattr(demo, "NODES", (1, 16))
    for experiment, slack in zip(demo.EXPERIMENTS, (1.02, 1.0), strict=True):
        result = demo.run(experiment, lambda: None)
        reached, line = result.R["Conche", 16][-1].mean(), result.offline.mean()
        assert reached <= slack * line < result.R["Algorithm 1", 16][-1].mean()


@pytest.mark.parametrize("metric", ["error", "mse", "accuracy", "r2"])
@pytest.mark.parametrize("rows", [1, 5])
def test_pictures_of_error_matrices(metric: str, rows: int, tmp_path: Path) -> None:
    from conche.cli.reports import matrix

    values = np.random.default_rng(0).uniform(0.01, 1, (rows, 5))
    names = [f"task {i}" for i in range(5)]
    found = Evaluation(
        names, names if rows == 5 else [""], values, METRICS[metric], [0.1] * 5, [0.2] * 5
    )
    matrix.draw_evaluation(found, tmp_path / "e.svg")
    text = (tmp_path / "e.svg").read_text()
    assert text.count("<!-- task 3 -->") >= (2 if rows == 5 else 1)  # names on the axes
    assert ("<!-- forgetting" in text) == (rows == 5)
    assert f"<!-- {100 * values[0, 0]:.1f} -->" in text or metric not in ("error", "accuracy")


def blas() -> set[int]:
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_small_tasks_are_learnt_with_one_blas_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is added to the sums, and when weights are read."""
    seen: dict[str, set[int]] = {}

    def spied(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def spy(*args: Any, **options: Any) -> Any:
            seen[name] = blas()
            return real(*args, **options)

        return spy

    X = np.random.default_rng(0).standard_normal((300, 20))
    before = blas()
    monkeypatch.setattr(Sums, "plus", spied("sums", Sums.plus))
    monkeypatch.setattr("conche.memory.past.solve", spied("weights", solve))
    assert conche.ConcheRegressor(n_nodes=2).fit(X, X[:, 0]).coef_.any()
    assert seen == {"sums": {1}, "weights": {1}} and blas() == before


def test_who_asks_for_the_fewest_threads_is_obeyed() -> None:
    before = blas()
    with threads.blas_threads(2), threads.blas_threads(1):
        assert blas() == {1}
    with threads.blas_threads(1):
        with threads.blas_threads(64):
            assert blas() == {1}
        assert blas() == {1}
    assert blas() == before


def test_factors_may_have_fewer_threads_than_products() -> None:
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    scipys = [Path(library.filepath).parent.name.startswith("scipy") for library in libraries]
    before = [library.num_threads for library in libraries]
    with threads.blas_threads(2, 1):
        now = [library.num_threads for library in libraries]
    assert now == [min(had, 1 if own else 2) for had, own in zip(before, scipys, strict=True)]
    assert [library.num_threads for library in libraries] == before
    tall = np.empty((threads.WORTH_ALL_FACTORS, threads.WORTH_ALL_FACTORS), dtype=np.int8)
    assert threads.deserved_by_factors(tall, 3) == 3
    assert threads.deserved_by_factors(tall[:, :-1], 3) == 1


def test_threads_follow_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in threads.SETTINGS:
        monkeypatch.delenv(name, raising=False)
    cores = threads.available()
    large = np.empty((1, threads.WORTH_ALL_CORES), dtype=np.int8)
    assert threads.deserved(large) == cores and threads.deserved(large[:, :-1]) == 1
    assert threads.deserved(large, 3) == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads.available() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert threads.available() == cores
