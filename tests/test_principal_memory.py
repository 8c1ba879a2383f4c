"""More columns than the rank: how close it stays, and whether it knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import conche
from conche import Memory
from conche.cli.words import in_options
from conche.common.arrays import Array
from conche.errors import OfflineGapWarning
from conche.network import LocalNetwork
from conche.network.base import Each
from conche.network.cut import Gathered, exact_cut, orthonormal
from conche.nodes import Setup

from .helpers.hard_streams import KINDS, Stream, class_incremental, hard
from .helpers.models import raw

pytestmark = pytest.mark.filterwarnings(
    "ignore::conche.errors.OfflineGapWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


def learn(stream: Stream, n_nodes: int, solver: Memory) -> conche.ConcheRegressor:
    return teach(raw(n_nodes=n_nodes, solver=solver), stream)


def teach(model: conche.ConcheRegressor, stream: Stream) -> conche.ConcheRegressor:
    for task in stream.train:
        model.partial_fit(task.X, task.y)
    return model


def error(model: conche.ConcheRegressor, stream: Stream) -> float:
    return float(np.mean([np.mean((t.y - model.predict(t.X)) ** 2) for t in stream.test]))


# Error over offline ridge, rank 0.6 p, T = 8: what a prototype had measured, and two percent.
LIMITS = {
    "independent": 1.03,
    "factors": 1.006,
    "heavy tails": 1.07,
    "means": 1.02,
    "toeplitz": 1.004,
    "subspaces": 1.34,
    "disjoint": 1.0,
}


@pytest.mark.parametrize("kind", KINDS)
def test_hard_streams_stay_close_with_little_memory(kind: str) -> None:
    stream = hard(kind, 300, 8, 300, 0.3)
    damping = 4 * float(np.mean(stream.train[0].X.var(axis=0)))
    offline = error(learn(stream, 1, Memory(ridge=damping)), stream)
    for K in (4, 16, 64):
        ours = error(learn(stream, K, Memory(rank=180, ridge=damping)), stream)
        assert ours <= 1.02 * LIMITS[kind] * offline, (K, ours / offline)


def test_small_tasks_lose_more_and_still_little() -> None:
    stream = hard("independent", 300, 8, 75, 0.3)
    offline = error(learn(stream, 1, Memory(ridge=4.0)), stream)
    assert error(learn(stream, 16, Memory(rank=180, ridge=4.0)), stream) <= 1.13 * offline


def test_a_flat_spectrum_costs_at_most_two_percent() -> None:
    stream = hard("independent", 300, 6, 600, 0.3)
    offline = error(learn(stream, 1, Memory(ridge=4.0)), stream)
    assert error(learn(stream, 8, Memory(rank=120, ridge=4.0)), stream) <= 1.02 * offline


def objective(w: Array, stream: Stream, ridge: float) -> float:
    squares = sum(float(np.sum((t.y - t.X @ w) ** 2)) for t in stream.train)
    return 0.5 * squares + 0.5 * ridge * float(w @ w)


@pytest.mark.parametrize("first", [0, 75])
def test_the_gap_is_bounded_always_and_estimated_well(first: int) -> None:
    """150 random streams: never above the bound; nine of ten estimates within a factor of three
    where the gap is more than a thousandth of the objective."""
    close: list[bool] = []
    for seed in range(first, first + 75):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(20, 80))
        rank, K = int(rng.integers(3, p)), int(rng.integers(2, 9))
        kind = KINDS[seed % len(KINDS)]
        stream = hard(kind, p, 8, int(rng.integers(5, 100)), 10 ** rng.uniform(-2, 0), seed)
        ridge = 10 ** rng.uniform(-1, 1.5)
        model = learn(stream, K, Memory(rank=rank, ridge=ridge))
        offline = conche.offline_solution(stream.train, ridge=ridge)
        least = objective(offline, stream, ridge)
        ours, gap = objective(model.coef_, stream, ridge), model.offline_gap_
        true = (ours - least) / ours  # a share of the objective, as the gap is
        assert true <= gap.bound + 1e-9, seed
        if true > 1e-3:
            close.append(true / 3 <= gap.estimate <= 3 * true)
    assert len(close) >= 15 and np.mean(close) >= 0.9, (np.mean(close), len(close))


def test_training_says_once_that_much_is_lost() -> None:
    stream = hard("independent", 60, 8, 40, 0.3)
    model = raw(n_nodes=4, solver=Memory(rank=10, ridge=1.0))
    with pytest.warns(OfflineGapWarning, match="a larger rank") as told:
        teach(model, stream)
    assert len([w for w in told if w.category is OfflineGapWarning]) == 1
    assert model.offline_gap_.estimate > 0.01


def test_rounds_that_reach_their_limit_say_so() -> None:
    stream = hard("independent", 60, 3, 60, 0.3)
    model = raw(n_nodes=4, n_rounds=2, solver=Memory(rank=10, ridge=0.1))
    with pytest.warns(ConvergenceWarning, match="2 rounds, which n_rounds=2 allows") as told:
        teach(model, stream)
    assert "which --rounds 2 allows" in (said := in_options(str(told[0].message)))
    assert "n_rounds" not in said


@pytest.mark.parametrize("rows", [30, 80])
def test_merged_directions_and_a_constant_describe_the_rows(rows: int) -> None:
    """V'^T V' is never more than B^T B; it lacks what is cut, and half its mean everywhere."""
    rng = np.random.default_rng(0)
    B = rng.standard_normal((rows, 50)) * np.linspace(3, 0.5, 50)
    cut = exact_cut(B @ B.T, 20, 50)
    left = B.T @ B - (cut.W.T @ B).T @ (cut.W.T @ B)
    values = np.linalg.eigvalsh(left)
    assert values[0] >= -1e-9 and values[-1] <= cut.norm * (1 + 1e-9)
    exact = np.linalg.svd(B, compute_uv=False)[20:] ** 2
    assert np.trace(left) == pytest.approx(np.sum(exact) * (1 + 0.5 * 20 / 30))


@pytest.mark.parametrize("shape", [(90, 30), (30, 90), (90, 90)])
def test_gathered_rows_get_the_same_directions_however_their_columns_are_turned(
    shape: tuple[int, int],
) -> None:
    """By columns, by rows, by their range: never more than the rows say, and nearly the best."""
    rng = np.random.default_rng(0)
    B = rng.standard_normal(shape) * np.geomspace(5, 0.1, shape[1])
    turn = np.linalg.qr(rng.standard_normal((shape[1], shape[1])))[0]
    V, _, norm, found, beyond = Gathered(B, 1).directions(20)
    turned, *_ = Gathered(B @ turn, 1).directions(20)
    np.testing.assert_allclose(turned, V @ turn, atol=1e-9)
    values = np.linalg.eigvalsh(B.T @ B - V.T @ V)
    assert values[0] >= -1e-9 and values[-1] <= norm * (1 + 1e-9)
    best = np.linalg.svd(B, compute_uv=False)[20:] ** 2
    assert np.sum(found) + beyond == pytest.approx(np.sum(B**2))
    lost = np.sum(B**2) - np.sum(V**2)
    assert lost <= 1.02 * np.sum(best) * (1 + 20 / max(shape[1] - 20, 1))


@pytest.mark.parametrize("condition", [1.0, 1e6, 1e14])
def test_an_orthonormal_basis_of_any_columns(condition: float) -> None:
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((60, 12)) @ (
        rng.standard_normal((12, 12)) * np.geomspace(1, 1 / condition, 12)
    )
    Q = orthonormal(Y)
    np.testing.assert_allclose(Q.T @ Q, np.eye(12), atol=1e-10)
    assert np.linalg.norm(Y - Q @ (Q.T @ Y)) <= 1e-9 * np.linalg.norm(Y)


def test_classes_that_arrive_task_by_task() -> None:
    """A tenth of MNIST, five tasks of two digits, fewer directions than columns."""
    tasks, (X, y) = class_incremental(600, n_samples=6000)
    model = conche.ConcheClassifier(n_nodes=8, solver=Memory(rank=300))
    exact = conche.ConcheClassifier(n_nodes=8)
    for X_t, y_t in tasks:
        for one in (model, exact):
            one.partial_fit(X_t, y_t, classes=range(10))
    assert exact.score(X, y) > 0.9
    assert model.score(X, y) > exact.score(X, y) - 0.01


class Heard(LocalNetwork):
    """Notes what every node is asked, and how many numbers it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[dict[str, int]] = [{}, {}]

    def start(self, setup: Setup) -> None:
        super().start(setup)
        ask = self.host.ask

        def heard(question: str | Each, *about: Any) -> list[Any]:
            answers = ask(question, *about)
            for k, answer in enumerate(answers):
                asked = question[k] if isinstance(question, Each) else question
                self.answers[k][asked] = np.size(answer)
            return answers

        self.host.ask = heard  # type: ignore[method-assign]  # listens


