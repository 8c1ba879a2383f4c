"""MPI and Ray: the local network's results, whatever happens to a node on the way."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import conche
from conche.network.base import NodeError

from .engine_battery import compare
from .test_training import write

HERE = Path(__file__).parents[1]
MPIEXEC = Path(sys.executable).with_name("mpiexec")
mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists(),
    reason="mpi4py and an mpiexec beside python are not installed (conche[mpi])",
)
ray_there = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray is not installed (conche[ray])"
)


def mpiexec(n: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(MPIEXEC), "-n", str(n), sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=HERE, timeout=100)


@mpi
def test_mpi_gives_the_local_result():
    done = mpiexec(2, "-m", "tests.engine_battery")
    assert done.returncode == 0 and done.stdout == "all the same\n", done.stdout + done.stderr


@mpi
def test_conche_train_on_mpi(tmp_path):
    write(tmp_path / "s", conche.gaussian_tasks(4, 50, 9, n_shared=6, noise_var=0.1))
    main = ["-c", "from conche.cli import main; main()", "train", tmp_path / "s", "--target", "y"]
    done = mpiexec(3, *main, "--nodes", 3, "--network", "mpi", "--checkpoint", tmp_path / "state",
                   "--out", tmp_path / "m")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("node(s)") == 1 and done.stderr == ""  # one rank speaks
    here = conche.ConcheRegressor(n_nodes=3, fit_intercept=True, scaling="first")
    for task in conche.FileStream(tmp_path / "s"):
        here.partial_fit(task.X, task.y)
    assert conche.load(tmp_path / "m").coef_ == pytest.approx(here.coef_, rel=1e-10)
    again = mpiexec(3, *main, "--nodes", 3, "--network", "mpi", "--checkpoint", tmp_path / "state",
                    "--resume", "--out", tmp_path / "again")  # fmt: skip
    assert again.returncode == 0 and "4 of 4 were learnt" in again.stdout
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@mpi
def test_a_failure_on_one_rank_ends_all_with_its_message(tmp_path):
    tasks = conche.gaussian_tasks(3, 50, 9, n_shared=6, noise_var=0.1)
    tasks[1].X[4, 8] = np.nan  # a column of the last node
    write(tmp_path / "s", tasks)
    main = ["-c", "from conche.cli import main; main()", "train", tmp_path / "s", "--target", "y",
            "--network", "mpi", "--out", tmp_path / "m"]  # fmt: skip
    done = mpiexec(3, *main, "--nodes", 3)
    assert done.returncode != 0 and not (tmp_path / "m").exists()
    lines = [line for line in done.stderr.splitlines() if line.startswith("conche: ")]
    assert len(lines) == 1 and "node 2" in lines[0] and "column 'c8'" in lines[0], done.stderr
    done = mpiexec(2, *main, "--nodes", 3)
    assert done.returncode != 0 and "2 MPI rank(s) for 3 nodes" in done.stderr


@pytest.fixture(scope="module")
def network():
    from conche.network.ray import RayNetwork

    network = RayNetwork(timeout=20)
    yield network
    import ray

    network.close()
    ray.shutdown()


@ray_there
def test_ray_gives_the_local_result(network):
    assert compare(lambda: network) == []


class Disturbed:
    """A Ray network one of whose nodes meets with an accident at a given call."""

    def __init__(self, network, when: str, call: int, how: int):
        self.__dict__.update(network=network, when=when, left=call, how=how)

    def __getattr__(self, name):
        if name == self.when:
            self.__dict__["left"] -= 1
            if self.left == 0:
                worker = self.network.workers[1]
                import ray

                os.kill(ray.get(worker.pid.remote()), self.how)
        return getattr(self.network, name)

    def __setattr__(self, name, value):
        setattr(self.network, name, value)


@ray_there
@pytest.mark.parametrize(
    "options", [dict(solver="exact"), dict(solver="memory", acceleration="cg")]
)
@pytest.mark.parametrize(
    ("when", "call"),
    [("begin", 2), ("prepare", 2), ("propose", 7), ("propose", 9), ("end", 2), ("commit", 1),
     ("begin", 3)],
)  # fmt: skip
def test_a_node_that_is_killed_is_restored_exactly(network, options, when, call):
    tasks = conche.gaussian_tasks(3, 40, 10, n_shared=6, noise_var=0.1)
    here = conche.CoCoARegressor(n_nodes=2, n_rounds=5, **options)
    there = conche.CoCoARegressor(
        n_nodes=2, n_rounds=5, network=Disturbed(network, when, call, signal.SIGKILL), **options
    )
    before = network.failures
    for task in tasks:
        here.partial_fit(task.X, task.y)
        there.partial_fit(task.X, task.y)
    assert network.failures == before + 1
    assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10


@ray_there
def test_a_node_that_hangs_is_replaced_and_one_that_always_fails_ends_the_run(network):
    tasks = conche.gaussian_tasks(2, 40, 10, n_shared=6, noise_var=0.1)
    here = conche.CoCoARegressor(n_nodes=2, n_rounds=3)
    stuck = Disturbed(network, "propose", 5, signal.SIGSTOP)
    there = conche.CoCoARegressor(n_nodes=2, n_rounds=3, network=stuck)
    network.timeout = 6  # long enough for a new actor to start on a busy machine
    try:
        for task in tasks:
            here.partial_fit(task.X, task.y)
            there.partial_fit(task.X, task.y)
        assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10
        coef = there.coef_.copy()
        doomed = type(network)._send

        def send(self, k, method, call, returns):
            if method == "propose" and k == 0:
                import ray

                ray.kill(self.workers[0])
            return doomed(self, k, method, call, returns)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(network), "_send", send)
            with pytest.raises(NodeError, match="node 0 failed 4 times in one task"):
                there.partial_fit(tasks[0].X, tasks[0].y)
        assert np.array_equal(there.coef_, coef)
        there.partial_fit(tasks[0].X, tasks[0].y)  # and the stream goes on
        here.partial_fit(tasks[0].X, tasks[0].y)
        assert np.max(np.abs(here.coef_ - there.coef_)) <= 1e-10
    finally:
        network.timeout = 20


@ray_there
def test_columns_on_disk_are_read_by_the_nodes(network, tmp_path):
    write(tmp_path / "s", conche.gaussian_tasks(2, 40, 10, n_shared=6, noise_var=0.1))
    here, there = (conche.ConcheRegressor(n_nodes=2, network=n) for n in ("local", network))
    stream = conche.FileStream(tmp_path / "s")
    for task in stream:
        here.partial_fit(task.X, task.y)
        there.partial_fit(Unread(task.X), task.y)
    assert there.coef_ == pytest.approx(here.coef_, rel=1e-10)


class Unread(conche.tasks.Columns):
    """Columns that the driver must not read."""

    def __init__(self, inner):
        self.inner, self.shape, self.names = inner, inner.shape, inner.names

    def read(self, columns):
        raise AssertionError("the driver has read columns")

    def source(self):
        return self.inner.source()


@ray_there
def test_nothing_is_left_running():
    """A driver that is killed takes its actors along."""
    code = """
