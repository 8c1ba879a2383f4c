"""Nodes without a centre."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import conche
from conche import CoCoARegressor, Damped, Exact, Graph, Memory
from conche.common.arrays import Array
from conche.network.graph import edges, metropolis
from conche.nodes import Proposal
from conche.training import begin, train

from .helpers.files import write
from .helpers.models import rounds_of

X, y = np.random.default_rng(0).standard_normal((20, 4)), np.arange(20.0)
untyped: Any = Graph  # for arguments that mypy would refuse, too


def close_from(distances: Sequence[float], reference: float, accuracy: float = 1e-4) -> int:
    """The first round after which predictions stay within ``accuracy`` of the reference."""
    far = np.flatnonzero(np.array(distances) > accuracy * reference)
    return int(far[-1]) + 2 if len(far) else 1


def distances(graph: Graph, X: Array, y: Array, best: Array, limit: int) -> list[float]:
    """Of the predictions from ``best``, after every round of one task on sixteen nodes."""
    found, inner, v = list[float](), graph.propose_each, np.zeros(len(y))

    def spied(g: Sequence[Array]) -> list[Proposal]:
        nonlocal v
        answers = inner(g)
        v = v + np.sum([p.image for p in answers], axis=0)[:, 0] / 16
        found.append(float(np.linalg.norm(v - best)))
        return answers

    graph.propose_each = spied  # type: ignore[method-assign]  # to listen
    CoCoARegressor(n_nodes=16, network=graph, n_rounds=limit).partial_fit(X, y)
    return found


@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(solver="damped"),
        dict(solver=Memory(rank=0)),
        dict(solver=Exact(local_steps=3)),
        dict(solver=Damped(local_steps=3)),
        dict(solver=Memory(rank=0), missing="mean", scaling="first", fit_intercept=True),
    ],
)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_complete_graph_is_algorithm_1(options: dict[str, Any], loss: str) -> None:
    tasks = conche.gaussian_tasks(3, 40, 21, n_shared=10, noise_var=0.1)
    here, there = (
        conche.CoCoAClassifier(n_nodes=5, n_rounds=7, loss=loss, network=n, **options)
        for n in ("local", Graph("complete"))
    )
    for task in tasks:
        labels = np.where(task.y > 0, 1, -1)
        here.partial_fit(task.X, labels)
        there.partial_fit(task.X, labels)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-12 * np.max(np.abs(here.coef_))
    assert there.history_[-1]["disagreement"] <= 1e-12
    assert here.node_predictions_ is None


@pytest.mark.parametrize("kind", ["ring", "grid", "regular"])
@pytest.mark.parametrize("lost", [0.0, 0.1, 0.5])
def test_every_graph_comes_to_the_same_solution_whatever_is_lost(kind: str, lost: float) -> None:
    task = conche.gaussian_tasks(1, 60, 20, noise_var=0.1)[0]
    whole = CoCoARegressor(n_nodes=10, n_rounds=3000).partial_fit(task.X, task.y)
    model = CoCoARegressor(n_nodes=10, n_rounds=3000, network=Graph(kind, lost=lost))
    model.partial_fit(task.X, task.y)
    assert model.coef_ == pytest.approx(whole.coef_, abs=1e-4)
    views = model.node_predictions_
    assert views is not None and views.shape == (10, 60, 1)
    apart = np.sqrt(np.mean((views[:, :, 0] - model.predict(task.X)) ** 2))
    assert apart <= 1e-4 and model.history_[-1]["disagreement"] <= 1e-4
    own = np.tile(task.X @ whole.coef_, (10, 1))
    assert views[:, :, 0] == pytest.approx(own, abs=1e-4)
    # columns that can fit any target do, though not with the same weights on every graph
    wide = conche.gaussian_tasks(1, 20, 60, noise_var=0.1)[0]
    fits = CoCoARegressor(n_nodes=10, n_rounds=1000, network=Graph(kind, lost=lost))
    assert fits.partial_fit(wide.X, wide.y).predict(wide.X) == pytest.approx(wide.y, abs=1e-6)
    early = CoCoARegressor(n_nodes=10, n_rounds=3, network=Graph(kind, lost=lost))
    early.partial_fit(task.X, task.y)
    assert early.history_[-1]["disagreement"] > 1e-2


@pytest.mark.parametrize("kind", ["ring", "grid"])
@pytest.mark.parametrize("lost", [0.85, 0.95])
def test_nothing_diverges_when_nearly_all_is_lost(kind: str, lost: float) -> None:
    for K in (4, 8):
        task = conche.gaussian_tasks(1, 60, 2 * K, noise_var=0.1)[0]
        model = CoCoARegressor(n_nodes=K, n_rounds=1000, network=Graph(kind, lost=lost))
        losses = rounds_of(model.partial_fit(task.X, task.y), "loss")
        assert max(losses) <= 1.001 * losses[0] and losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("shape", [(40, 160), (400, 64)])
def test_a_ring_of_sixteen_with_a_tenth_of_messages_lost_takes_at_most_ten_times_the_rounds(
    shape: tuple[int, int],
) -> None:
    n_samples, n_features = shape
    task = conche.gaussian_tasks(1, n_samples, n_features, noise_var=0.1)[0]
    best = task.X @ np.linalg.lstsq(task.X, task.y, rcond=None)[0]
    size = float(np.linalg.norm(best))
    whole, ring = (
        close_from(distances(graph, task.X, task.y, best, 3000), size)
        for graph in (Graph("complete"), Graph("ring", lost=0.1))
    )
    assert ring <= 10 * whole, (whole, ring)


def test_lost_messages_are_made_up_for() -> None:
    """Without losses both ways of an exchange agree; with them the mean comes back."""
    rng = np.random.default_rng(0)
    V = rng.standard_normal((6, 5, 1))
    whole, lossy = Graph("ring"), Graph("ring", lost=1e-12)
    for network in (whole, lossy):
        network.edges, network.weights = edges("ring", 6), metropolis(edges("ring", 6), 6)
        network._flows, network._rng = {}, np.random.default_rng(1)
    a = b = V
    for _ in range(9):
        a, b = whole.exchange(a, V), lossy.exchange(b, V)
        assert a == pytest.approx(b, abs=1e-12)
    lossy.lost, lossy._flows, b = 0.6, {}, V
    for _ in range(400):
        b = lossy.exchange(b, V)
    assert b == pytest.approx(np.tile(V.mean(axis=0), (6, 1, 1)), abs=1e-9)


def test_streams_saving_and_bytes(tmp_path: Path) -> None:
    tasks = conche.gaussian_tasks(3, 30, 12, n_shared=8, noise_var=0.1)
    model = CoCoARegressor(n_nodes=4, n_rounds=5, solver="memory", network=Graph("ring", mixing=2))
    for task in tasks[:2]:
        model.partial_fit(task.X, task.y)
    rows = 30
    assert model.history_[-1]["bytes"] == 2 * 4 * 2 * 8 * rows
    conche.save(model, tmp_path / "m")
    again = conche.load(tmp_path / "m", network=Graph("ring", mixing=2))
    for one in (model, again):
        one.partial_fit(tasks[2].X, tasks[2].y)
    assert np.array_equal(model.coef_, again.coef_)


def test_one_graph_serves_models_with_other_numbers_of_nodes_in_turns() -> None:
    tasks = conche.gaussian_tasks(3, 30, 12, n_shared=8, noise_var=0.1)
    shared = Graph("ring", lost=0.2)
    for K, L in ((4, 6), (6, 4)):
        alone = CoCoARegressor(n_nodes=K, n_rounds=5, network=Graph("ring", lost=0.2))
        model, other = (CoCoARegressor(n_nodes=k, n_rounds=5, network=shared) for k in (K, L))
        for task in tasks:
            for one in (alone, model, other):
                one.partial_fit(task.X, task.y)
            if task is tasks[1]:
                shared.close()
        assert np.array_equal(alone.coef_, model.coef_)


def test_single_precision_stays_single() -> None:
    task = conche.gaussian_tasks(1, 30, 12, noise_var=0.1)[0]
    for solver in ("exact", Exact(local_steps=2), "memory"):
        network = Graph("ring", lost=0.2)
        model = CoCoARegressor(n_nodes=4, n_rounds=3, network=network, solver=solver)
        model.partial_fit(task.X.astype(np.float32), task.y.astype(np.float32))
        assert model.coef_.dtype == np.float32


def test_another_graph_is_not_resumed(tmp_path: Path) -> None:
    write(tmp_path / "s", conche.gaussian_tasks(2, 30, 8, n_shared=6, noise_var=0.1))
    stream = conche.FileStream(tmp_path / "s", target="y")
    model = CoCoARegressor(n_nodes=4, network=Graph("ring"))
    train(model, stream, checkpoint=tmp_path)
    same = CoCoARegressor(n_nodes=4, network=Graph("ring"))
    again, run = begin(same, stream, tmp_path, resume=True)
    assert again.n_tasks_seen_ == len(run.tasks) == 2
    assert np.array_equal(again.coef_, model.coef_)
    for other in (Graph("grid"), Graph("ring", lost=0.1), "local"):
        with pytest.raises(ValueError, match="was begun with Graph"):
            begin(CoCoARegressor(n_nodes=4, network=other), stream, tmp_path, resume=True)


def test_edges_and_weights() -> None:
    assert edges("ring", 4) == [(0, 1), (0, 3), (1, 2), (2, 3)]
    assert edges("ring", 2) == [(0, 1)] and edges("ring", 1) == []
    assert len(edges("grid", 12)) == 17 and len(edges("complete", 6)) == 15
    regular = np.array(edges("regular", 16, degree=4))
    assert np.all(np.bincount(regular.ravel()) == 4)
    for kind in ("complete", "ring", "grid", "regular"):
        W = metropolis(edges(kind, 12), 12)
        assert np.array_equal(W, W.T) and W.sum(axis=0) == pytest.approx(1) and W.min() >= 0
        second = np.sort(np.abs(np.linalg.eigvalsh(W)))[-2]
        assert second < 1 - 1e-3
    assert metropolis(edges("complete", 5), 5) == pytest.approx(1 / 5)
    star = SimpleNamespace(nodes=["a", "b", "c"], edges=[("a", "b"), ("c", "a"), ("b", "b")])
    assert edges(star, 3) == [(0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Graph("star"), "kind='star' must be one of"),
        (lambda: Graph([1, 2]), "or a networkx graph"),
        (lambda: Graph(lost=1.0), "lost=1.0 must be a number of at least 0 and below 1"),
        (lambda: untyped(lost="a"), "lost='a' must be a number"),
        (lambda: Graph(mixing=0), "mixing=0 must be a whole number of at least 1"),
        (lambda: untyped(mixing=1.5), "mixing=1.5 must be a whole number"),
        (lambda: Graph(seed=-1), "seed=-1 must be a whole number of at least 0"),
        (lambda: edges(SimpleNamespace(nodes=[1], edges=[(1, 5)]), 1), "between unknown vertices"),
        (
            lambda: CoCoARegressor(network=untyped).fit(X, y),
            "must be 'local', 'mpi', 'ray', a Graph",
        ),
        (lambda: edges("regular", 5, degree=3), "no regular graph of degree 3 on 5 nodes"),
        (lambda: edges(SimpleNamespace(nodes=[1, 2], edges=[]), 2), "does not connect all 2"),
        (lambda: edges(SimpleNamespace(nodes=[1], edges=[]), 2), "has 1 vertices, the network 2"),
        (lambda: CoCoARegressor(network=Graph(), steps="cg").fit(X, y), "has no centre"),
        (lambda: CoCoARegressor(network=Graph(), steps="adaptive").fit(X, y), "has no centre"),
        (lambda: conche.ConcheRegressor(network=Graph()).fit(X, y), "has no centre"),
        (
            lambda: CoCoARegressor(network=Graph(), solver=conche.ElasticNet(1.0)).fit(X, y),
            "not for a Graph",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(conche.ParameterError, match=said):
        make()


def test_networkx_graphs() -> None:
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    graph = networkx.petersen_graph()
    assert len(edges(graph, 10)) == 15
