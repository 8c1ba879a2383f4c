"""discount="auto": four sums side by side, judged on every task before it is learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conche
from conche import Memory, Task
from conche.common.arrays import Array
from conche.memory import DISCOUNTS

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
    return conche.train(conche.ConcheRegressor(K, solver=Memory(discount=discount)), tasks)


def test_it_follows_a_truth_that_turns() -> None:
    """Far better than never forgetting, and nearly as good as the best of its weights, on three
    streams: over the last ten tasks, as they were predicted before they were learnt."""
    for seed in range(3):
        tasks = rotating(0.15, seed=seed)
        errors = {}
        for discount in ("auto", *DISCOUNTS):
            model = learnt(tasks, discount)
            before = [record["before"] or np.nan for record in model.tasks_[-10:]]
            errors[discount] = np.mean(before)
        assert errors["auto"] < 0.7 * errors[1.0], errors
        assert errors["auto"] < 1.02 * min(errors[discount] for discount in DISCOUNTS), errors
        assert learnt(tasks, "auto").discount_ < 1


def test_where_nothing_drifts_next_to_nothing_is_lost() -> None:
    errors = {"auto": 0.0, 1.0: 0.0}
    for seed in range(5):
        tasks = rotating(0.0, seed=seed)
        for discount in errors:
            model = learnt(tasks, discount)
            assert model.discount_ >= 0.97
            errors[discount] += 0.09 + np.sum((model.coef_ - tasks[0].weights) ** 2)
    assert errors["auto"] < 1.02 * errors[1.0], errors


def test_each_path_is_the_model_with_that_discount() -> None:
    tasks = rotating(0.1, n_tasks=6)
    past = learnt(tasks, "auto").state_.past
    assert past is not None and [path.discount for path in past.paths] == list(DISCOUNTS)
    for path in past.paths:
        alone = learnt(tasks, path.discount).state_.past
        assert alone is not None
        np.testing.assert_allclose(path.sums.XY, alone.best.sums.XY, rtol=1e-12)
    scores = [path.score for path in past.paths]
    assert past.best is past.paths[int(np.argmin(scores))]


def test_scores_are_of_tasks_before_they_are_learnt_and_fade() -> None:
    tasks, scores = rotating(0.1, n_tasks=5), np.zeros(len(DISCOUNTS))
    for i, discount in enumerate(DISCOUNTS):
        model = conche.ConcheRegressor(2, solver=Memory(discount=discount))
        for task in tasks:
            if hasattr(model, "state_"):
                own = np.sum((task.y - model.predict(task.X)) ** 2)
                scores[i] = 0.95 * scores[i] + own
            model.partial_fit(task.X, task.y)
    past = learnt(tasks, "auto").state_.past
    assert past is not None
    # between two searches the ridge stays in force: that changes a score a little
    np.testing.assert_allclose([path.score for path in past.paths], scores, rtol=0.02)


def test_a_saved_stream_goes_on_with_all_paths(tmp_path: Path) -> None:
    tasks = rotating(0.15)
    whole, half = learnt(tasks, "auto"), learnt(tasks[:12], "auto")
    conche.save(half, tmp_path / "m", timings=False)
    again = conche.train(conche.load(tmp_path / "m"), tasks[12:])
    assert np.array_equal(again.coef_, whole.coef_)
    ours, theirs = again.state_.past, whole.state_.past
    assert ours is not None and theirs is not None
    assert [path.score for path in ours.paths] == [path.score for path in theirs.paths]


def test_labels_may_come() -> None:
    rng = np.random.default_rng(0)
    centres: Array = 2 * rng.standard_normal((4, P))
    model = conche.ConcheClassifier(2, solver=Memory(discount="auto"))
    for group in ([0, 1], [2], [3, 0], [1, 2]):
        y = rng.choice(group, 60)
        model.partial_fit(centres[y] + rng.standard_normal((60, P)), y)
    y = rng.integers(0, 4, 400)
    assert model.score(centres[y] + rng.standard_normal((400, P)), y) > 0.9


def test_where_it_cannot_be_it_says_why() -> None:
    X, y = np.ones((3, 4001)), np.ones(3)
    auto = Memory(discount="auto")
    with pytest.raises(conche.ParameterError, match=r"4 sums, 512 MB for 4,001 columns"):
        conche.ConcheRegressor(2, solver=auto).fit(X, y)
    limited = Memory(rank=2, discount="auto")
    with pytest.raises(conche.ParameterError, match="more columns than rank; give a number"):
        conche.ConcheRegressor(2, solver=limited).fit(X[:, :5], y)
    with pytest.raises(conche.ParameterError, match="the loss is logistic; give a number"):
        conche.ConcheClassifier(2, loss="logistic", solver=auto).fit(X[:, :5], [0, 1, 1])


@pytest.mark.parametrize("discount", ["automatic", -0.1, 1.1, None])
def test_other_discounts_are_refused(discount: object) -> None:
    model = conche.ConcheRegressor(2, solver=Memory(discount=discount))  # type: ignore[arg-type]  # on purpose
    with pytest.raises(conche.ParameterError, match="at least 0 and at most 1, or 'auto'"):
        model.fit(np.eye(4), np.ones(4))