import conche, os, signal, ray
model = conche.CoCoARegressor(n_nodes=2, network="ray")
task = conche.gaussian_tasks(1, 20, 6)[0]
model.partial_fit(task.X, task.y)
print(*ray.get([w.pid.remote() for w in model._nodes.workers]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    pids = [int(p) for p in done.stdout.split()]
    assert len(pids) == 2, done.stderr
    for _ in range(150):
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            break
        time.sleep(0.1)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@ray_there
@pytest.mark.parametrize("first", ["", "import ray"])
def test_ray_on_one_machine_listens_on_loopback_alone(first):
    code = f"""
{first}
import conche
def listening():
    lines = [l.split() for f in ("tcp", "tcp6") for l in open(f"/proc/net/{{f}}").readlines()[1:]]
    return {{l[1].split(":")[0] + l[1].split(":")[1] for l in lines if l[3] == "0A"}}
before = listening()
model = conche.CoCoARegressor(n_nodes=2, network="ray")
task = conche.gaussian_tasks(1, 20, 6)[0]
model.partial_fit(task.X, task.y)
print(*{{where[:-4] for where in listening() - before}})
"""
    if not Path("/proc/net/tcp").exists():
        pytest.skip("no /proc/net to look at")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    found = set(done.stdout.split())
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert found and found <= loopback, done.stdout + done.stderr
