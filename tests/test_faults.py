"""Ray: nodes that are killed or hang at any moment, drivers that are killed; nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import conche
from conche.network import ray as engine
from conche.network.base import NodeError

from .engine_battery import ray_there
from .test_training import write

pytestmark = ray_there


class Disturbed:
    """A Ray network whose nodes meet with accidents: (method, how often it is called before)."""

    def __init__(self, network, how: int, *moments: tuple[str, int]):
        self.__dict__.update(network=network, how=how, left=list(moments), calls={})

    def __getattr__(self, name):
        call = getattr(self.network, name)
        if name not in ("begin", "prepare", "propose", "end", "commit"):
            return call
        self.calls[name] = number = self.calls.get(name, 0) + 1

        def disturbed(*arguments):
            if (name, number) in self.left:
                self.left.remove((name, number))
                self.strike(number % len(self.network.workers))
            return call(*arguments)

        return disturbed

    def strike(self, k):
        import ray

        os.kill(ray.get(self.network.workers[k].pid.remote()), self.how)

    def __setattr__(self, name, value):
        setattr(self.network, name, value)


ROUNDS = 20
TASKS = 5


def moments(*where: tuple[str, int, int]) -> list[tuple[str, int]]:
    """From (method, task, round), counted from 1, to (method, number of its call)."""
    return [(name, (t - 1) * ROUNDS + i if name == "propose" else t) for name, t, i in where]


def both(network, **options):
    """The same stream without accidents, here, and with them, there."""
    tasks = conche.gaussian_tasks(TASKS, 60, 48, n_shared=20, noise_var=0.1, correlation=0.7)
    here, there = (
        conche.CoCoARegressor(n_nodes=3, n_rounds=ROUNDS, network=n, **options)
        for n in ("local", network)
    )
    for task in tasks:
        here.partial_fit(task.X, task.y)
        there.partial_fit(task.X, task.y)
    return here, there


def test_nodes_killed_at_every_moment_are_restored_exactly(network):
    """Task start, first, middle and last round, two in one task, the task's end, between tasks;
    rounds beyond those that are kept for a replay."""
    assert engine.REPLAY < ROUNDS
    killed = moments(
        ("begin", 2, 0), ("propose", 3, 1), ("propose", 3, 18), ("propose", 4, ROUNDS),
        ("end", 4, 0), ("commit", 4, 0), ("begin", 5, 0),
    )  # fmt: skip
    disturbed = Disturbed(network, signal.SIGKILL, *killed)
    before = network.failures
    here, there = both(disturbed, solver="memory", acceleration="cg")
    assert disturbed.left == [] and len(here.history_) == TASKS * ROUNDS
    assert network.failures == before + len(killed)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10
    for a, b in zip(here._nodes.states(), network.states(), strict=True):
        assert a.memory.keys() == b.memory.keys()
        assert all(np.allclose(a.memory[k], b.memory[k], rtol=1e-9, atol=1e-9) for k in a.memory)


def test_nodes_that_hang_at_every_moment_are_replaced(network):
    """In plain rounds, whose steps the nodes know."""
    hung = moments(
        ("begin", 2, 0), ("propose", 2, 1), ("propose", 3, 18), ("propose", 4, ROUNDS),
        ("begin", 5, 0),
    )  # fmt: skip
    disturbed = Disturbed(network, signal.SIGSTOP, *hung)
    network.timeout, before = 1.0, network.failures
    try:
        here, there = both(disturbed, solver="exact")
    finally:
        network.timeout = 20
    assert disturbed.left == [] and network.failures >= before + len(hung)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10


def test_a_node_that_always_fails_ends_the_run_and_leaves_the_checkpoint(
    network, tmp_path, monkeypatch, capsys
):
    from conche.cli import main

    tasks = conche.gaussian_tasks(3, 40, 10, n_shared=6, noise_var=0.1)
    write(tmp_path / "s", tasks)
    begun, sends = [], engine.RayNetwork._send

    def send(self, k, method, call, returns):
        begun.append(method) if method == "begin" and k == 0 else None
        self.retries = 1  # not three: each takes a new process
        if method == "propose" and k == 0 and len(begun) == 3:
            import ray

            ray.kill(self.workers[0])
        return sends(self, k, method, call, returns)

    command = ["conche", "train", str(tmp_path / "s"), "--target", "y", "--nodes", "2",
               "--network", "ray", "--checkpoint", str(tmp_path / "state"),
               "--out", str(tmp_path / "m")]  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(engine.RayNetwork, "_send", send)
        patch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as stopped:
            main()
    said = capsys.readouterr().err
    assert stopped.value.code == 2 and "node 0 failed 2 time(s) in one task" in said
    assert len(said.strip().splitlines()) == 1 and not (tmp_path / "m").exists()
    monkeypatch.setattr(sys, "argv", [*command, "--resume"])
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == 0 and "2 of 3 were learnt" in capsys.readouterr().out
    straight = conche.ConcheRegressor(n_nodes=2, fit_intercept=True, scaling="first")
    for task in conche.FileStream(tmp_path / "s"):
        straight.partial_fit(task.X, task.y)
    assert conche.load(tmp_path / "m").coef_ == pytest.approx(straight.coef_, rel=1e-10)


def test_a_model_whose_node_always_fails_stays_as_it_was_and_goes_on(network, monkeypatch):
    tasks = conche.gaussian_tasks(2, 40, 10, n_shared=6, noise_var=0.1)
    here, there = (
        conche.CoCoARegressor(n_nodes=3, n_rounds=3, network=n) for n in ("local", network)
    )
    for model in (here, there):
        model.partial_fit(tasks[0].X, tasks[0].y)
    coef = there.coef_.copy()
    sends = engine.RayNetwork._send

    def send(self, k, method, call, returns):
        if method == "propose" and k == 0:
            import ray

            ray.kill(self.workers[0])
        return sends(self, k, method, call, returns)

    network.retries = 0
    with monkeypatch.context() as patch:
        patch.setattr(engine.RayNetwork, "_send", send)
        with pytest.raises(NodeError, match="node 0 failed 1 time"):
            there.partial_fit(tasks[1].X, tasks[1].y)
    network.retries = 3
    assert np.array_equal(there.coef_, coef)
    for model in (here, there):
        model.partial_fit(tasks[1].X, tasks[1].y)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10


def test_a_copy_has_nodes_of_its_own_and_both_go_on(network, tmp_path):
    """Neither a clone, nor a deep copy, nor a saved model shares the original's actors."""
    import copy

    from sklearn.base import clone

    tasks = conche.gaussian_tasks(3, 40, 10, n_shared=6, noise_var=0.1)
    here = conche.CoCoARegressor(n_nodes=3, n_rounds=2, solver="memory")
    there = conche.CoCoARegressor(n_nodes=3, n_rounds=2, solver="memory", network=network)
    for model in (here, there):
        model.partial_fit(tasks[0].X, tasks[0].y)
    twin, other = copy.deepcopy(there), clone(there)
    conche.save(there, tmp_path / "m")
    other.fit(-tasks[1].X, tasks[1].y)
    for model in (here, there, twin, loaded := conche.load(tmp_path / "m")):
        model.partial_fit(tasks[2].X, tasks[2].y)
    for model in (there, twin, loaded):
        assert np.max(np.abs(here.coef_ - model.coef_)) <= 1e-10
    for model in (twin, other):
        model._nodes.close()
        with pytest.raises(RuntimeError, match="closed"):
            model.partial_fit(tasks[2].X, tasks[2].y)


