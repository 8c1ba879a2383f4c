"""Interrupts at any moment: a model is what it was, or what it was to become, and goes on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conche
from conche.network import Graph, LocalNetwork, Network
from conche.network.ray import RayNetwork
from conche.nodes import Node, Setup

from .helpers.engine_battery import same_memory, states


def test_interrupts_at_random_moments_leave_the_old_state_or_the_new() -> None:
    """In a process of its own: an interrupt inside a coverage tool's lock would never let it go."""
    command = [sys.executable, "-m", "tests.helpers.interrupts", "30", "120"]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=300)
    assert done.returncode == 0 and "nothing was lost" in done.stdout, done.stderr


@pytest.mark.parametrize("make", [LocalNetwork, lambda: Graph("ring", lost=0.1)])
@pytest.mark.parametrize("K", [4, 6])
def test_a_start_that_was_interrupted_is_made_again(
    make: Callable[[], Network], K: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models on four and on K nodes take turns on one network; an interrupt comes when some of the
    nodes have been made."""
    task, following = conche.gaussian_tasks(2, 30, 12, n_shared=8, noise_var=0.1)
    shared = make()
    alone, model = (
        conche.CoCoARegressor(n_nodes=4, n_rounds=3, scaling="first", network=n)
        for n in (make(), shared)
    )
    other = conche.CoCoARegressor(n_nodes=K, solver="memory", network=shared)
    for one in (alone, model, other):
        one.partial_fit(task.X, task.y)
    nodes = Setup.node

    def node(self: Setup, k: int) -> Node:
        if k == 2:
            raise KeyboardInterrupt
        return nodes(self, k)

    with monkeypatch.context() as patch:
        patch.setattr(Setup, "node", node)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(following.X, following.y)
    for one in (alone, model):
        one.partial_fit(following.X, following.y)
    assert np.array_equal(alone.coef_, model.coef_)


@pytest.mark.parametrize("method", ["start", "begin", "end"])
def test_an_interrupt_leaves_model_and_nodes_together(
    network: RayNetwork, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    tasks = conche.gaussian_tasks(3, 40, 10, n_shared=6, noise_var=0.1)
    here, there = (
        conche.CoCoARegressor(n_nodes=3, n_rounds=2, network=n) for n in ("local", network)
    )
    for model in (here, there):
        model.partial_fit(tasks[0].X, tasks[0].y)
    state, call = there.state_, getattr(RayNetwork, method)

    def interrupted(self: RayNetwork, *arguments: Any) -> None:
        patch.undo()
        call(self, *arguments)
        raise KeyboardInterrupt

    for learn in (there.fit, there.partial_fit):
        if method == "start" and learn == there.partial_fit:
            continue  # a stream that goes on has been started
        with monkeypatch.context() as patch:
            patch.setattr(RayNetwork, method, interrupted)
            with pytest.raises(KeyboardInterrupt):
                learn(tasks[1].X, tasks[1].y)
        assert there.state_ is state
    for model in (here, there):
        model.partial_fit(tasks[1].X, tasks[1].y)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10
    assert same_memory(states(here), states(there))


def test_an_interrupted_fit_on_another_network_leaves_the_stream_on_its_own(
    network: RayNetwork, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tasks = conche.gaussian_tasks(2, 40, 10, n_shared=6, noise_var=0.1)
    here, there = (conche.CoCoARegressor(n_nodes=3, network=n) for n in ("local", network))
    for model in (here, there):
        model.partial_fit(tasks[0].X, tasks[0].y)

    def stop(self: LocalNetwork, *arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LocalNetwork, "end", stop)
        with pytest.raises(KeyboardInterrupt):
            there.set_params(network="local").fit(tasks[1].X, tasks[1].y)
    conche.save(there, tmp_path / "m")
    assert np.max(np.abs(here.coef_ - conche.load(tmp_path / "m").coef_)) <= 1e-10
    there.set_params(network=network)
    for model in (here, there):
        model.partial_fit(tasks[1].X, tasks[1].y)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10