@pytest.mark.parametrize(("n", "rank"), [(20, 25), (60, 15)])
def test_a_narrow_block_sends_itself_beside_a_wide_one(n: int, rank: int) -> None:
    """Merged exactly, and by range: directions as if all rows were in one place."""
    stream, network = hard("factors", 100, 2, n, 0.3), Heard()
    groups = [list(range(4)), list(range(4, 100))]
    model = raw(partition=groups, network=network, solver=Memory(rank=rank, ridge=1.0))
    for task in stream.train[: 2 if n < rank else 1]:
        model.partial_fit(task.X, task.y)
    B = np.vstack([task.X for task in stream.train[: 2 if n < rank else 1]])
    V = np.hstack([state.kept["principal"] for state in model.node_states()])
    cut = exact_cut(B @ B.T, rank, 100)
    best = cut.W.T @ B
    if n < rank:
        np.testing.assert_allclose(V.T @ V, best.T @ best, atol=1e-8)
    else:
        assert np.linalg.eigvalsh(B.T @ B - V.T @ V)[0] >= -1e-8
        assert np.sum(V**2) >= 0.99 * np.sum(best**2)
    narrow, wide = network.answers
    assert narrow["shown"] == len(B) * 4 and "shown" not in wide
    assert not {"gram", "sketch", "power", "project", "merge"} & narrow.keys()
    assert "told" not in wide and "merge" in wide
