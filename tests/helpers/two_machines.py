"""What the driver does on the first of two machines; run in a namespace by the engines' tests."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import conche
from conche.common.arrays import Array
from conche.network.ray import RayNetwork
from conche.nodes import Proposal

from .engine_battery import compare, in_turns
from .namespaces import CABLE, RACKS, WORKER

ONE_EACH = {"num_cpus": 0, "resources": {"site": 1}}  # a node on each machine


def machine(pid: int | str) -> Path:
    """The network that a process is in."""
    return Path(f"/proc/{pid}/ns/net").readlink()


def battery() -> list[str]:
    network = RayNetwork(resources=ONE_EACH, timeout=60)
    wrong = compare(lambda: network) + in_turns(network)
    pids = ray.get([worker.pid.remote() for worker in network.workers])
    if len({machine(pid) for pid in pids}) != 2:
        wrong.append("both nodes were on one machine")
    wrong += wire(network)
    network.close()
    return wrong


def wire(network: RayNetwork) -> list[str]:
    """Bytes that cross the cable, a round: a vector each way, for the one node beyond it."""

    def crossed() -> list[int]:
        there = Path(f"/sys/class/net/{CABLE}/statistics")
        return [int((there / f"{way}_bytes").read_text()) for way in ("tx", "rx")]

    n, rng = 100_000, np.random.default_rng(0)
    X, y = rng.standard_normal((n, 6)), rng.standard_normal(n)
    spent, counted = [], []
    for rounds in (2, 22):
        model = conche.CoCoARegressor(n_nodes=2, n_rounds=rounds, network=network)
        before = crossed()
        model.partial_fit(X, y)
        time.sleep(0.5)  # what is still on its way
        spent.append(np.subtract(crossed(), before))
        counted.append(sum(r["bytes"] for r in model.history_))
    ours = (counted[1] - counted[0]) / 20 / 4  # of two nodes and two ways, one
    ratios = (spent[1] - spent[0]) / 20 / ours
    if ours != 8 * n or not all(0.99 <= ratio <= 1.05 for ratio in ratios):
        return [f"a round is {ours} bytes by history_, {ratios} times that on the wire"]
    return []


def placed() -> list[str]:
    """Nodes on the machines that their workers' names mean, with secure sums and without."""
    first, second = RACKS
    task = conche.gaussian_tasks(1, 60, 15, noise_var=0.1)[0]
    here = conche.CoCoARegressor(5, n_rounds=3).fit(task.X, task.y)
    wrong = []
    for secure in (False, True):
        names = [second, first, second, second, first]
        network = RayNetwork(workers=names, timeout=60, secure=secure)
        there = conche.CoCoARegressor(5, n_rounds=3, network=network).fit(task.X, task.y)
        pids = ray.get([worker.pid.remote() for worker in network.workers])
        near = [machine(pid) == machine("self") for pid in pids]
        if near != [False, True] or network.placement.nodes != ((0, 2, 3), (1, 4)):
            wrong.append(f"workers are not where they were to be: {network.placement}, {near}")
        if not np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10:
            wrong.append("workers with names: coefficients differ")
        network.close()
    try:
        conche.CoCoARegressor(2, network=RayNetwork(workers=["rack9", first])).fit(task.X, task.y)
        wrong.append("a worker on no machine was not refused")
    except conche.ParameterError as error:
        if "'rack9'" not in str(error):
            wrong.append(str(error))
    return wrong


def lost_machine(raylet: int) -> list[str]:
    """The worker's machine goes in the middle of a task, with several nodes a worker and with
    secure sums; states are kept by the driver."""
    options: dict[str, Any] = dict(n_nodes=5, n_rounds=4, solver=conche.Memory(rank=0), steps="cg")
    machines: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]  # Ray's own
    beyond = next(m["NodeID"] for m in machines if m["NodeManagerAddress"] == WORKER)
    place = NodeAffinitySchedulingStrategy(beyond, soft=False)
    there_alone = {"num_cpus": 0, "scheduling_strategy": place}
    network, hidden = (
        RayNetwork(resources=there_alone, keep="driver", workers=2, secure=secure)
        for secure in (False, True)
    )
    here, there, other = (
        conche.CoCoARegressor(network=n, **options) for n in ("local", network, hidden)
    )
    propose, calls = network.propose, list[int]()

    def interrupted(g: Array) -> Proposal:
        calls.append(1)
        if len(calls) == 6:
            pids = ray.get([worker.pid.remote() for worker in network.workers])
            gone = [Path(f"/proc/{pid}") for pid in pids if machine(pid) != machine("self")]
            assert gone, "no node was on the other machine"
            network.resources = hidden.resources = {"num_cpus": 0}  # the new ones: anywhere
            os.kill(raylet, signal.SIGKILL)
            while any(process.exists() for process in gone):  # its workers notice in a moment
                time.sleep(0.05)
        return propose(g)

    network.propose = interrupted  # type: ignore[method-assign]  # an accident
    # answers beyond 100 kB stay on the machine that gave them
    for task in conche.gaussian_tasks(2, 20_000, 30, n_shared=20, noise_var=0.1):
        here.partial_fit(task.X, task.y)
        there.partial_fit(task.X, task.y)
        other.partial_fit(task.X, task.y)
    wrong = []
    for own, model in ((network, there), (hidden, other)):
        apart = np.max(np.abs(here.coef_ - model.coef_))
        if own.failures == 0 or not apart <= 1e-10:
            wrong.append(f"a machine was lost: {own.failures} replaced, {apart:.1e} apart")
    return wrong


if __name__ == "__main__":
    found = battery() + placed() + lost_machine(int(sys.argv[1]))
    print("\n".join(found) or "all the same")
    sys.exit(1 if found else 0)
