"""Nodes that are killed or hang at any moment, drivers that are killed or interrupted; nothing is
lost."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import conche
from conche.cli import main
from conche.network import Network
from conche.network import ray as engine
from conche.network.ray import RayNetwork

from .helpers.engine_battery import ray_there, same_memory, states
from .helpers.files import write
from .helpers.veiled import Together

Moment = tuple[str, int]  # a method, and how often it has been called then; "after end" is one, too


def strike(network: RayNetwork, k: int, how: int) -> None:
    import ray

    os.kill(ray.get(network.workers[k].pid.remote()), how)


@contextmanager
def accidents(network: RayNetwork, how: int, moments: list[Moment]) -> Iterator[list[Moment]]:
    """A Ray network whose nodes meet with accidents: those that are still to come."""
    left, calls = list(moments), dict[str, int]()

    def happens(name: str) -> None:
        calls[name] = number = calls.get(name, 0) + 1
        if (name, number) in left:
            left.remove((name, number))
            strike(network, number % len(network.workers), how)

    def disturbed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def method(*arguments: Any) -> Any:
            happens(name)
            answer = call(*arguments)
            happens(f"after {name}")
            return answer

        return method

    with pytest.MonkeyPatch.context() as patch:
        for name in ("begin", "factorise", "ask", "total", "largest", "propose", "move", "end"):
            called = "ask" if name in ("total", "largest") else name
            patch.setattr(network, name, disturbed(called, getattr(network, name)))
        yield left


ROUNDS = 20
TASKS = 5


def moments(*where: tuple[str, int, int]) -> list[Moment]:
    """From (method, task, round), counted from 1, to (method, number of its call)."""
    return [(name, (t - 1) * ROUNDS + i if name == "propose" else t) for name, t, i in where]


def both(
    network: Network, n_nodes: int = 3, local: Any = "local", **options: Any
) -> tuple[conche.CoCoARegressor, conche.CoCoARegressor]:
    """The same stream without accidents, here, and with them, there."""
    tasks = conche.gaussian_tasks(TASKS, 60, 48, n_shared=20, noise_var=0.1, correlation=0.7)
    here, there = (
        conche.CoCoARegressor(n_nodes=n_nodes, n_rounds=ROUNDS, network=n, **options)
        for n in (local, network)
    )
    for task in tasks:
        here.partial_fit(task.X, task.y)
        there.partial_fit(task.X, task.y)
    return here, there


def test_nodes_killed_at_every_moment_are_restored_exactly(network: RayNetwork) -> None:
    """Task start, first, middle and last round, two in one task, the task's end, between a task's
    end and the next one's start; rounds beyond those that are kept for a replay."""
    assert engine.REPLAY < ROUNDS
    killed = moments(
        ("begin", 2, 0),
        ("factorise", 2, 0),
        ("propose", 3, 1),
        ("propose", 3, 18),
        ("propose", 4, ROUNDS),
        ("end", 4, 0),
        ("after end", 4, 0),
        ("begin", 5, 0),
        ("after end", 5, 0),
    )
    before = network.failures
    with accidents(network, signal.SIGKILL, killed) as left:
        solver = conche.Memory(rank=0, discount=0.1)  # little past, so that all rounds are needed
        here, there = both(network, solver=solver, steps="cg")
    assert left == [] and len(there.history_) == len(here.history_) > TASKS * engine.REPLAY
    assert network.failures == before + len(killed) - 1  # the last one is not missed yet
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10
    assert same_memory(states(here), states(there))


def test_nodes_of_an_elastic_net_that_are_killed_are_restored_exactly(network: RayNetwork) -> None:
    """What they had offered, they have offered; and what they are to keep, they keep."""
    killed = [("begin", 2), ("ask", 3), ("ask", 30), ("after ask", 61), ("move", 3), ("end", 4)]
    before = network.failures
    with accidents(network, signal.SIGKILL, killed) as left:
        here, there = both(network, solver=conche.ElasticNet(0.001, rank=8))
    assert left == [] and network.failures >= before + len(killed)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10
    assert same_memory(states(here), states(there))


@pytest.mark.parametrize(
    ("rank", "killed"),
    [
        (None, [("begin", 2), ("factorise", 2), ("ask", 3), ("after ask", 3), ("end", 4)]),
        (20, [("begin", 2), ("ask", 9), ("ask", 40), ("propose", 50), ("ask", 70), ("end", 4)]),
    ],
)
def test_memory_is_restored_too(
    network: RayNetwork, rank: int | None, killed: list[Moment]
) -> None:
    """Killed while columns are sent, while directions are merged, and at a task's end."""
    with accidents(network, signal.SIGKILL, killed) as left, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, there = both(network, solver=conche.Memory(rank=rank, ridge=1.0), steps="cg")
    assert left == []
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10
    assert same_memory(states(here), states(there))


