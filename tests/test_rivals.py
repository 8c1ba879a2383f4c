"""discount="auto": several pasts side by side, judged on every task before it is learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conche
from conche import Memory, Task
from conche.common.arrays import Array

P = 20


def rotating(angle: float, n_tasks: int = 30, n: int = 40, seed: int = 0) -> list[Task]:
    """The truth turns by so much a task, in one plane."""
    rng = np.random.default_rng(seed)
    plane = np.linalg.qr(rng.standard_normal((P, 2)))[0]
    tasks = []
    for t in range(n_tasks):
        w = plane @ np.array([np.cos(angle * t), np.sin(angle * t)])
        X = rng.standard_normal((n, P))
        tasks.append(Task(X, X @ w + 0.3 * rng.standard_normal(n), weights=w))
    return tasks


def learnt(tasks: list[Task], discount: Any, K: int = 3) -> conche.ConcheRegressor:
    model = conche.ConcheRegressor(K, solver=Memory(discount=discount))
    for task in tasks:
        model.partial_fit(task.X, task.y)
    return model


def test_it_follows_a_truth_that_turns() -> None:
    """Better than never forgetting, and than the last task alone, on three streams: over the last
    ten tasks, as they were predicted before they were learnt."""
    for seed in range(3):
        tasks = rotating(0.15, seed=seed)
        errors = {}
        for discount in ("auto", 1.0, 0.0):
            model = learnt(tasks, discount)
            errors[discount] = np.mean([record["before"] for record in model.tasks_[-10:]])
        assert errors["auto"] < min(errors[1.0], errors[0.0]), errors
        assert learnt(tasks, "auto").discount_ < 1


def test_where_nothing_drifts_it_never_forgets() -> None:
    for seed in range(5):
        tasks = rotating(0.0, seed=seed)
        model = learnt(tasks, "auto")
        assert model.discount_ == 1.0
        np.testing.assert_allclose(model.coef_, learnt(tasks, 1.0).coef_, rtol=1e-9)


def test_each_path_is_the_model_with_that_discount() -> None:
    tasks = rotating(0.1, n_tasks=6)
    model = learnt(tasks, "auto")
    paths = {path.discount: path for path in (model.state_, *model.state_.rivals)}
    assert sorted(paths) == [0.0, 0.1, 0.4, 0.7, 0.9, 1.0]
    for discount, path in paths.items():
        np.testing.assert_allclose(path.coef[0], learnt(tasks, discount).coef_, rtol=1e-9)
    one = learnt(tasks, 1.0)
    assert model.tasks_[3]["bytes"] == 6 * one.tasks_[3]["bytes"]
    assert len(model.tasks_) == 6 and model.history_[-1]["task"] == 6


def test_a_saved_stream_goes_on_with_all_paths(tmp_path: Path) -> None:
    tasks = rotating(0.15)
    whole, half = learnt(tasks, "auto"), learnt(tasks[:12], "auto")
    conche.save(half, tmp_path / "m", timings=False)
    again = conche.load(tmp_path / "m")
    for task in tasks[12:]:
        again.partial_fit(task.X, task.y)
    assert np.array_equal(again.coef_, whole.coef_)
    conche.save(again, tmp_path / "a", timings=False)
    conche.save(whole, tmp_path / "b", timings=False)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_labels_may_come_and_the_loss_be_logistic() -> None:
    rng = np.random.default_rng(0)
    centres: Array = 2 * rng.standard_normal((4, P))
    model = conche.ConcheClassifier(2, loss="logistic", solver=Memory(discount="auto"))
    for group in ([0, 1], [2], [3, 0], [1, 2]):
        y = rng.choice(group, 60)
        model.partial_fit(centres[y] + rng.standard_normal((60, P)), y)
    y = rng.integers(0, 4, 400)
    assert model.score(centres[y] + rng.standard_normal((400, P)), y) > 0.9


@pytest.mark.parametrize("discount", ["automatic", -0.1, 1.1, None])
def test_other_discounts_are_refused(discount: object) -> None:
    model = conche.ConcheRegressor(2, solver=Memory(discount=discount))  # type: ignore[arg-type]  # on purpose
    with pytest.raises(conche.ParameterError, match="at least 0 and at most 1, or 'auto'"):
        model.fit(np.eye(4), np.ones(4))
