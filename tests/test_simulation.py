"""Reductions against the plain simulation, in distribution; and both against theory."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

import conche
from conche.common.device import Cpu
from conche.errors import NearSquareWarning, ParameterError
from conche.paper import theory
from conche.paper.simulation.draws import Unknowns, distances, reduced_task
from conche.paper.simulation.model import ModelSettings, make_model
from conche.paper.simulation.rows import by_rows, learning_curves, offline_by_rows
from conche.paper.simulation.simulate import choose
from conche.paper.theory import Similarity

CPU = Cpu()
TALL, WIDE, MIXED = "one_by_rows", "by_span", "one_by_rows"
# n, partition, n_shared, n_rounds, correlation, the reduction taken
SETTINGS: list[tuple[Any, ...]] = [
    (40, [5, 12, 9], 13, 1, 0.0, TALL),
    (40, [5, 12, 9], 13, 5, 0.0, TALL),
    (60, [4] * 5, 20, 1, 0.0, TALL),
    (30, [8], 0, 1, 0.0, TALL),
    (40, [5, 12, 9], 13, 1, 0.8, TALL),
    (6, [20, 24], 22, 1, 0.0, WIDE),
    (5, [30, 40, 50], 120, 10, 0.0, WIDE),
    (4, [25], 0, 1, 0.0, WIDE),
    (6, [30, 30], 30, 1, 0.7, MIXED),
    (15, [4, 30], 17, 1, 0.0, MIXED),
    (15, [4, 30], 17, 4, 0.0, MIXED),
    ([30, 5, 12, 40], [20, 3], 10, 1, 0.0, MIXED),
]


@pytest.mark.parametrize("index", range(len(SETTINGS)))
def test_auto_and_plain_agree_in_distribution(index: int) -> None:
    n, partition, n_shared, n_rounds, correlation, reduction = SETTINGS[index]
    model: ModelSettings = dict(
        n_shared=n_shared, noise_var=0.3, n_rounds=n_rounds, correlation=correlation
    )
    assert choose(make_model(4, n, partition, **model), "auto").__name__ == reduction
    auto = conche.simulate(4, n, partition, trials=400, seed=1, **model)
    plain = conche.simulate(4, n, partition, trials=400, seed=2, method="plain", **model)
    off = (auto.mean - plain.mean) / np.hypot(auto.stderr, plain.stderr)
    assert np.all(np.abs(off) < 4), off
    for t in range(4):  # 48 tests in all: 1e-4 each keeps a false alarm below half a percent
        assert ks_2samp(auto.trials[:, t], plain.trials[:, t]).pvalue > 1e-4


@pytest.mark.parametrize(("n", "partition"), [(40, [5, 12, 9]), (6, [20, 24])])
def test_fixed_weights_and_theory(n: int, partition: list[int]) -> None:
    p = sum(partition)
    W = np.random.default_rng(0).standard_normal((3, p)) / np.sqrt(p)
    simulated = conche.simulate(3, n, partition, noise_var=0.2, weights=W, trials=1500)
    expected = theory.generalization_error(Similarity.from_weights(W, partition), n, 0.2)
    assert np.all(np.abs(simulated.mean - expected) < 4 * simulated.stderr)


def test_plain_is_what_the_estimator_does() -> None:
    draws = CPU.draws(0, [0])
    rng = draws.rngs[0]
    settings: ModelSettings = dict(n_shared=6, noise_var=0.1, n_rounds=3)
    simulated = conche.simulate(2, [20, 30], [4, 8], trials=2, method="plain", **settings)
    model = make_model(2, [20, 30], [4, 8], **settings)
    W = Unknowns(model, draws, CPU).of(6)[0]
    estimator = conche.CoCoARegressor(partition=[4, 8], n_rounds=3)
    for t, n in enumerate((20, 30)):
        X = rng.standard_normal((n, 12))
        estimator.partial_fit(X, X @ W[t] + np.sqrt(0.1) * rng.standard_normal(n))
        error = np.mean(np.sum((estimator.coef_ - W) ** 2, axis=1)) + 0.1
        assert simulated.trials[0, t] == pytest.approx(error, rel=1e-9)


def test_a_billion_columns() -> None:
    sizes = [250_000_000] * 4
    simulated = conche.simulate(8, 50, sizes, n_shared=750_000_000, trials=40)
    expected = theory.generalization_error(Similarity.shared(8, sizes, 750_000_000), 50, 0.01)
    assert np.all(np.abs(simulated.mean - expected) < 4 * simulated.stderr)


def test_the_same_seed_gives_the_same_trials_for_any_number_of_jobs() -> None:
    options: dict[str, Any] = dict(
        n_tasks=3, n_samples=20, partition=[4, 6], n_shared=5, trials=6, seed=3
    )
    one, two = conche.simulate(**options), conche.simulate(**options, n_jobs=2)
    assert np.array_equal(one.trials, two.trials)
    longer = conche.simulate(**(options | {"trials": 9}))
    assert np.array_equal(longer.trials[:6], one.trials)
    assert one.mean.shape == one.stderr.shape == (3,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(method="magic"), "method='magic'"),
        (dict(trials=1), "trials=1"),
        (dict(n_shared=11), "n_shared=11"),
        (dict(noise_var=-1.0), "noise_var=-1"),
        (dict(n_samples=0), "n_samples=0"),
        (dict(n_samples=[1, 2]), "n_samples has 2 values for n_tasks=3"),
        (dict(partition=[4, 0]), "at least 1"),
        (dict(partition=[4, 1.5]), "whole number of columns"),
        (dict(correlation=1.0), "correlation=1.0"),
        (dict(weights=np.ones((2, 10))), "weights have shape"),
        (dict(n_rounds=0), "n_rounds=0"),
        (dict(training=True, method="plain"), "training=True needs"),
        (dict(n_samples=2.5), "n_samples=2.5 must be a whole"),
        (dict(noise_var=np.inf), "noise_var=inf"),
        (dict(n_shared=2.5), "n_shared=2.5"),
        (dict(trials=2.5), "trials=2.5"),
        (dict(weights=np.full((3, 10), np.nan)), "weights have missing"),
        (dict(seed=-1), "seed=-1"),
        (dict(training=1), "training=1 must be True or False"),
        (dict(noise=0.1), "no setting noise; those of the model are correlation, n_rounds"),
    ],
)
def test_bad_settings_are_named(change: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = dict(n_tasks=3, n_samples=20, partition=[4, 6], n_shared=5)
    options |= change
    with pytest.raises(ParameterError, match=message):
        conche.simulate(**options)


SAME_SHAPE = [  # partition, n_shared, n_rounds
    ([24], 0, 1),
    ([12, 12], 0, 1),
    ([12, 12], 24, 7),
    ([8] * 3, 12, 1),
    ([4] * 6, 12, 3),
    ([1] * 24, 5, 2),
    ([5, 5, 7, 7], 12, 4),
]


@pytest.mark.parametrize(("n", "correlation"), [(40, 0.0), (24, 0.5), (9, 0.0), (1, 0.0)])
def test_one_draw_serves_every_setting_of_its_shape(n: int, correlation: float) -> None:
    """Against the estimator itself, on the very matrices that were drawn."""
    models = [
        make_model(
            3,
            n,
            partition,
            n_shared=n_shared,
            noise_var=0.1,
            n_rounds=n_rounds,
            correlation=correlation,
        )
        for partition, n_shared, n_rounds in SAME_SHAPE
    ]
    together = by_rows(models, CPU.draws(0, range(2)), CPU)
    for model, D in zip(models, together, strict=True):
        draws = CPU.draws(0, [1])
        W = Unknowns(model, draws, CPU).of(model.n_shared)
        estimator = conche.CoCoARegressor(partition=model.partition, n_rounds=model.n_rounds)
        for t in range(3):
            task = reduced_task(model, t, draws, CPU)
            y = task.R[0] @ W[0, t] + np.sqrt(0.1) * task.noise[0]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NearSquareWarning)
                estimator.partial_fit(task.R[0], y)
            apart = distances(estimator.coef_, W[0], correlation)
            assert D[1, t] == pytest.approx(apart, rel=1e-6)


def test_learning_curves_are_what_the_estimator_does_round_by_round() -> None:
    """Wide tasks are drawn whole, so the path itself can be compared."""
    model = make_model(3, 8, [10, 14], n_shared=12, noise_var=0.1, n_rounds=4)
    (G,), (F,) = learning_curves([model], 2, CPU.draws(5, [0]), CPU)
    draws = CPU.draws(5, [0])
    W = Unknowns(model, draws, CPU).of(12)
    drawn = [reduced_task(model, t, draws, CPU) for t in range(3)]
    tasks = [
        conche.Task(d.R[0], d.R[0] @ W[0, t] + np.sqrt(0.1) * d.noise[0], W[0, t], 0.1)
        for t, d in enumerate(drawn)
    ]
    before = conche.CoCoARegressor(partition=[10, 14])
    at = 0
    for step in range(6):
        task, seen = tasks[step % 3], tasks[: min(step + 1, 3)]
        for rounds in range(1, 5):
            after = copy.deepcopy(before).set_params(n_rounds=rounds).partial_fit(task.X, task.y)
            assert G[0, at] == pytest.approx(conche.generalization_error(after.coef_, tasks))
            assert F[0, at] == pytest.approx(conche.training_error(after.coef_, seen), abs=1e-12)
            at += 1
        before = after


@pytest.mark.parametrize(("n", "rounds"), [(30, 3), (6, 1)])
def test_training_error_against_plain_monte_carlo(n: int, rounds: int) -> None:
    """Tall tasks are drawn by their triangular factor, and the noise outside it by its length."""
    settings: ModelSettings = dict(noise_var=0.5, n_shared=5, n_rounds=rounds)
    reduced = conche.simulate(2, n, [4, 6], trials=600, training=True, **settings)
    assert reduced.training is not None
    plain = []
    for trial in range(600):
        tasks = conche.gaussian_tasks(
            2, n, 10, n_shared=5, noise_var=0.5, seed=np.random.default_rng([9, trial])
        )
        model, line = conche.CoCoARegressor(partition=[4, 6], n_rounds=rounds), []
        for t, task in enumerate(tasks):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NearSquareWarning)
                model.partial_fit(task.X, task.y)
            line.append(conche.training_error(model.coef_, tasks[: t + 1]))
        plain.append(line)
    apart = np.mean(plain, axis=0) - reduced.training.mean(axis=0)
    spread = np.hypot(np.std(plain, axis=0), reduced.training.std(axis=0)) / np.sqrt(600)
    assert np.all(np.abs(apart) < 4 * spread)
    assert np.all(reduced.mean > 0)


@pytest.mark.parametrize("n", [30, 10, 7])
def test_offline_is_the_offline_solution(n: int) -> None:
    models = [make_model(4, n, [20], n_shared=s, noise_var=0.1) for s in (0, 12)]
    errors = offline_by_rows(models, [1, 2, 4], CPU.draws(1, range(2)), CPU)
    for m, model in enumerate(models):
        draws = CPU.draws(1, [1])
        W = Unknowns(model, draws, CPU).of(model.n_shared)[0]
        tasks = []
        for t in range(4):
            task = reduced_task(model, t, draws, CPU)
            y = task.R[0] @ W[t] + np.sqrt(0.1) * task.noise[0]
            tasks.append(conche.Task(task.R[0], y, W[t], 0.1))
            if t + 1 in (1, 2, 4):
                best = conche.offline_solution(tasks)
                got = errors[m, 1, [1, 2, 4].index(t + 1)]
                assert got == pytest.approx(conche.generalization_error(best, tasks), rel=1e-6)
