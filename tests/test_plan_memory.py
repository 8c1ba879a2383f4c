"""The Conche method, foreseen: errors, bytes, exchanges, ranks; against training."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import conche
from conche import Memory, Task
from conche.common.arrays import Array
from conche.errors import ParameterError
from conche.network.local import LocalNetwork
from conche.nodes.solvers.options import About, default_rank
from conche.paper.theory.offline import path
from conche.planner import twin
from conche.planner.choice import choice
from conche.planner.traffic import DOUBLE, Stream
from conche.theory import Similarity, offline_error

from .helpers.commands import run_here


class Apart(LocalNetwork):
    """Nodes that behave as if they were elsewhere, and count how often they are asked."""

    apart = True

    def __init__(self) -> None:
        super().__init__(1)
        self.calls: Counter[str] = Counter()

    def begin(self, *args: Any) -> Any:
        self.calls.clear()
        self.calls["begin"] += 1
        return super().begin(*args)

    def propose(self, g: Array) -> Any:
        self.calls["propose"] += 1
        return super().propose(g)

    def ask(self, *args: Any) -> Any:
        self.calls["ask"] += 1
        return super().ask(*args)

    def total(self, *args: Any) -> Any:
        self.calls["total"] += 1
        return super().total(*args)

    def largest(self, *args: Any) -> Any:
        self.calls["largest"] += 1
        return super().largest(*args)

    def end(self, *args: Any) -> Any:
        self.calls["end"] += 1
        return super().end(*args)


SIZES = [[5], [5, 4], [4, 5, 30], [30, 30], [200, 30], [200, 30, 30], [40] * 6]


@pytest.mark.parametrize("rank", [None, 0, 5, 16, 30])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(("p", "K"), [(12, 1), (12, 8), (40, 3), (64, 1), (64, 8)])
def test_what_is_kept_and_sent_is_counted_exactly(
    p: int, K: int, apart: bool, rank: int | None
) -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal(p)
    for ns in SIZES:
        network = Apart()
        network.apart = apart
        model = conche.ConcheRegressor(K, solver=Memory(rank=rank), n_rounds=3, network=network)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # three rounds may be too few
            for n in ns:
                X = rng.standard_normal((n, p))
                model.partial_fit(X, X @ w + rng.standard_normal(n))
        sizes = [len(block) for block in model.partition_]
        stream = Stream(
            sizes, np.array(ns), default_rank(About(p)) if rank is None else rank, apart
        )
        rounds = sum(record["task"] == len(ns) for record in model.history_)
        past = model.state_.past
        kept = [sum(a.size for a in s.to_arrays().values()) for s in model.node_states()]
        assert (kept if past is None else [0] * K) == stream.kept(), ns
        assert (0 if past is None else past.best.sums.numbers) == stream.at_the_coordinator(), ns
        assert model.tasks_[-1]["bytes"] == stream.sent(rounds), ns
        assert sum(network.calls.values()) == stream.exchanges(rounds), (ns, network.calls)


def test_a_plan_has_those_counts() -> None:
    plan = conche.plan(24, 50, n_tasks=6, n_shared=20, noise_var=0.1, n_nodes=3)
    model = conche.ConcheRegressor(3)
    for task in conche.gaussian_tasks(6, 50, 24, n_shared=20, noise_var=0.1):
        model.partial_fit(task.X, task.y)
    assert plan.memory.kept_bytes == 0 == plan.memory.numbers
    assert model.state_.past is not None
    assert plan.memory.coordinator_bytes == DOUBLE * model.state_.past.best.sums.numbers
    assert plan.memory.bytes == model.tasks_[-1]["bytes"]
    plain = conche.CoCoARegressor(3).fit(np.ones((50, 24)), np.ones(50))
    assert plan.rounds.bytes == plain.tasks_[-1]["bytes"]
    kept = [sum(a.nbytes for a in s.to_arrays().values()) for s in plain.node_states()]
    assert plan.rounds.kept_bytes == max(kept)


@pytest.mark.parametrize("share", [0, 0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("times", [1 / 8, 1 / 4, 1 / 2, 1, 2, 4])
@pytest.mark.parametrize("p", [64, 256])
def test_the_error_is_foreseen(p: int, times: float, share: float) -> None:
    """60 settings: within 5 %, and two standard errors of what the draws leave open."""
    n, T = int(times * p), 8
    foreseen = conche.plan(p, n, n_tasks=T, n_shared=share * p, noise_var=0.1).memory.error
    draws = 3 if times > 1 / 2 else 8 if p == 256 else 24
    errors = []
    for seed in range(draws):
        tasks = conche.gaussian_tasks(T, n, p, n_shared=int(share * p), noise_var=0.1, seed=seed)
        model = conche.ConcheRegressor(4)
        for task in tasks:
            model.partial_fit(task.X, task.y)
        errors.append(conche.generalization_error(model.coef_, tasks))
    stderr = float(np.std(errors, ddof=1)) / draws**0.5
    assert abs(np.mean(errors) - foreseen) <= 0.05 * foreseen + 2 * stderr


def test_errors_before_learning_and_the_strength_that_wins_by_them() -> None:
    """Of ridge on 100 rows, on a task of another truth: theory against draws; and what limited
    memory chooses for itself, in the median over streams."""
    p, noise = 128, 0.2
    similarity = Similarity.shared(2, [p], 90)
    first, second = path(similarity, [100, 60], noise)
    weights = [
        np.asarray(task.weights) for task in conche.gaussian_tasks(2, 1, p, n_shared=90, seed=1)
    ]
    rng = np.random.default_rng(0)
    for ridge in (0.5, 8.0, 128.0):
        drawn = []
        for _ in range(100):
            A = rng.standard_normal((100, p))
            y = A @ weights[0] + noise**0.5 * rng.standard_normal(100)
            w = np.linalg.solve(A.T @ A + ridge * np.eye(p), A.T @ y)
            drawn.append(np.sum((w - weights[1]) ** 2) + noise)
        stderr = np.std(drawn) / len(drawn) ** 0.5
        foreseen = first.error(second.as_new, p, ridge)
        assert abs(np.mean(drawn) - foreseen) <= 0.02 * foreseen + 3 * stderr
    for noise in (0.01, 4.0):
        found = []
        for seed in range(5):
            tasks = conche.gaussian_tasks(8, 60, p, n_shared=p, noise_var=noise, seed=seed)
            model = conche.ConcheRegressor(4, solver=Memory(rank=100))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the gap
                for task in tasks:
                    model.partial_fit(task.X, task.y)
            found.append(model.state_.judge.strength)
        likely = choice(Similarity.shared(8, [p], p), np.full(8, 60), noise, 100).ridge
        assert np.median(found) / 4 <= likely <= 4 * np.median(found), (noise, found)


def test_a_twin_loses_what_the_stream_does() -> None:
    """p = 128 on 16 nodes, with a quarter and a half of all directions; a given ridge."""
    p, n, T, K, damping = 128, 32, 6, 16, 10.0
    shape = twin.Shape(p, T, n, K, damping, 0.1)
    found = twin.losses(shape)
    assert found.mean[-1] == 0 and found.smallest(0.001) > found.smallest(1.0) == 0
    errors: dict[int, list[float]] = {p: [], p // 4: [], p // 2: []}
    for seed in range(6):
        tasks = conche.gaussian_tasks(T, n, p, n_shared=p, noise_var=0.1, seed=seed)
        for rank, each in errors.items():
            solver = Memory(rank=rank, ridge=damping)
            model = conche.ConcheRegressor(K, solver=solver, fit_intercept=False, scaling=None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the gap, which is what we measure
                for task in tasks:
                    model.partial_fit(task.X, task.y)
            each.append(conche.generalization_error(model.coef_, tasks))
    whole = np.mean(errors[p])
    for rank in (p // 4, p // 2):
        real = np.mean(errors[rank]) / whole - 1
        assert found.at(rank / p) == pytest.approx(real, rel=0.35), (rank, real)


def test_ranks_and_their_loss() -> None:
    some: dict[str, Any] = dict(
        n_features=4000, n_samples=500, n_tasks=6, n_shared=4000, noise_var=0.1, n_nodes=16
    )
    plan = conche.plan(**some, rank=1024)
    assert plan.memory.rounds > 1
    assert plan.memory.coordinator_bytes == 0
    lossless = conche.plan(**some)
    assert lossless.memory.rank == 4000
    assert lossless.memory.loss == 0 < plan.memory.loss
    assert lossless.memory.error < plan.memory.error
    generous = conche.plan(**some, rank=1024, loss=0.5)
    assert generous.memory.smallest_rank <= plan.memory.smallest_rank <= 4001


def test_networks_cost_what_they_are_said_to() -> None:
    some: dict[str, Any] = dict(
        n_features=200, n_samples=300, n_tasks=4, n_shared=100, noise_var=0.1, n_nodes=4
    )
    here = conche.plan(**some).memory
    slow = conche.plan(**some, network="ray", bandwidth=10.0, latency=50.0).memory
    told = 3 * 5 * 0.05 + (slow.bytes + 8 * 300 * 200) / 10e6
    assert slow.seconds - here.seconds == pytest.approx(told, rel=1e-6)
    assert slow.kept_bytes == here.kept_bytes
    assert conche.plan(**some, network="mpi").memory.seconds < slow.seconds


def test_what_drifts_is_best_forgotten() -> None:
    still, moving = (
        conche.plan(64, 100, n_tasks=12, n_shared=64, noise_var=0.1, drift=drift)
        for drift in (0.0, 0.2)
    )
    assert still.memory.discount == 1.0
    assert 0 < moving.memory.discount < 1
    assert moving.memory.newest < moving.memory.newest_undiscounted
    assert moving.memory.error > still.memory.error
    rng = np.random.default_rng(0)
    errors: dict[float, list[float]] = {1.0: [], round(moving.memory.discount, 3): []}
    for _ in range(8):
        w = rng.standard_normal(64) / 8
        streams = []
        for _t in range(12):
            X = rng.standard_normal((100, 64))
            streams.append(Task(X, X @ w + 0.1**0.5 * rng.standard_normal(100), w, 0.1))
            w = w + rng.standard_normal(64) * (0.2 / 64) ** 0.5
        for discount, each in errors.items():
            model = conche.ConcheRegressor(2, solver=Memory(discount=discount))
            for task in streams:
                model.partial_fit(task.X, task.y)
            each.append(conche.generalization_error(model.coef_, streams[-1:]))
    plain, best = (np.mean(each) for each in errors.values())
    assert best == pytest.approx(moving.memory.newest, rel=0.15)
    assert plain == pytest.approx(moving.memory.newest_undiscounted, rel=0.25)


def test_any_size_is_answered_at_once() -> None:
    for p in (1, 3, 10**7, 10**12):
        plan = conche.plan(p, 1000, n_tasks=5, n_shared=p / 2, noise_var=0.1, n_nodes_max=64)
        assert 0 < plan.memory.error < 2 and plan.memory.kept_bytes >= 0
    long = conche.plan(50, 20, n_tasks=4000, n_shared=25, noise_var=0.1, n_nodes_max=2)
    expected = offline_error(Similarity.shared(400, [50], 25), 200, 0.1)[-1]
    assert long.memory.error == pytest.approx(expected, rel=0.02)


def heavy_tasks(seed: int = 0) -> list[Task]:
    """Columns that see the same weather."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(20) / 4
    tasks = []
    for _ in range(8):
        X = rng.standard_normal((800, 2)) @ rng.standard_normal((2, 20))
        X = X + 0.3 * rng.standard_normal((800, 20))
        tasks.append(Task(X, X @ w + 0.5 * rng.standard_normal(800)))
    return tasks


