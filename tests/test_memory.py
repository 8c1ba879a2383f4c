"""The Conche method: nothing forgotten, for any number of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

import numpy as np
import pytest
from scipy import sparse

import conche
from conche import Memory, Task
from conche.metrics import generalization_error
from conche.network import LocalNetwork
from conche.nodes import NodeState
from conche.nodes.solvers import principal
from conche.nodes.solvers.options import About, default_rank
from conche.nodes.solvers.ridge import column_ridge
from conche.nodes.spread import Spread
from conche.past_file import past_arrays
from conche.tasks import correlated, embedded_digits

from .helpers.models import raw
from .helpers.reference import principal_memory


def learn(tasks: Sequence[Task], **options: Any) -> conche.ConcheRegressor:
    model: conche.ConcheRegressor = raw(**options)
    for task in tasks:
        model.partial_fit(task.X, task.y)
    return model


def states(model: conche.ConcheRegressor) -> list[NodeState]:
    return model.node_states()


@pytest.mark.parametrize("damping", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("p", [5, 40, 300])
def test_one_node_is_the_offline_ridge_solution_after_every_task(p: int, damping: float) -> None:
    sizes = [1, 50, 7, 2, 120, 33, 400, 5]
    tasks = conche.gaussian_tasks(len(sizes), sizes, p, n_shared=p // 2, noise_var=0.5)
    model = raw(n_nodes=1, solver=Memory(ridge=damping))
    for t, task in enumerate(tasks, start=1):
        model.partial_fit(task.X, task.y)
        expected = conche.offline_solution(tasks[:t], ridge=damping)
        assert np.linalg.norm(model.coef_ - expected) <= 1e-8 * np.linalg.norm(expected)


@pytest.mark.filterwarnings("ignore::conche.errors.OfflineGapWarning")
@pytest.mark.parametrize("p_n", [(40, 30), (90, 12)])
@pytest.mark.parametrize("rank", [25, 60])
@pytest.mark.parametrize("discount", [1.0, 0.7])
def test_equals_the_slow_reference(p_n: tuple[int, int], rank: int, discount: float) -> None:
    """Many rounds solve each task fully; both ways of merging are exact at this size."""
    p, n = p_n
    tasks = conche.gaussian_tasks(5, n, p, n_shared=p // 2, noise_var=0.1, correlation=0.5)
    for partition in ([p // 2, p - p // 2], [p // 4] * 3 + [p - 3 * (p // 4)]):
        solver = Memory(rank=rank, ridge=0.5, discount=discount)
        model = learn(tasks, partition=partition, solver=solver, n_rounds=100, tol=None)
        expected = principal_memory(tasks, list(model.partition_), rank, 0.5, discount)
        assert np.linalg.norm(model.coef_ - expected) <= 1e-7 * np.linalg.norm(expected)


@pytest.mark.filterwarnings("ignore::conche.errors.OfflineGapWarning")
def test_wide_blocks_keep_the_diagonal_of_what_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(principal, "WIDEST_BLOCK", 400)
    tasks = conche.gaussian_tasks(3, 10, 2000, noise_var=0.1)
    model = learn(tasks, n_nodes=2, solver=Memory(rank=25, ridge=4.0))
    for state in states(model):
        assert set(state.kept) == {"ridge", "principal", "remainder", "probes", "curved", "owed"}
        assert state.kept["principal"].shape == (25, 1000)
    last = tasks[-1]
    assert np.mean((last.y - model.predict(last.X)) ** 2) < 0.1 * np.mean(last.y**2)


@pytest.mark.filterwarnings("ignore::conche.errors.OfflineGapWarning")
@pytest.mark.parametrize("rank", [None, 6])
def test_memory_is_flat_over_500_tasks(rank: int | None) -> None:
    rng = np.random.default_rng(0)
    model = raw(n_nodes=3, n_rounds=2, tol=None, solver=Memory(rank=rank))
    sizes = []
    for _ in range(500):
        model.partial_fit(rng.standard_normal((4, 12)), rng.standard_normal(4))
        arrays = chain.from_iterable(s.to_arrays().values() for s in states(model))
        past = model.state_.past
        sums = {} if past is None else past_arrays(past, None)
        known = sums.pop("past.known", None)  # eight bytes, of a task of eight rows or more
        assert known is None or not len(known)
        sizes.append(sum(a.nbytes for a in chain(arrays, sums.values())))
    assert sizes[-1] == sizes[8]  # by then rows have become sums, and the ridge has settled
    for node in cast(LocalNetwork, model.network_).host.nodes:  # no task's data linger
        assert node._work is None and node._rounds is None


def test_default_ridge_does_not_depend_on_units_or_origins() -> None:
    X = np.random.default_rng(0).standard_normal((2000, 3))
    scale, origin = np.array([1e-3, 1.0, 1e3]), np.array([5.0, -300.0, 1e5])
    seen = Spread.of(X * scale + origin)
    ridge = column_ridge(seen, float(seen.scales.mean()))
    np.testing.assert_allclose(ridge / scale**2, 4.0, rtol=0.2)
    np.testing.assert_allclose(column_ridge(Spread.of(np.zeros((5, 2))), 4.0), 4.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scales_of_sparse_columns_are_those_of_dense_ones(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6)) * (rng.random((200, 6)) < 0.5)
    X[:, 3:5] += 1e4
    X[:, 5] = 0.1
    X = X.astype(dtype)
    dense, thin = Spread.of(X).scales, Spread.of(sparse.csr_array(X)).scales
    np.testing.assert_allclose(thin, dense, rtol=1e-9 if dtype == np.float64 else 1e-2)
    assert thin[5] == pytest.approx(0.01, rel=1e-6)


@pytest.mark.parametrize("offset", [0.0, 10.0, 1000.0])
@pytest.mark.parametrize("n_nodes", [1, 4])
def test_features_need_not_be_centred(offset: float, n_nodes: int) -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal(20)
    model = conche.ConcheRegressor(n_nodes=n_nodes, fit_intercept=True, n_rounds=30)
    for _ in range(8):
        X = rng.standard_normal((60, 20)) + offset
        model.partial_fit(X, X @ w + 0.1 * rng.standard_normal(60))
    assert np.mean((X @ w - model.predict(X)) ** 2) < 0.05


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("n_nodes", [1, 2])
def test_labels_of_uncentred_features_are_learnt_with_an_intercept(loss: str, n_nodes: int) -> None:
    scores = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        w = rng.standard_normal(6)
        model = conche.ConcheClassifier(n_nodes=n_nodes, loss=loss, fit_intercept=True)
        for n in (1, 3, 2, 6, 200, 200):
            X = rng.standard_normal((n, 6)) + 10
            model.partial_fit(X, (X - 10) @ w > 0, classes=[False, True])
        scores.append(model.score(X, (X - 10) @ w > 0))
    assert np.mean(scores) > 0.95


def test_features_whose_squares_overflow_are_refused() -> None:
    X = np.random.default_rng(0).standard_normal((30, 5))
    model = raw(n_nodes=2).fit(X, X[:, 0])
    before = model.coef_.copy()
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="too large"):
        model.partial_fit(1e160 * X, X[:, 0])
    assert np.array_equal(model.coef_, before)


def test_the_stream_may_begin_with_nothing() -> None:
    model = raw(n_nodes=2, n_rounds=50)
    model.partial_fit(np.zeros((5, 6)), np.ones(5))
    assert not model.coef_.any()
    (task,) = conche.gaussian_tasks(1, 200, 6)
    model.partial_fit(task.X, task.y)
    assert conche.generalization_error(model.coef_, [task]) < 0.02


def test_discount_follows_a_truth_that_drifts() -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal(10)
    keep, follow = (raw(n_nodes=2, solver=Memory(discount=d)) for d in (1.0, 0.5))
    for _ in range(30):
        w = w + 0.3 * rng.standard_normal(10)
        X = rng.standard_normal((40, 10))
        y = X @ w + 0.1 * rng.standard_normal(40)
        keep.partial_fit(X, y)
        follow.partial_fit(X, y)
    assert np.linalg.norm(follow.coef_ - w) < 0.5 * np.linalg.norm(keep.coef_ - w)


def test_the_rule_behind_the_rank() -> None:
    """Nothing is lost up to a number of columns; beyond, 512 MB of directions at most."""
    kinds: list[tuple[dict[str, bool], int, list[int]]] = [
        ({}, 10_000, [2048, 671, 0]),
        ({"on_gpu": True}, 30_000, [2048, 671, 0]),
        ({"quadratic": False}, 2048, [2048, 671, 0]),
        ({"sparse": True}, 2048, [131, 26, 1]),
    ]
    for known, most, beyond in kinds:
        ranks = [default_rank(About(p, **known)) for p in (1, 100, most)]
        assert ranks == [1, 100, most]
        sizes = most + 1, 100_000, 10**8
        ranks = [default_rank(About(p, **known)) for p in (20_000, *sizes[1:])]
        assert most > 20_000 or ranks == beyond
        assert default_rank(About(most + 1, **known)) < most + 1


# --- what the method must show, with one set of defaults, averaged over five seeds ---------------


@pytest.mark.parametrize(
    ("n", "correlation", "n_rounds", "within"),
    [(256, 0.0, 3, 1.015), (16, 0.0, 3, 1.08), (256, 0.9, 10, 1.03)],
)
def test_reaches_offline_on_the_papers_model(
    n: int, correlation: float, n_rounds: int, within: float
) -> None:
    offline: list[float] = []
    ours: dict[int, list[float]] = {4: [], 16: [], 128: []}
    for seed in range(5):
        tasks = conche.gaussian_tasks(32, n, 128, 96, 0.01, correlation, seed)
        offline.append(generalization_error(conche.offline_solution(tasks), tasks))
        for K, errors in ours.items():
            model = learn(tasks, n_nodes=K, n_rounds=n_rounds)
            errors.append(generalization_error(model.coef_, tasks))
    for K, errors in ours.items():
        assert np.mean(errors) <= within * np.mean(offline), K


def test_reaches_offline_on_digits() -> None:
    offline: list[Any] = []
    ours: dict[int, list[float]] = {1: [], 16: []}
    for seed in range(5):
        train, test = embedded_digits(seed=seed)
        w = conche.offline_solution(train)
        offline.append(np.mean([np.mean(np.sign(t.X @ w) != t.y) for t in test]))
        for K, errors in ours.items():
            model = conche.ConcheClassifier(n_nodes=K)
            errors.append(conche.error_matrix(model, train, test).average)
    for K, errors in ours.items():
        assert np.mean(errors) <= 1.1 * np.mean(offline), K


def wild_stream(seed: int) -> tuple[int, list[Task], list[Task]]:
    """Scales 1e-3 to 1e3, constant and duplicate columns, 1 to 500 rows, flips, correlation."""
    rng = np.random.default_rng(seed)
    p, n_tasks = int(rng.integers(3, 80)), int(rng.integers(4, 16))
    n_nodes = int(rng.choice([1, 2, min(4, p), max(1, p // 2), p]))
    correlation = rng.choice([0.0, 0.5, 0.9, 0.99])
    one_scale = np.full(p, 10 ** rng.uniform(-3, 3))
    scale = 10 ** rng.uniform(-3, 3, p) if rng.random() < 0.6 else one_scale
    constant, double = rng.random(p) < 0.1, rng.integers(0, p, p // 8)
    w = rng.standard_normal(p) / np.sqrt(p)
    noise, drift = 10 ** rng.uniform(-2, 0.5), rng.choice([0.0, 0.3, 1.0])
    train: list[Task] = []
    test: list[Task] = []
    for _ in range(n_tasks):
        w = (w if rng.random() > 0.3 else -w) + drift * rng.standard_normal(p) / np.sqrt(p)
        rows = int(np.exp(rng.uniform(0, np.log(500))))
        for tasks, n in ((train, rows), (test, 300)):
            Z = correlated(rng.standard_normal((n, p)), correlation)
            Z[:, constant] = 1.0
            Z[:, double] = Z[:, (double + 1) % p]
            tasks.append(conche.Task(Z * scale, Z @ w + noise * rng.standard_normal(n)))
    return n_nodes, train, test


def _offline_error(train: Sequence[Task], test: Sequence[Task]) -> float:
    """Of least squares with an intercept on standardised columns."""
    X, y = np.vstack([t.X for t in train]), np.concatenate([t.y for t in train])
    centre, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 1e-9 * np.abs(centre), scale, 1.0)
    w = conche.offline_solution([Task((X - centre) / scale, y - y.mean())])
    errors = [(t.y - y.mean() - (t.X - centre) / scale @ w) ** 2 for t in test]
    return float(np.mean([np.mean(each) for each in errors]))


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_never_catastrophic(first: int) -> None:
    """After every task: below 1.5 times the mean predictor's error, or offline's if larger, with
    an intercept or without."""
    for seed in range(first, first + 20):
        n_nodes, train, test = wild_stream(seed)
        model = conche.ConcheRegressor(n_nodes=n_nodes)
        for t, task in enumerate(train, start=1):
            model.partial_fit(task.X, task.y)
            seen = test[:t]
            mean = np.mean([s.y.mean() for s in seen])
            bound = np.mean([np.mean((s.y - mean) ** 2) for s in seen])
            ours = np.mean([np.mean((s.y - model.predict(s.X)) ** 2) for s in seen])
            if ours > 1.5 * bound:
                w = conche.offline_solution(train[:t])
                plain = np.mean([np.mean((s.y - s.X @ w) ** 2) for s in seen])
                bound = max(bound, plain, _offline_error(train[:t], seen))
            assert ours <= 1.5 * bound, (seed, t)
