"""Metrics of evaluate, against scikit-learn's, and from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

import conche
from conche.common.arrays import Array
from conche.measures import METRICS, Guess, metric_named

from .helpers.commands import run_here as run


def labelled(n_classes: int, seed: int = 0) -> Guess:
    rng = np.random.default_rng(seed)
    classes = np.array(["ant", "bee", "cat", "dog"])[:n_classes]
    y = rng.choice(classes[: max(n_classes - 1, 2)], 300)  # not every class is in the task
    scores = rng.standard_normal((300, 1 if n_classes == 2 else n_classes))
    scores += 0.8 * (y[:, None] == (classes[1:] if n_classes == 2 else classes))
    return Guess(np.round(scores, 1), y, classes)  # with ties


@pytest.mark.parametrize("n_classes", [2, 4])
def test_metrics_of_labels_are_scikit_learns(n_classes: int) -> None:
    guess = labelled(n_classes)
    y, labels = guess.y, guess.labels
    found = {name: m.of(guess) for name, m in METRICS.items() if m.of_labels}
    assert found["error"] == pytest.approx(1 - metrics.accuracy_score(y, labels))
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(y, labels))
    expected = metrics.recall_score(y, labels, average="macro", labels=np.unique(y))
    assert found["balanced-accuracy"] == pytest.approx(expected)
    assert found["macro-f1"] == pytest.approx(metrics.f1_score(y, labels, average="macro"))
    each: list[float] = []
    assert guess.classes is not None
    for place, label in enumerate(guess.classes):
        scores = guess.scores[:, 0 if n_classes == 2 else place]
        if label in y:
            sign = -1 if n_classes == 2 and place == 0 else 1
            each.append(metrics.roc_auc_score(y == label, sign * scores))
    assert found["auc"] == pytest.approx(np.mean(each))
    p = 1 / (1 + np.exp(-guess.scores))
    p = np.hstack([1 - p, p]) if n_classes == 2 else p / p.sum(axis=1, keepdims=True)
    expected = metrics.log_loss(y, p, labels=guess.classes)
    assert found["log-loss"] == pytest.approx(expected)


def test_metrics_of_numbers_are_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    y, scores = rng.standard_normal(50), rng.standard_normal((50, 1))
    guess = Guess(scores, y, None)
    assert METRICS["mse"].of(guess) == pytest.approx(metrics.mean_squared_error(y, scores))
    assert METRICS["mae"].of(guess) == pytest.approx(metrics.mean_absolute_error(y, scores))
    assert METRICS["r2"].of(guess) == pytest.approx(metrics.r2_score(y, scores))
    assert np.isnan(METRICS["r2"].of(Guess(scores, np.ones(50), None)))
    one = labelled(4)
    alone = Guess(one.scores, np.full(300, "ant"), one.classes)
    assert np.isnan(METRICS["auc"].of(alone))


def test_metrics_that_do_not_fit_are_named() -> None:
    with pytest.raises(conche.ParameterError, match="metric='mse': of labels there are error, acc"):
        metric_named("mse", True, True)
    with pytest.raises(conche.ParameterError, match="of numbers there are mse, mae, r2"):
        metric_named("f1", False, False)
    with pytest.raises(conche.ParameterError, match="needs probabilities, which loss='logistic'"):
        metric_named("log-loss", True, False)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metrics")
    rng = np.random.default_rng(0)
    centres = 2 * rng.standard_normal((4, 5))
    for part, seed in (("train", 1), ("test", 2)):
        (folder / part).mkdir()
        own = np.random.default_rng(seed)
        for t, group in enumerate(([0, 1], [2], [3, 0])):
            y = own.choice(group, 60)
            X = centres[y] + own.standard_normal((60, 5))
            write(folder / part / f"{t}.csv", X, np.array(list("abcd"))[y])
    options = ["--target", "y", "--nodes", "2", "--loss", "logistic", "--out", "m"]
    assert run("train", "train", *options, cwd=folder).returncode == 0
    return folder


def write(path: Path, X: Array, y: Array) -> None:
    rows = [",".join([*map(str, x), label]) for x, label in zip(X, y, strict=True)]
    path.write_text("\n".join(["p,q,r,s,t,y", *rows]) + "\n")


def test_evaluate_says_what_it_is_asked_for(files: Path) -> None:
    found = {}
    for metric in ("accuracy", "error", "macro-f1", "log-loss", "auc"):
        asked = ["m", "test", "--target", "y", "--metric", metric, "--json"]
        found[metric] = json.loads(run("evaluate", *asked, cwd=files).stdout)
    assert found["accuracy"]["scores"] == pytest.approx(1 - np.array(found["error"]["errors"]))
    assert found["accuracy"]["forgetting"] == pytest.approx(found["error"]["forgetting"])
    assert found["auc"]["scores"][1] is None and found["auc"]["forgetting"] is None
    assert found["auc"]["average"] > 0.8 and found["log-loss"]["average"] < 0.7
    shown = run("evaluate", "m", "test", "--target", "y", "--metric", "auc", cwd=files).stdout
    assert "area under the ROC curve on each test" in shown and " - " in shown


def test_evaluate_refuses_other_metrics_in_one_line(files: Path) -> None:
    for more, message in (
        (["--metric", "r2"], "--metric r2: of labels there are"),
        (["--metric", "log-loss", "--offline", "train"], "cannot be had of least squares"),
    ):
        done = run("evaluate", "m", "test", "--target", "y", *more, cwd=files)
        assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1
