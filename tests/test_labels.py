"""Labels may appear in any task, and it is as if they had been listed from the start."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conche
from conche import Memory
from conche.common.arrays import Array
from conche.estimators.labels import Labels

from .helpers.commands import run_here as run
from .helpers.files import assert_the_same_but_for_errors

Tasks = list[tuple[Array, Array]]
P = 12
CENTRES = 1.5 * np.random.default_rng(0).standard_normal((6, P))
pytestmark = pytest.mark.filterwarnings("ignore")


def stream(groups: list[list[int]], seed: int = 1, n: int = 40) -> Tasks:
    """A task for every group of classes."""
    rng = np.random.default_rng(seed)
    labels = [rng.choice(group, n) for group in groups]
    return [(CENTRES[y] + rng.standard_normal((n, P)), y) for y in labels]


def taught(model: Any, tasks: Tasks, **listed: Any) -> Any:
    for X, y in tasks:
        model.partial_fit(X, y, **listed)
    return model


GROUPS = [
    [[0, 1], [2, 3], [4, 5]],
    [[3], [1], [0, 2], [4]],
    [[0], [1, 0], [1, 0], [2]],
    [[5, 4, 3, 2, 1, 0], [1, 2]],
    [[2], [2], [2, 3]],
]


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize(
    "options",
    [
        dict(solver="exact", n_rounds=3),
        dict(solver="damped"),
        dict(solver="memory", steps="cg", fit_intercept=True, scaling="first"),
        dict(solver=Memory(rank=5), steps="cg", n_rounds=20),
        dict(solver=Memory(rank=5), steps="cg", n_rounds=20, fit_intercept=True),
    ],
)
def test_listing_classes_changes_nothing(groups: list[list[int]], options: dict[str, Any]) -> None:
    tasks = stream(groups)
    every = sorted({label for group in groups for label in group})
    found = taught(conche.CoCoAClassifier(3, **options), tasks)
    listed = taught(conche.CoCoAClassifier(3, **options), tasks, classes=every)
    assert found.classes_.tolist() == listed.classes_.tolist() == every
    np.testing.assert_allclose(found.coef_, listed.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.intercept_, listed.intercept_, rtol=1e-9, atol=1e-12)
    X = tasks[0][0]
    assert np.array_equal(found.predict(X), listed.predict(X))


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("K", [1, 4])
def test_any_grouping_is_the_offline_solution(groups: list[list[int]], K: int) -> None:
    """One against the rest, by hand, on all samples at once."""
    tasks = stream(groups)
    options: dict[str, Any] = dict(solver=Memory(ridge=2.0), fit_intercept=False, scaling=None)
    model = taught(conche.ConcheClassifier(K, **options), tasks)
    X, y = (np.concatenate(parts) for parts in zip(*tasks, strict=True))
    shown = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    Y = np.where(y[:, None] == shown, 1.0, -1.0)
    best = np.linalg.solve(X.T @ X + 2.0 * np.eye(P), X.T @ Y).T
    np.testing.assert_allclose(model.coef_, best, rtol=1e-9, atol=1e-11)


def test_the_logistic_loss_learns_classes_as_they_come() -> None:
    tasks = stream([[0, 1], [2], [3, 4], [5, 0]], n=150)
    model = taught(conche.ConcheClassifier(4, loss="logistic"), tasks)
    X, y = (np.concatenate(parts) for parts in zip(*tasks, strict=True))
    offline = conche.ConcheClassifier(1, loss="logistic").fit(X, y)
    new_X, new_y = stream([[0, 1, 2, 3, 4, 5]], seed=7, n=2000)[0]
    assert model.score(new_X, new_y) >= offline.score(new_X, new_y) - 0.02
    shares = model.predict_proba(new_X)
    assert shares.shape == (2000, 6) and np.allclose(shares.sum(axis=1), 1)


def test_the_past_fades_once_when_classes_come_as_a_surprise() -> None:
    """To what it would weigh had it been kept with the output that new classes start from."""
    tasks = stream([[0, 1], [0, 1], [2], [2, 3]], n=150)
    model = taught(conche.ConcheClassifier(2, loss="logistic"), tasks[:2])
    assert not model.state_.labels.grown and model.state_.labels.coming == 0
    before = model.state_
    for (X, y), surprise in zip(tasks[2:], (True, False), strict=True):
        now = Labels.of(y, known=model.state_.labels)
        fading = model.state_.stiffness.fading(model.state_.labels, now)
        assert (0.05 < fading < 0.9) if surprise else fading == 1.0
        model.partial_fit(X, y)
        assert model.state_.labels.grown and model.state_.labels.coming == 0.5
    assert before.stiffness.unseen < before.stiffness.kept
    listed = taught(conche.ConcheClassifier(2, loss="logistic"), tasks, classes=[0, 1, 2, 3])
    assert not listed.state_.labels.grown and listed.state_.labels.coming == 0


def test_one_class_alone() -> None:
    X, y = stream([[2]])[0]
    model = conche.ConcheClassifier(2, loss="logistic").fit(X, y)
    assert model.classes_.tolist() == [2] and model.coef_.shape == (1, P)
    assert np.all(model.predict(X) == 2) and np.all(model.predict_proba(X) == 1)


def test_a_label_that_is_listed_and_has_not_come_is_like_any_other_that_has_not(
    tmp_path: Path,
) -> None:
    tasks = stream([[0, 1], [0, 1, 3]])
    model = conche.ConcheClassifier(2).partial_fit(*tasks[0], classes=[0, 1, 3, 4])
    assert np.array_equal(model.coef_[2], model.coef_[3]) and model.coef_.shape == (4, P)
    conche.save(model, tmp_path / "m")
    again = conche.load(tmp_path / "m")
    for each in (model, again):
        each.partial_fit(*tasks[1])
    assert np.array_equal(again.coef_, model.coef_) and again.classes_.tolist() == [0, 1, 3, 4]
    assert not np.array_equal(model.coef_[2], model.coef_[3])


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (np.array(["a", "b"] * 20), None, "label 'a' is a text, but .* numbers, such as 0"),
        (np.arange(40) % 2, [0, 1], "leave out 2"),
        (np.arange(40) % 2, ["0", "1", "2"], "leave out 0|is a text"),
        (np.linspace(0, 1, 40), None, "[Uu]nknown label type|continuous"),
        (np.full(40, np.nan), None, "NaN"),
        (np.arange(39) % 2, None, "inconsistent numbers of samples"),
    ],
)
def test_bad_labels_change_nothing(y: Array, classes: Any, message: str) -> None:
    tasks = stream([[0, 1, 2]])
    model = conche.ConcheClassifier(2).partial_fit(*tasks[0])
    before = model.state_
    with pytest.raises(conche.ConcheError, match=message) as refused:
        model.partial_fit(tasks[0][0], y, classes=classes)
    assert "\n" not in str(refused.value) and model.state_ is before


def test_a_new_label_in_each_of_ten_tasks_killed_and_resumed_at_every_one(tmp_path: Path) -> None:
    """The same model; and the matrix of errors knows what was not known yet."""
    rng = np.random.default_rng(3)
    centres = 2 * rng.standard_normal((11, 6))
    for part, n in (("s", 60), ("test", 40)):
        (tmp_path / part).mkdir()
        for t in range(10):
            y = rng.integers(0, t + 2, n)
            y[0] = t + 1
            X = centres[y] + rng.standard_normal((n, 6))
            np.savez(tmp_path / part / f"{t:02d}.npz", X=X, y=np.array([f"c{k}" for k in y]))
    options = ["--target", "y", "--nodes", "3", "--out"]
    whole = run("train", "s", *options, "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    (tmp_path / "part").mkdir()
    for t in range(10):  # a stream that ends after each task, and goes on later
        shutil.copy(tmp_path / "s" / f"{t:02d}.npz", tmp_path / "part" / f"{t:02d}.npz")
        resume = ["--resume"] if t else []
        done = run(
            *("train", "part", *options, "m", "--checkpoint", "state", *resume), cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
    assert_the_same_but_for_errors(tmp_path / "m", tmp_path / "whole")
    model = conche.load(tmp_path / "m")
    assert len(model.classes_) == 11 and len(os.listdir(tmp_path / "state")) == 1
    shown = run("evaluate", "m", "test", "--target", "y", "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