def test_nodes_that_hang_at_every_moment_are_replaced(network: RayNetwork) -> None:
    """In plain rounds, whose steps the nodes know."""
    hung = moments(
        ("begin", 2, 0),
        ("propose", 2, 1),
        ("propose", 3, 18),
        ("propose", 4, ROUNDS),
        ("begin", 5, 0),
    )
    before = network.failures
    network.timeout = 1.0
    try:
        with accidents(network, signal.SIGSTOP, hung) as left:
            here, there = both(network, solver="exact")
    finally:
        network.timeout = 20
    assert left == [] and network.failures >= before + len(hung)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10


def test_a_node_that_always_fails_ends_the_run_and_leaves_the_checkpoint(
    network: RayNetwork,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tasks = conche.gaussian_tasks(3, 40, 10, n_shared=6, noise_var=0.1)
    write(tmp_path / "s", tasks)
    begun, sends = list[str](), RayNetwork._send

    def send(self: RayNetwork, k: int, method: str, call: tuple[Any, ...], returns: int) -> Any:
        begun.append(method) if method == "begin" and k == 0 else None
        self.retries = 1  # not three: each takes a new process
        if method == "ask" and k == 0 and len(begun) >= 3:
            strike(self, 0, signal.SIGKILL)  # ray.kill may leave time for one more answer
        return sends(self, k, method, call, returns)

    command = ["conche", "train", str(tmp_path / "s"), "--target", "y", "--nodes", "2"]
    command += ["--network", "ray", "--checkpoint", str(tmp_path / "state")]
    command += ["--out", str(tmp_path / "m")]
    with monkeypatch.context() as patch:
        patch.setattr(RayNetwork, "_send", send)
        patch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as stopped:
            main()
    told = capsys.readouterr().err
    assert stopped.value.code == 2 and "node 0 failed 2 time(s) in one task" in told
    assert len(told.strip().splitlines()) == 1 and not (tmp_path / "m").exists()
    monkeypatch.setattr(sys, "argv", [*command, "--resume"])
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == 0 and "2 of 3 were learnt" in capsys.readouterr().out
    straight = conche.ConcheRegressor(n_nodes=2, fit_intercept=True, scaling="first")
    for task in conche.FileStream(tmp_path / "s"):
        straight.partial_fit(task.X, task.y)
    assert conche.load(tmp_path / "m").coef_ == pytest.approx(straight.coef_, rel=1e-10)


def test_a_model_whose_node_always_fails_stays_as_it_was_and_goes_on(
    network: RayNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = conche.gaussian_tasks(2, 40, 10, n_shared=6, noise_var=0.1)
    here, there = (
        conche.CoCoARegressor(n_nodes=3, n_rounds=3, network=n) for n in ("local", network)
    )
    for model in (here, there):
        model.partial_fit(tasks[0].X, tasks[0].y)
    coef = there.coef_.copy()
    sends = RayNetwork._send

    def send(self: RayNetwork, k: int, method: str, call: tuple[Any, ...], returns: int) -> Any:
        if method == "propose" and k == 0:
            strike(self, 0, signal.SIGKILL)
        return sends(self, k, method, call, returns)

    network.retries = 0
    with monkeypatch.context() as patch:
        patch.setattr(RayNetwork, "_send", send)
        with pytest.raises(conche.NodeError, match="node 0 failed 1 time"):
            there.partial_fit(tasks[1].X, tasks[1].y)
    network.retries = 3
    assert np.array_equal(there.coef_, coef)
    for model in (here, there):
        model.partial_fit(tasks[1].X, tasks[1].y)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10


def test_a_copy_has_nodes_of_its_own_and_both_go_on(network: RayNetwork, tmp_path: Path) -> None:
    """Neither a clone, nor a deep copy, nor a saved model shares the original's actors; one whose
    network was closed starts it again."""
    tasks = conche.gaussian_tasks(3, 40, 10, n_shared=6, noise_var=0.1)
    here = conche.CoCoARegressor(n_nodes=3, n_rounds=2, solver="memory")
    there = conche.CoCoARegressor(n_nodes=3, n_rounds=2, solver="memory", network=network)
    for model in (here, there):
        model.partial_fit(tasks[0].X, tasks[0].y)
    twin, other = copy.deepcopy(there), clone(there)
    conche.save(there, tmp_path / "m")
    conche.save(twin, tmp_path / "twin")  # before it has actors
    other.fit(2 * tasks[1].X, tasks[1].y)
    assert len({id(model.network_) for model in (there, twin, other)}) == 3
    for name in ("m", "twin"):
        assert np.array_equal(conche.load(tmp_path / name).coef_, there.coef_)
    for model in (here, there, twin, loaded := conche.load(tmp_path / "m")):
        model.partial_fit(tasks[2].X, tasks[2].y)
    for model in (there, twin, loaded):
        assert np.max(np.abs(here.coef_ - model.coef_)) <= 1e-10
    alone = clone(other).set_params(network="local").fit(2 * tasks[1].X, tasks[1].y)
    for model, undisturbed in ((twin, here), (other, alone)):
        model.network_.close()
        for one in (model, undisturbed):
            one.partial_fit(tasks[1].X, tasks[1].y)
        assert np.max(np.abs(undisturbed.coef_ - model.coef_)) <= 1e-10


@pytest.mark.parametrize(
    "options",
    [
        dict(timeout="x"),
        dict(timeout=-1),
        dict(retries=-1),
        dict(resources=5),
        dict(keep="here"),
    ],
)
def test_settings_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(conche.ParameterError, match=next(iter(options))):
        RayNetwork(**options)


def test_an_address_is_not_ignored(network: RayNetwork) -> None:
    model = conche.CoCoARegressor(network=RayNetwork("192.0.2.77:6379"))
    task = conche.gaussian_tasks(1, 20, 4)[0]
    conche.CoCoARegressor(n_nodes=3, network=network).partial_fit(task.X, task.y)
    with pytest.raises(conche.ParameterError, match="Ray runs here already"):
        model.partial_fit(task.X, task.y)


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
# Where a process and its descendants listen, which workers it has, where its files are; its end.
STORY = """
{first}
import conche, os, signal, sys
from pathlib import Path
from conche.network.ray import RayNetwork
from conche.nodes import Node, Setup
def family():
    children, found, left = {{}}, [], [os.getpid()]
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = file.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        children.setdefault(int(parent), []).append(int(file.parent.name))
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return found
def target(file):
    try:
        return os.readlink(file)
    except OSError:  # closed in the meantime
        return ""
def listening():
    own = {{target(f) for pid in family() for f in Path(f"/proc/{{pid}}/fd").glob("*")}}
    lines = [l.split() for f in ("tcp", "tcp6") for l in open(f"/proc/net/{{f}}").readlines()[1:]]
    return {{l[1] for l in lines if l[3] == "0A" and f"socket:[{{l[9]}}]" in own}}
ends, end = [], RayNetwork.end
def ended(self, *arguments):
    import ray
    done = end(self, *arguments)
    ends.append(1)
    if len(ends) == {ends}:
        pids = ray.get([w.pid.remote() for w in self.workers])
        assert set(pids) <= set(family())
        said = [{{where.split(":")[0] for where in listening()}},
                pids,
                [ray._private.worker._global_node.get_session_dir_path()]]
        Path("{story}").write_text("\\n".join(" ".join(map(str, line)) for line in said))
        {last}
    return done
RayNetwork.end = ended
from conche.cli import main
main()
"""


@ray_there
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="no /proc/net to look at")
@pytest.mark.parametrize("more", [["--nodes", "5", "--workers", "2"], ["--nodes", "2", "--secure"]])
def test_ray_listens_on_loopback_alone_and_leaves_nothing(tmp_path: Path, more: list[str]) -> None:
    """Neither a driver that is killed nor one that ends leaves processes; the next start removes
    what files a killed one has left. The killed driver's stream is resumed."""
    write(tmp_path / "s", conche.gaussian_tasks(4, 40, 10, n_shared=6, noise_var=0.1))
    options = ["train", tmp_path / "s", "--target", "y", "--network", "ray", *more]
    options += ["--checkpoint", tmp_path / "state", "--out", tmp_path / "m"]

    def run(
        name: str, first: str, ends: int, last: str, *more: str
    ) -> tuple[subprocess.CompletedProcess[str], Path]:
        story = tmp_path / name
        code = STORY.format(first=first, last=last, ends=ends, story=story)
        command = [sys.executable, "-c", code, *map(str, options), *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        addresses, pids, session = story.read_text().splitlines()
        assert addresses and set(addresses.split()) <= LOOPBACK
        processes = [Path("/proc") / pid for pid in pids.split()]
        for _ in range(150):
            if not any(process.exists() for process in processes):
                break
            time.sleep(0.1)
        assert len(processes) == 2 and not any(process.exists() for process in processes)
        assert Path(session).is_relative_to(tempfile.gettempdir())
        return done, Path(session).parent

    done, files = run("killed", "import ray", 3, "os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -signal.SIGKILL and files.exists()
    done, own = run("resumed", "", 2, "", "--resume")
    assert done.returncode == 0 and "2 of 4 were learnt" in done.stdout, done.stderr
    assert not files.exists() and not own.exists()
    secure = "--secure" in more
    straight = conche.ConcheRegressor(int(more[1]), network=Together() if secure else "local")
    for task in conche.FileStream(tmp_path / "s"):
        straight.partial_fit(task.X, task.y)
    apart = np.max(np.abs(conche.load(tmp_path / "m").coef_ - straight.coef_))
    assert apart <= (1e-9 if secure else 1e-10)