def test_what_no_theory_covers_is_measured() -> None:
    train, test = heavy_tasks(), heavy_tasks()
    rng = np.random.default_rng(9)
    rows = [rng.permutation(800) for _ in train]
    for which, tasks in ((slice(0, 600), train), (slice(600, 800), test)):
        tasks[:] = [Task(t.X[r[which]], t.y[r[which]]) for t, r in zip(tasks, rows, strict=True)]
    plan = conche.plan_from_tasks(train)
    assert plan.measured and "no theory covers that" in plan.text
    model = conche.ConcheRegressor(plan.memory.n_nodes)
    for task in train:
        model.partial_fit(task.X, task.y)
    real = np.mean([np.mean((model.predict(t.X) - t.y) ** 2) for t in test])
    assert plan.memory.error == pytest.approx(real, rel=0.15)
    heavy = [Task(rng.standard_t(2.5, (90, 6)), rng.standard_normal(90)) for _ in range(2)]
    assert "heavy tails" in conche.plan_from_tasks(heavy).text
    with pytest.raises(ParameterError, match="only once"):
        conche.plan_from_tasks(iter(train))
    calm = conche.plan_from_tasks(conche.gaussian_tasks(6, 90, 20, n_shared=10))
    assert not calm.measured


def test_many_columns_show_their_spectrum(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of rows, where no matrix is kept: strong directions are found, and not more."""
    from conche.paper.theory import estimate, survey

    monkeypatch.setattr(survey, "MOST_COLUMNS", 100)
    rng = np.random.default_rng(0)
    strong = np.linalg.qr(rng.standard_normal((300, 3)))[0] * np.sqrt([80.0, 50.0, 20.0])
    tasks = []
    for _ in range(6):
        X = rng.standard_normal((200, 3)) @ strong.T + rng.standard_normal((200, 300))
        tasks.append(Task(X, X[:, 0] + rng.standard_normal(200)))
    with pytest.warns(conche.CorrelationWarning):
        found = estimate(tasks).spectrum
    assert len(found) == 300 and found.sum() == pytest.approx(300, rel=0.05)
    assert np.sum(found > 2 * np.median(found)) == 3
    C = np.corrcoef(np.concatenate([t.X for t in tasks]).T)
    np.testing.assert_allclose(found[-3:], np.linalg.eigvalsh(C)[-3:], rtol=0.25)


def test_the_command_line_says_both(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = ["--features=64", "--samples=100", "--tasks=6", "--shared=48", "--noise=0.1"]
    monkeypatch.setenv("COLUMNS", "120")
    done = run_here("plan", *sizes, "--network", "ray", "--latency", "5", "--drift", "0.1")
    shown = " ".join(done.stdout.split())
    assert done.returncode == 0
    assert "Algorithm 1 0." in shown and "Conche method 0." in shown
    assert "memory buys" in shown and "If only the newest task counts, discount" in shown
    told = json.loads(run_here("plan", *sizes, "--json").stdout)["memory"]
    assert {"error", "rank", "kept_bytes", "bytes", "exchanges", "seconds"} <= set(told)
    for wrong, named in (
        (["--network", "pigeons"], "network"),
        (["--network", "ray", "--bandwidth", "0"], "bandwidth"),
        (["--network", "mpi", "--latency", "-1"], "latency"),
        (["--latency", "1"], "--network ray"),
        (["--rank", "-3"], "rank"),
        (["--loss", "-0.1"], "loss"),
        (["--drift", "nan"], "drift"),
    ):
        done = run_here("plan", *sizes, *wrong)
        assert done.returncode == 2 and named in done.stderr
    some: dict[str, Any] = dict(n_features=8, n_samples=9, n_tasks=2, n_shared=4, noise_var=0.1)
    anything: Any = conche.plan
    with pytest.raises(TypeError, match="nodes"):
        anything(**some, nodes=4)
    with pytest.raises(ParameterError, match="n_nodes"):
        conche.plan(**some, n_nodes=4, n_nodes_max=2)


def test_where_algorithm_1_has_no_answer_memory_has() -> None:
    """One column and two samples: every block is nearly square."""
    plan = conche.plan(1, 2, n_tasks=5, n_shared=1, noise_var=0.1)
    assert plan.error == np.inf and 0.1 < plan.memory.error < 1
    assert "unbounded on every number of nodes" in plan.text and "memory buys" in plan.text
