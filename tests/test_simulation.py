"""Reductions against the plain simulation, in distribution; and both against theory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

import conche
from conche import theory
from conche.simulation.simulate import _model, choose
from conche.theory import Similarity

TALL, WIDE, MIXED = "by_rows", "by_span", "by_rows"
SETTINGS = [  # n, partition, n_shared, n_rounds, correlation, the reduction taken
    (40, [5, 12, 9], 13, 1, 0.0, TALL),
    (40, [5, 12, 9], 13, 5, 0.0, TALL),
    (60, [4] * 5, 20, 1, 0.0, TALL),
    (30, [8], 0, 1, 0.0, TALL),
    (40, [5, 12, 9], 13, 1, 0.8, TALL),
    (6, [20, 24], 22, 1, 0.0, WIDE),
    (5, [30, 40, 50], 120, 100, 0.0, WIDE),
    (4, [25], 0, 1, 0.0, WIDE),
    (6, [30, 30], 30, 1, 0.7, MIXED),
    (15, [4, 30], 17, 1, 0.0, MIXED),
    (15, [4, 30], 17, 4, 0.0, MIXED),
    ([30, 5, 12, 40], [20, 3], 10, 1, 0.0, MIXED),
]


@pytest.mark.parametrize("index", range(len(SETTINGS)))
def test_auto_and_plain_agree_in_distribution(index):
    n, partition, n_shared, n_rounds, correlation, reduction = SETTINGS[index]
    options = dict(
        n_tasks=4, n_samples=n, partition=partition, n_shared=n_shared, noise_var=0.3,
        n_rounds=n_rounds, correlation=correlation,
    )  # fmt: skip
    model = _model(**options, weights=None)
    assert choose(model, "auto").__name__ == reduction
    auto = conche.simulate(**options, trials=800, seed=1)
    plain = conche.simulate(**options, trials=800, seed=2, method="plain")
    off = (auto.mean - plain.mean) / np.hypot(auto.stderr, plain.stderr)
    assert np.all(np.abs(off) < 4), off
    for t in range(4):  # 48 tests in all: 1e-4 each keeps a false alarm below half a percent
        assert ks_2samp(auto.trials[:, t], plain.trials[:, t]).pvalue > 1e-4


@pytest.mark.parametrize(("n", "partition"), [(40, [5, 12, 9]), (6, [20, 24])])
def test_fixed_weights_and_theory(n, partition):
    p = sum(partition)
    W = np.random.default_rng(0).standard_normal((3, p)) / np.sqrt(p)
    simulated = conche.simulate(3, n, partition, noise_var=0.2, weights=W, trials=1500)
    expected = theory.generalization_error(Similarity.from_weights(W, partition), n, 0.2)
    assert np.all(np.abs(simulated.mean - expected) < 4 * simulated.stderr)


def test_plain_is_what_the_estimator_does():
    rng = np.random.default_rng([0, 0])
    simulated = conche.simulate(2, [20, 30], [4, 8], 6, 0.1, n_rounds=3, trials=2, method="plain")
    model = _model(2, [20, 30], [4, 8], 6, 0.1, 3, 0.0, None)
    W = model.draw_weights(rng)
    estimator = conche.CoCoARegressor(partition=[4, 8], n_rounds=3)
    for t, n in enumerate((20, 30)):
        X = rng.standard_normal((n, 12))
        estimator.partial_fit(X, X @ W[t] + np.sqrt(0.1) * rng.standard_normal(n))
        assert simulated.trials[0, t] == pytest.approx(model.error(estimator.coef_, W), rel=1e-9)


def test_a_billion_columns():
    sizes = [250_000_000] * 4
    simulated = conche.simulate(8, 50, sizes, 750_000_000, 0.01, trials=40)
    expected = theory.generalization_error(Similarity.shared(8, sizes, 750_000_000), 50, 0.01)
    assert np.all(np.abs(simulated.mean - expected) < 4 * simulated.stderr)


def test_the_same_seed_gives_the_same_trials_for_any_number_of_jobs():
    options = dict(n_tasks=3, n_samples=20, partition=[4, 6], n_shared=5, trials=6, seed=3)
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
        (dict(n_samples=[1, 2]), "n_samples has 2 values for 3 tasks"),
        (dict(partition=[4, 0]), "at least 1"),
        (dict(partition=[4, 1.5]), "whole block sizes"),
        (dict(correlation=1.0), "correlation=1.0"),
        (dict(weights=np.ones((2, 10))), "weights have shape"),
        (dict(n_rounds=0), "n_rounds=0"),
        (dict(n_samples=2.5), "n_samples must be whole"),
        (dict(noise_var=np.inf), "noise_var=inf"),
        (dict(n_shared=2.5), "n_shared=2.5"),
        (dict(trials=2.5), "trials=2.5"),
        (dict(weights=np.full((3, 10), np.nan)), "weights have missing"),
    ],
)
def test_bad_settings_are_named(change, message):
    options = dict(n_tasks=3, n_samples=20, partition=[4, 6], n_shared=5) | change
    with pytest.raises(ValueError, match=message):
        conche.simulate(**options)
