"""Figures: specs refused by name, tables that do not depend on how they were made, checks."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import conche
from conche.errors import SpecError
from conche.paper import theory
from conche.paper.figures import (
    Figure,
    Finding,
    Machine,
    built_in,
    check,
    make,
    passed,
    read_spec,
)
from conche.paper.figures.findings import all_below, below, near
from conche.paper.figures.statements import PRINTED, STATEMENTS
from conche.paper.figures.sweep import sweep
from conche.paper.figures.work import Row

from .helpers.commands import CONCHE, run_here

SPEC = """
title = "small"
x = "n_nodes"
curves = ["n_shared", "n_tasks"]
trials = 12
offline = true
[settings]
n_features = 24
n_samples = 40
n_tasks = [2, 4]
n_shared = [0, 12]
n_nodes = [1, 2, 3, 4]
[[panels]]
noise_var = 0.01
[[panels]]
noise_var = 0.5
n_samples = 6
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SPEC)
    return path


def table(folder: Path) -> list[dict[str, str]]:
    with open(folder / "table.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_the_papers_figures_are_all_there() -> None:
    assert built_in() == [f"fig{i}" for i in range(2, 13)]
    for name in built_in():
        assert read_spec(name, "paper").trials == 100
        assert read_spec(name, "quick").source


def test_results_and_their_agreement_with_simulate(small: Path, tmp_path: Path) -> None:
    """One draw for all nodes, similarities and horizons gives what one setting at a time gives."""
    figure, there = make(read_spec(str(small)), tmp_path, seed=3)
    assert not there
    folder = tmp_path / "small"
    written = {"table.csv", "figure.png", "figure.svg", "manifest.json"}
    assert {f.name for f in folder.iterdir()} == written
    rows = table(folder)
    assert list(rows[0]) == ["panel", "x", "curve", "simulated", "stderr", "theory"]
    assert len(rows) == 2 * (4 * 2 * 2 + 4 * 2 * 2)
    for K in (1, 2, 3, 4):
        sizes = [24 // K] * K
        alone = conche.simulate(4, 40, sizes, n_shared=12, trials=12, seed=3)
        wanted = ("a", str(K), "p_S=12, T=4")
        (row,) = (r for r in rows if (r["panel"], r["x"], r["curve"]) == wanted)
        assert float(row["simulated"]) == pytest.approx(alone.mean[-1], rel=1e-10)
        assert float(row["stderr"]) == pytest.approx(alone.stderr[-1], rel=1e-10)
        expected = theory.generalization_error(theory.Similarity.shared(4, sizes, 12), 40, 0.01)
        assert float(row["theory"]) == pytest.approx(expected[-1])
    offline = figure.curve("a", "offline, p_S=12, T=4")[1]
    assert np.all(offline == offline[0])  # it has no nodes


def test_the_same_bytes_for_any_number_of_jobs(small: Path, tmp_path: Path) -> None:
    for jobs in (1, 2):
        make(read_spec(str(small)), tmp_path / str(jobs), machine=Machine(jobs))
    for name in ("table.csv", "figure.png", "figure.svg", "manifest.json"):
        one, two = ((tmp_path / str(jobs) / "small" / name).read_bytes() for jobs in (1, 2))
        assert one == two, name


def test_a_finished_figure_is_not_made_again_and_another_seed_is(
    small: Path, tmp_path: Path
) -> None:
    spec = read_spec(str(small))
    first, _ = make(spec, tmp_path)
    again, there = make(spec, tmp_path)
    assert there and np.array_equal(first.simulated, again.simulated)
    other, there = make(spec, tmp_path, seed=1)
    assert not there and not np.array_equal(first.simulated, other.simulated)
    (tmp_path / "small" / "table.csv").write_text("panel\n")  # spoilt: made again
    assert not make(spec, tmp_path, seed=1)[1]


def test_killed_and_run_again_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    spec = tmp_path / "slow.toml"
    larger = SPEC.replace("n_features = 24", "n_features = 160").replace("= 40", "= 260")
    spec.write_text(larger.replace("trials = 12", "trials = 80"))
    command = [*CONCHE, "reproduce", str(spec), "--jobs", "2", "--out"]
    started = subprocess.Popen(
        [*command, str(tmp_path / "killed")], start_new_session=True, stdout=subprocess.DEVNULL
    )
    folder = tmp_path / "killed" / "slow"
    while len(list(folder.glob(".parts-*/*.npy"))) < 3:
        assert started.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    kept = {f: f.stat().st_mtime_ns for f in folder.glob(".parts-*/*.npy")}
    assert kept and not (folder / "table.csv").exists()
    whole = tmp_path / "whole"
    for out in (tmp_path / "killed", whole):
        subprocess.run([*command, str(out)], check=True, stdout=subprocess.DEVNULL)
    for name in ("table.csv", "figure.png", "figure.svg", "manifest.json"):
        assert (folder / name).read_bytes() == (whole / "slow" / name).read_bytes(), name
    assert not list(folder.glob(".*"))


def test_a_spoilt_part_is_computed_again(small: Path, tmp_path: Path) -> None:
    spec = read_spec(str(small))
    whole, _ = make(spec, tmp_path / "whole")
    left: list[float] = []

    def stop_at_the_end(done: float) -> None:
        left[0] -= done
        if left[0] < 1e-9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(spec, tmp_path / "stopped", begin=left.append, tick=stop_at_the_end)
    part = next((tmp_path / "stopped" / "small").glob(".parts-*/*.npy"))
    part.write_bytes(part.read_bytes()[:50])
    resumed, _ = make(spec, tmp_path / "stopped")
    assert np.array_equal(whole.simulated, resumed.simulated)


def test_every_quick_figure_passes_its_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a newcomer runs; about half a minute on two cores."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nobody's MNIST
    done = run_here("reproduce", "all", "--check", "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "11 checked: all passed" in done.stdout
    assert "embedded 8 x 8 digits" in done.stdout


def test_checks_can_fail(small: Path, tmp_path: Path) -> None:
    figure, _ = make(read_spec(str(small)), tmp_path)
    assert passed(check(figure, "quick"))
    moved = figure.simulated.copy()
    with_theory = [i for i, row in enumerate(figure.rows) if row.theory and not row.heavy]
    moved[with_theory[:2]] += 10 * figure.stderr[with_theory[:2]]
    findings = check(Figure(figure.spec, figure.rows, moved, figure.stderr), "quick")
    assert not passed(findings)
    assert "2 of" in next(f.detail for f in findings if f.holds is False)


def test_a_failed_check_is_exit_status_1(tmp_path: Path) -> None:
    """A table whose numbers are wrong, and whose manifest vouches for them."""
    command = ("reproduce", "fig5", "--check", "--out", tmp_path)
    assert run_here(*command).returncode == 0
    folder = tmp_path / "fig5"
    rows = table(folder)
    for row in rows:
        row["simulated"] = str(2 * float(row["simulated"]))
    with open(folder / "table.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    manifest = json.loads((folder / "manifest.json").read_text())
    digest = hashlib.sha256((folder / "table.csv").read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest | {"table_sha256": digest}))
    done = run_here(*command)
    assert done.returncode == 1
    assert "fig5: FAIL" in done.stdout and "FAILED: fig5" in done.stdout


def test_printed_numbers_are_compared_at_the_papers_scale_only() -> None:
    assert set(STATEMENTS) == set(built_in())
    spec = read_spec("fig4", "paper")
    rows = sweep(spec, 0).rows
    offline = [row.curve.startswith("offline") for row in rows]
    wrong = np.where(offline, 0.5, [row.theory or 0.5 for row in rows])
    findings = list(PRINTED["fig4"](Figure(spec, rows, wrong, np.zeros(len(rows)))))
    assert [f.holds for f in findings if "offline, T" in f.statement] == [False] * 10


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('x = "n_nodes"', 'x = "nodes"', "x = 'nodes' must be one of"),
        ('x = "n_nodes"', 'x = "n_tasks"', "different settings"),
        ("n_nodes = [1, 2, 3, 4]", "n_nodes = 4", "n_nodes is an axis"),
        ("n_nodes = [1, 2, 3, 4]", "n_nodes = [1, 1]", "n_nodes lists a value twice"),
        ("n_nodes = [1, 2, 3, 4]", "n_nodes = [1, 25]", "n_nodes = 25 must not exceed"),
        ("n_nodes = [1, 2, 3, 4]", "n_nodes = [1, 2.5]", "n_nodes = 2.5 must be a whole"),
        ("n_features = 24", "n_features = [24, 48]", "neither x nor one of the curves"),
        ("n_features = 24", "", "n_features is missing"),
        ("n_features = 24", "n_columns = 24", "unknown entry n_columns"),
        ("n_shared = [0, 12]", "n_shared = [0, 30]", "n_shared = 30 must not exceed"),
        ("trials = 12", "trials = 1", "trials = 1 must be"),
        ('x = "n_nodes"', 'x = ["n_nodes"]', "x = ['n_nodes'] must be text"),
        ('title = "small"', "title = 3", "title = 3 must be text"),
        ('title = "small"', "kind = []", "kind = [] must be text"),
        ('"n_tasks"]', '["n_tasks"]]', "curves = "),
        ("n_features = 24", "n_features = 1" + "0" * 400, "must be a whole number of 1 to 1e15"),
        ("[settings]", "[plot]\ny_max = 'abc'\n[settings]", "plot.y_max = 'abc' must be a number"),
        ("[settings]", "[plot]\ny_max = nan\n[settings]", "plot.y_max = nan must be a number"),
        ("noise_var = 0.5", "title = 5", "title = 5 must be text"),
        ("noise_var = 0.5", "noise_var = -1", "noise_var = -1 must be a number of 0 to 1e15"),
        ("noise_var = 0.5", "correlation = 1.0", "correlation = 1.0 must lie below 1"),
        ("noise_var = 0.5", "error = 'training'", "error = 'training'"),
        ("offline = true", "offline = 3", "offline must be"),
        ("offline = true", "kind = 'magic'", "kind = 'magic'"),
        ("offline = true", "kind = 'learning'", "x of a learning curve"),
        ("offline = true", "colour = 'red'", "unknown entry colour"),
        ("offline = true", "offline = ", "small.toml"),
        ("[settings]", "[plot]\nx_scale = 'cubic'\n[settings]", "plot.x_scale"),
    ],
)
def test_wrong_specs_are_refused_by_name(small: Path, old: str, new: str, message: str) -> None:
    assert old in SPEC
    small.write_text(SPEC.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        read_spec(str(small))
    assert str(small) in str(caught.value) and message in str(caught.value)


def test_every_kind_of_check_can_fail() -> None:
    one, two = np.array([1.0]), np.array([2.0])
    wrong = [near(two[0], 0.02, 0.012, ""), below(two[0], one[0], ""), all_below(two, one, "")]
    for finding in (*wrong, Finding("", cast(bool, np.False_), "")):
        assert not passed([finding])
    spec = read_spec("fig11")
    rows = [Row("a", float(x), f"task {i}") for i in range(5) for x in (1, 2)]
    chance = Figure(spec, rows, np.full(10, 0.5), np.zeros(10))
    assert not passed(list(STATEMENTS["fig11"](chance)))


def test_nothing_is_lost_between_panels_that_are_alike(tmp_path: Path) -> None:
    path = tmp_path / "twins.toml"
    path.write_text(
        'kind = "learning"\ntrials = 3\ncurves = ["n_shared"]\n[settings]\nn_features = 8\n'
        "n_samples = 20\nn_tasks = 2\nn_nodes = 2\nn_shared = [0, 8]\n"
        '[[panels]]\ntitle = "costs $5"\n[[panels]]\n[[panels]]\nerror = "training"\n'
    )
    figure, _ = make(read_spec(str(path)), tmp_path)
    thirds = np.split(figure.simulated, 3)
    assert np.array_equal(thirds[0], thirds[1]) and np.all(np.isfinite(thirds[2]))


def test_a_spec_of_ones_own_is_not_judged_by_the_papers_words(small: Path, tmp_path: Path) -> None:
    own = small.with_name("fig4.toml")
    own.write_text('source = "mine"\n' + SPEC)
    figure, _ = make(read_spec(str(own)), tmp_path)
    assert passed(check(figure, "paper")) and len(check(figure, "paper")) == 2


def test_without_noise_simulation_and_theory_are_both_zero(tmp_path: Path) -> None:
    path = tmp_path / "silent.toml"
    path.write_text(
        'x = "n_tasks"\ntrials = 5\n[settings]\nn_features = 12\nn_samples = 30\nn_shared = 12\n'
        "n_nodes = 1\nnoise_var = 0.0\nn_tasks = [1, 2]\n"
    )
    figure, _ = make(read_spec(str(path)), tmp_path)
    assert np.all(figure.simulated < 1e-20) and passed(check(figure, "quick"))


@pytest.mark.parametrize("name", ["...toml", "..toml", ".hidden.toml", "a$b.toml"])
def test_a_spec_must_have_a_name_for_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(SPEC)
    with pytest.raises(SpecError, match="must do as a folder's"):
        read_spec(str(tmp_path / name))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which figure?"),
        (["fig13"], "no figure 'fig13'"),
        (["fig2", "--scale", "huge"], "'huge' must be quick or paper"),
        (["fig2", "--jobs", "0"], "--jobs 0"),
        (["fig2", "--seed", "-1"], "--seed -1"),
        (["missing.toml"], "missing.toml: cannot be read"),
        (["fig11", "--data", "nowhere"], "nowhere: no train-images"),
    ],
)
def test_wrong_commands_are_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = run_here("reproduce", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1 and message in done.stderr
    assert not list(tmp_path.iterdir())
