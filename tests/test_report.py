"""Reports, and what they show of a model, without a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conche
from conche.explore.model import description
from conche.explore.report import report_of
from conche.explore.spectrum import spectrum_of

from .helpers.commands import run_here
from .helpers.explored import months


def learnt(tmp_path: Path, **options: Any) -> dict[str, Any]:
    tasks = conche.gaussian_tasks(5, 80, 30, n_shared=20, noise_var=0.1, seed=0)
    model = conche.ConcheRegressor(n_nodes=3, **options)
    for task in tasks:
        model.partial_fit(task.X, task.y)
    conche.save(model, tmp_path / "m.conche")
    return {
        "model": model,
        "shown": description(model, None, tmp_path / "m.conche"),
        "tasks": tasks,
    }


def embedded(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found.group(1))


def test_the_spectrum_is_that_of_all_samples(tmp_path: Path) -> None:
    """Sums of squares on standardised columns over all tasks, in units of the ridge."""
    found = learnt(tmp_path)
    X = np.concatenate([task.X for task in found["tasks"]])
    Z = (X - X.mean(axis=0)) / np.sqrt(found["model"].ridge_)  # a number for every column
    expected = np.linalg.eigvalsh(Z.T @ Z)[::-1]
    np.testing.assert_allclose(found["shown"]["spectrum"]["values"], expected, rtol=1e-8)
    assert found["shown"]["spectrum"]["share"] == 1 and found["shown"]["spectrum"]["rank"] is None


@pytest.mark.filterwarnings("ignore::conche.errors.OfflineGapWarning")
def test_what_a_limited_rank_keeps(tmp_path: Path) -> None:
    solver = conche.Memory(rank=12, ridge=0.5)
    found = learnt(tmp_path, solver=solver, fit_intercept=False, scaling=None)
    part, X = found["shown"]["spectrum"], np.concatenate([task.X for task in found["tasks"]])
    assert part["rank"] == part["n_values"] == 12
    assert 0.3 < part["share"] < 0.9
    whole = np.linalg.eigvalsh(X.T @ X)[::-1] / 0.5
    assert max(part["values"]) < max(whole) * 1.01
    # nothing is lost within the blocks: what is kept and what is cut have the trace of all
    kept = sum(part["values"]) + part["cut"]
    assert kept == pytest.approx(sum(whole), rel=0.2)


def test_an_intercept_is_no_direction(tmp_path: Path) -> None:
    centred = learnt(tmp_path)["shown"]["spectrum"]
    assert centred["n_values"] == 30 and max(centred["values"]) < 1e4


@pytest.mark.parametrize("intercept", [True, False])
def test_an_elastic_net_has_no_more_directions_than_columns(intercept: bool) -> None:
    tasks = conche.gaussian_tasks(5, 80, 30, n_shared=20, noise_var=0.1, seed=0)
    solver = conche.ElasticNet(alpha=1e-3)
    model = conche.ConcheRegressor(n_nodes=3, solver=solver, scaling=None, fit_intercept=intercept)
    for task in tasks:
        model.partial_fit(task.X, task.y)
    X = np.concatenate([task.X for task in tasks])
    X = X - X.mean(axis=0) if intercept else X
    found = spectrum_of(model)
    assert found is not None and found["n_values"] == 30
    np.testing.assert_allclose(found["values"], np.linalg.eigvalsh(X.T @ X)[::-1], rtol=1e-6)


@pytest.mark.filterwarnings("ignore::conche.errors.OfflineGapWarning")
def test_the_rank_is_the_one_that_was_given(tmp_path: Path) -> None:
    found = learnt(tmp_path, solver=conche.Memory(rank=12))["shown"]["spectrum"]
    assert found["rank"] == 12 and found["n_values"] == 11  # and the intercept's direction


def test_algorithm_1_remembers_nothing() -> None:
    task = conche.gaussian_tasks(1, 40, 6)[0]
    assert spectrum_of(conche.CoCoARegressor(n_nodes=2).fit(task.X, task.y)) is None


def test_a_report_holds_its_data_and_fetches_nothing(tmp_path: Path) -> None:
    shown = learnt(tmp_path)["shown"]
    text = report_of(shown)
    assert embedded(text) == shown
    assert not re.search(r'(src|href)="', text) and "@import" not in text and "url(" not in text
    assert not re.search(r"^(import|export) ", text, re.M)


def test_names_cannot_break_out_of_a_report(tmp_path: Path) -> None:
    shown = learnt(tmp_path)["shown"]
    evil = "</script><script>alert(1)</script><!--"
    shown |= {"file": evil, "options": {evil: evil}}
    shown["history"][0]["name"] = evil
    text = report_of(shown)
    assert embedded(text) == shown
    assert text.count("<script") == text.count("</script>") == 2
    assert "<!--" not in text.partition("<body>")[2]
    assert "<title>&lt;/script&gt;" in text


def test_reports_of_the_command_line(tmp_path: Path) -> None:
    stream, model = months(tmp_path / "months"), tmp_path / "m.conche"
    options = ("--target", "y", "--nodes", 2, "--out", model)
    done = run_here("train", stream, *options, "--report", tmp_path / "train.html")
    assert done.returncode == 0 and done.stdout.endswith(f"report: {tmp_path / 'train.html'}\n")
    tried = (model, stream, "--target", "y")
    asked = run_here("evaluate", *tried, "--json", "--report", tmp_path / "e.html")
    said = json.loads(asked.stdout)  # and nothing else
    found = embedded((tmp_path / "e.html").read_text())
    np.testing.assert_allclose(found["matrix"]["values"], said["matrix"])
    assert found["matrix"]["average"] == pytest.approx(said["average"])
    assert found["command"].startswith("conche evaluate ") and found["versions"]["numpy"]
    trained = embedded((tmp_path / "train.html").read_text())
    np.testing.assert_allclose(trained["matrix"]["values"], said["matrix"])  # of the same tasks
    assert trained["matrix"]["on"] == "training" and trained["history"][0]["seconds"] > 0


def test_a_report_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    stream, model = months(tmp_path / "months"), tmp_path / "m.conche"
    options = ("--target", "y", "--nodes", 2, "--out", model)
    for report, word in (("r.pdf", ".html"), ("none/r.html", "no such folder")):
        done = run_here("train", stream, *options, "--report", tmp_path / report)
        assert done.returncode == 2 and word in done.stderr and done.stderr.count("\n") == 1
        assert not model.exists()
