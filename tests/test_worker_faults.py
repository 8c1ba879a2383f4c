"""Workers of several nodes, and workers that sum in a tree, which are killed or hang; nothing is
lost."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conche
from conche.network import ray_crew
from conche.network.ray import RayNetwork

from .helpers.engine_battery import compare, same_memory, shared, states
from .helpers.files import write
from .test_faults import ROUNDS, Moment, accidents, both, moments

KILLED = moments(
    ("begin", 2, 0),
    ("propose", 3, 1),
    ("propose", 3, 18),
    ("propose", 4, ROUNDS),
    ("end", 4, 0),
    ("after end", 4, 0),
)
MERGED: list[Moment] = [("begin", 2), ("ask", 9), ("ask", 40), ("propose", 50), ("end", 4)]
BLOCKS: dict[str, Any] = dict(solver=conche.Memory(rank=0, discount=0.1), steps="cg")
DIRECTIONS: dict[str, Any] = dict(solver=conche.Memory(rank=20, ridge=1.0), steps="cg")


@pytest.fixture
def tree(network: RayNetwork, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayNetwork]:
    """Five workers of which the driver asks two, each of those two others, and one the fifth."""
    monkeypatch.setattr(ray_crew, "FAN", 2)
    tree = RayNetwork(timeout=20)
    yield tree
    tree.close()


def check(network: RayNetwork, killed: list[Moment], options: dict[str, Any]) -> None:
    before = network.failures
    with accidents(network, signal.SIGKILL, killed) as left, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, there = both(network, n_nodes=5, **options)
    assert left == [] and network.failures == before + len(killed)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10
    assert same_memory(states(here), states(there))


@pytest.mark.parametrize(("killed", "options"), [(KILLED, BLOCKS), (MERGED, DIRECTIONS)])
def test_workers_of_several_nodes_are_restored_exactly(
    several: RayNetwork, killed: list[Moment], options: dict[str, Any]
) -> None:
    check(several, killed, options)


def test_workers_of_several_nodes_that_hang_are_replaced(several: RayNetwork) -> None:
    hung = moments(("begin", 2, 0), ("propose", 3, 18), ("begin", 5, 0))
    before, several.timeout = several.failures, 1.0
    try:
        with accidents(several, signal.SIGSTOP, hung) as left:
            here, there = both(several, n_nodes=5, solver="exact")
    finally:
        several.timeout = 20
    assert left == [] and several.failures >= before + len(hung)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_anywhere_in_a_tree_is_replaced_and_no_bit_changes(
    tree: RayNetwork, how: signal.Signals
) -> None:
    """The one that is struck is in another place of the tree each time."""
    calm = both(tree, n_nodes=5, **BLOCKS)[1].coef_
    struck = moments(*(("propose", t, t + 1) for t in (1, 3, 4)))
    tree.timeout = 20 if how == signal.SIGKILL else 1.0
    with accidents(tree, how, struck) as left:
        here, there = both(tree, n_nodes=5, **BLOCKS)
    assert left == [] and tree.failures >= len(struck)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10
    assert np.array_equal(there.coef_, calm)


def test_a_tree_gives_the_local_result(tree: RayNetwork) -> None:
    assert compare(lambda: tree, shared) == []


def test_the_driver_sends_no_more_where_there_are_more_workers(
    tree: RayNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a round, of five workers, two messages."""
    sent = []
    real = RayNetwork._send

    def send(self: RayNetwork, w: int, method: str, call: tuple[Any, ...], returns: int) -> Any:
        sent.append(method)
        return real(self, w, method, call, returns)

    monkeypatch.setattr(RayNetwork, "_send", send)
    task = conche.gaussian_tasks(1, 40, 10, noise_var=0.1)[0]
    conche.CoCoARegressor(n_nodes=5, n_rounds=7, network=tree).fit(task.X, task.y)
    assert "propose" not in sent and "once" not in sent and sent.count("begin") == 5
    assert [list(ray_crew.below(w, 5)) for w in range(-1, 5)] == [[0, 1], [2, 3], [4], [], [], []]


def test_what_a_node_refuses_names_it_among_several(several: RayNetwork, tmp_path: Path) -> None:
    tasks = conche.gaussian_tasks(3, 40, 10, noise_var=0.1)
    tasks[1].X[3, 5] = np.nan
    write(tmp_path / "s", tasks)
    first, broken, last = conche.FileStream(tmp_path / "s")
    model = conche.CoCoARegressor(n_nodes=5, network=several).partial_fit(first.X, first.y)
    before = model.coef_.copy()
    with pytest.raises(conche.NodeError, match="node 2: .*column 'c5'"):
        model.partial_fit(broken.X, broken.y)
    assert np.array_equal(model.coef_, before)
    model.partial_fit(last.X, last.y)


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        (0, "workers=0 must be a whole number"),
        ("rack1", "workers='rack1' must be a whole number"),
        (6, "6 workers for 5 nodes: at most one a node"),
        (["a", "b"], "workers names those of 2 nodes: there are 5"),
        (["a", 1.5, "b", "c", "d"], "workers: 1.5 is no name or number"),
    ],
)
def test_workers_that_cannot_be_are_refused(workers: Any, said: str) -> None:
    task = conche.gaussian_tasks(1, 40, 10, noise_var=0.1)[0]
    with pytest.raises(conche.ParameterError, match=said):
        conche.CoCoARegressor(n_nodes=5, network=RayNetwork(workers=workers)).fit(task.X, task.y)