def test_an_interrupted_commit_or_start_leaves_model_and_nodes_together(network, monkeypatch):
    tasks = conche.gaussian_tasks(3, 40, 10, n_shared=6, noise_var=0.1)
    here, there = (
        conche.CoCoARegressor(n_nodes=3, n_rounds=2, network=n) for n in ("local", network)
    )
    for model in (here, there):
        model.partial_fit(tasks[0].X, tasks[0].y)
    start = engine.RayNetwork.start

    def interrupted(self, *arguments):
        patch.undo()
        start(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(engine.RayNetwork, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            there.fit(tasks[1].X, tasks[1].y)
    for model in (here, there):
        model.partial_fit(tasks[1].X, tasks[1].y)
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10


@pytest.mark.parametrize(
    "options", [dict(timeout="x"), dict(timeout=-1), dict(retries=-1), dict(resources=5),
                dict(keep="here")]
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        engine.RayNetwork(**options)


def test_an_address_is_not_ignored(network):
    model = conche.CoCoARegressor(network=engine.RayNetwork("192.0.2.77:6379"))
    task = conche.gaussian_tasks(1, 20, 4)[0]
    conche.CoCoARegressor(n_nodes=3, network=network).partial_fit(task.X, task.y)
    with pytest.raises(ValueError, match="Ray runs here already"):
        model.partial_fit(task.X, task.y)


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
# Where a process listens, which processes it has, where its files are, and how it ends.
STORY = """
{first}
import conche, os, signal, sys
from pathlib import Path
from conche.network.ray import RayNetwork
def listening():
    lines = [l.split() for f in ("tcp", "tcp6") for l in open(f"/proc/net/{{f}}").readlines()[1:]]
    return {{l[1] for l in lines if l[3] == "0A"}}
before, commits, commit = listening(), [], RayNetwork.commit
def committed(self):
    import ray
    commit(self)
    commits.append(1)
    if len(commits) == {commits}:
        said = [{{where.split(":")[0] for where in listening() - before}},
                ray.get([w.pid.remote() for w in self.workers]),
                [ray._private.worker._global_node.get_session_dir_path()]]
        Path("{story}").write_text("\\n".join(" ".join(map(str, line)) for line in said))
        {last}
RayNetwork.commit = committed
from conche.cli import main
main()
"""


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="no /proc/net to look at")
def test_ray_listens_on_loopback_alone_and_leaves_nothing(tmp_path):
    """Neither a driver that is killed nor one that ends leaves processes; the next start removes
    what files a killed one has left. The killed driver's stream is resumed."""
    write(tmp_path / "s", conche.gaussian_tasks(4, 40, 10, n_shared=6, noise_var=0.1))
    options = ["train", tmp_path / "s", "--target", "y", "--nodes", "2", "--network", "ray",
               "--checkpoint", tmp_path / "state", "--out", tmp_path / "m"]  # fmt: skip

    def run(name, first, commits, last, *more):
        story = tmp_path / name
        code = STORY.format(first=first, last=last, commits=commits, story=story)
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
    straight = conche.ConcheRegressor(n_nodes=2, fit_intercept=True, scaling="first")
    for task in conche.FileStream(tmp_path / "s"):
        straight.partial_fit(task.X, task.y)
    assert conche.load(tmp_path / "m").coef_ == pytest.approx(straight.coef_, rel=1e-10)
