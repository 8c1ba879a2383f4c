"""Real data, where it lies beside the project: Beijing's air, and MNIST as odd against even."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import conche
from conche import Task
from conche.common.arrays import Array

from .helpers.streams import Pair, beijing, mnist, need


def mean_square(coef: Array, tasks: Sequence[Task]) -> float:
    return float(np.mean([np.mean((t.y - t.X @ coef) ** 2) for t in tasks]))


def error_rate(coef: Array, tasks: Sequence[Task]) -> float:
    return float(np.mean([np.mean(np.sign(t.X @ coef) != t.y) for t in tasks]))


@pytest.fixture(scope="module")
def air() -> Pair:
    return beijing()


def test_damped_learns_beijing_untuned(air: Pair) -> None:
    train, test = air
    model = conche.CoCoARegressor(n_nodes=12, solver="damped")
    for task in train:
        model.partial_fit(task.X, task.y)
        assert np.isfinite(mean_square(model.coef_, test))
    assert mean_square(model.coef_, test) <= 0.50


@pytest.mark.parametrize("n_nodes", [1, 12, 132])
def test_conche_reaches_offline_on_beijing(air: Pair, n_nodes: int) -> None:
    train, test = air
    offline = mean_square(conche.offline_solution(train), test)
    model = conche.ConcheRegressor(n_nodes=n_nodes)
    for task in train:
        model.partial_fit(task.X, task.y)
    error = np.mean([np.mean((t.y - model.predict(t.X)) ** 2) for t in test])
    assert error <= 0.418
    assert error <= 0.418 / 0.405 * offline


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_conche_learns_split_mnist_in_one_pass(loss: str) -> None:
    ours: dict[int, list[float]] = {2: [], 50: [], 300: []}
    offline = []
    for seed in range(1):
        train, test = mnist(seed)
        offline.append(error_rate(conche.offline_solution(train), test))
        for K, errors in ours.items():
            model = conche.ConcheClassifier(n_nodes=K, loss=loss)
            for task in train:
                model.partial_fit(task.X, task.y)
            errors.append(np.mean([np.mean(model.predict(t.X) != t.y) for t in test]))
    for K, errors in ours.items():
        assert np.mean(errors) <= 0.085, (K, np.mean(errors), np.mean(offline))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_hundred_repetitions_of_algorithm_1_on_odd_and_even_mnist(loss: str) -> None:
    """Section IV-F: p = 3000, n = 100, K = 2, one round; every task at most 0.17 at the end."""
    rates = []
    for seed in range(3):
        train, test = conche.odd_even_mnist(need("mnist"), seed=seed)
        model = conche.CoCoAClassifier(n_nodes=2, loss=loss)
        for _ in range(100):
            for task in train:
                model.partial_fit(task.X, task.y)
        rates.append([np.mean(model.predict(task.X) != task.y) for task in test])
    assert np.max(np.mean(rates, axis=0)) <= 0.17
