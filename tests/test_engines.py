"""MPI and Ray: the local network's results, and no more bytes than it takes."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import conche
from conche.common.arrays import Array
from conche.network.ray import RayNetwork

from .helpers import namespaces
from .helpers.engine_battery import compare, in_turns, ray_there, shared
from .helpers.files import write

HERE = Path(__file__).parents[1]
MPIEXEC = Path(sys.executable).with_name("mpiexec")
mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists(),
    reason="mpi4py and an mpiexec beside python are not installed (conche[mpi])",
)


TRAIN = ("-m", "conche", "train")


def mpiexec(n: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(MPIEXEC), "-n", str(n), sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=HERE, timeout=100)


@mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_mpi_gives_the_local_result(ranks: int) -> None:
    done = mpiexec(ranks, "-m", "tests.helpers.engine_battery")
    assert done.returncode == 0 and done.stdout == "all the same\n", done.stdout + done.stderr


@mpi
def test_conche_train_on_mpi(tmp_path: Path) -> None:
    write(tmp_path / "s", conche.gaussian_tasks(4, 50, 9, n_shared=6, noise_var=0.1))
    train = [*TRAIN, tmp_path / "s", "--target", "y", "--nodes", 2, "--network", "mpi"]
    train += ["--checkpoint", tmp_path / "state"]
    done = mpiexec(2, *train, "--out", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" nodes of ") == 1 and done.stderr == ""  # one rank speaks
    here = conche.ConcheRegressor(n_nodes=2, fit_intercept=True, scaling="first")
    for task in conche.FileStream(tmp_path / "s"):
        here.partial_fit(task.X, task.y)
    assert conche.load(tmp_path / "m").coef_ == pytest.approx(here.coef_, rel=1e-10)
    again = mpiexec(2, *train, "--resume", "--out", tmp_path / "again")
    assert again.returncode == 0 and "4 of 4 were learnt" in again.stdout
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@mpi
def test_a_failure_on_one_rank_ends_all_with_its_message(tmp_path: Path) -> None:
    tasks = conche.gaussian_tasks(3, 50, 9, n_shared=6, noise_var=0.1)
    tasks[1].X[4, 8] = np.nan  # a column of the last node
    write(tmp_path / "s", tasks)
    train = [*TRAIN, tmp_path / "s", "--target", "y", "--network", "mpi", "--out", tmp_path / "m"]
    done = mpiexec(2, *train, "--nodes", 2)
    assert done.returncode != 0 and not (tmp_path / "m").exists()
    lines = [line for line in done.stderr.splitlines() if line.startswith("conche: ")]
    assert len(lines) == 1 and "node 1" in lines[0] and "column 'c8'" in lines[0], done.stderr
    done = mpiexec(2, *train, "--nodes", 1)
    assert done.returncode != 0 and "2 MPI ranks for 1 node(s)" in done.stderr


STOPS = """
import os, signal, sys, time
from conche.network.mpi import MPINetwork
from mpi4py import MPI

real, ends = MPINetwork.end, 0
def end(self, curvature=None):
    global ends
    ends += 1
    if ends == 3 and MPI.COMM_WORLD.rank == 1:
        {how}
    return real(self, curvature)
MPINetwork.end = end
from conche.cli.run import run
run(sys.argv[1:])
"""


@mpi
@pytest.mark.parametrize(
    ("how", "said", "more"),
    [
        ("os.kill(os.getpid(), signal.SIGSTOP)", "rank 1 does not answer after 2 s", []),
        ("os.kill(os.getpid(), signal.SIGSTOP)", "rank 1 does not answer after 2 s", ["--secure"]),
        ("time.sleep(100)", "rank 1 is still at work after 2 s", []),
    ],
)
def test_a_rank_that_stops_is_named_and_the_stream_can_go_on(
    how: str, said: str, more: list[str], tmp_path: Path
) -> None:
    write(tmp_path / "s", conche.gaussian_tasks(4, 50, 9, n_shared=6, noise_var=0.1))
    train = ["train", tmp_path / "s", "--target", "y", "--network", "mpi", "--nodes", 5, *more]
    train += ["--checkpoint", tmp_path / "state", "--out", tmp_path / "m", "--timeout"]
    done = mpiexec(3, "-c", STOPS.format(how=how), *train, 2)
    lines = [line for line in done.stderr.splitlines() if line.startswith("conche: ")]
    assert done.returncode != 0 and len(lines) == 1 and said in lines[0], done.stderr
    again = mpiexec(3, "-m", "conche", *train, 60, "--resume")
    assert again.returncode == 0 and "2 of 4 were learnt" in again.stdout, again.stderr


@mpi
def test_a_script_that_fails_on_one_rank_ends_on_all(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("""
import conche
from mpi4py import MPI
task = conche.gaussian_tasks(1, 50, 8)[0]
if MPI.COMM_WORLD.rank == 1:
    task.X[3, 2] = float("nan")
conche.ConcheRegressor(n_nodes=2, network="mpi").partial_fit(task.X, task.y)
""")
    done = mpiexec(2, script)
    assert done.returncode != 0 and "NaN. (first at row 3, column 2)" in done.stderr


@mpi
def test_ranks_with_different_tasks_are_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("""
import conche
from mpi4py import MPI
task = conche.gaussian_tasks(1, 50 + MPI.COMM_WORLD.rank, 8)[0]
conche.ConcheRegressor(n_nodes=2, network="mpi").partial_fit(task.X, task.y)
""")
    done = mpiexec(2, script)
    assert done.returncode != 0 and "different shapes: 50 x 8, 51 x 8" in done.stderr


def test_ray_gives_the_local_result(network: RayNetwork) -> None:
    assert compare(lambda: network) == []


def test_ray_workers_of_several_nodes_give_the_local_result(several: RayNetwork) -> None:
    """Five nodes on two workers, in no order."""
    assert compare(lambda: several, shared) == []
    assert len(several.workers) == 2


def test_models_share_a_ray_network_in_turns(network: RayNetwork) -> None:
    assert in_turns(network) == []


def test_columns_on_disk_are_read_by_the_nodes(network: RayNetwork, tmp_path: Path) -> None:
    write(tmp_path / "s", conche.gaussian_tasks(2, 40, 10, n_shared=6, noise_var=0.1))
    here = conche.ConcheRegressor(n_nodes=2)
    there = conche.ConcheRegressor(n_nodes=2, network=network)
    for task in conche.FileStream(tmp_path / "s"):
        here.partial_fit(task.X, task.y)
        there.partial_fit(Unread(task.X), task.y)
    assert there.coef_ == pytest.approx(here.coef_, rel=1e-10)


class Unread(conche.tasks.Columns):
    """Columns that the driver must not read."""

    def __init__(self, inner: conche.tasks.Columns):
        self.inner, self.names, self.dtype = inner, inner.names, inner.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    def select(self, which: slice | Array) -> conche.tasks.Columns:
        return Unread(self.inner.select(which))

    def read(self) -> Array:
        raise AssertionError("the driver has read columns")

    def sendable(self) -> conche.tasks.Columns | None:
        return self.inner.sendable()


class Counted:
    """A communicator that counts the bytes this rank gives away in sums."""

    def __init__(self, comm: Any):
        self.comm, self.sums = comm, list[int]()

    def Allreduce(self, own: Array, total: Array, **options: Any) -> None:
        self.sums.append(own.nbytes)
        self.comm.Allreduce(own, total, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.comm, name)


def count_on_a_rank() -> None:
    """Run by every rank: what a round gives away is one vector, and history_ says so."""
    from mpi4py import MPI

    from conche.network.mpi import MPINetwork

    task = conche.gaussian_tasks(1, 1000, 8, noise_var=0.1)[0]
    sums = []
    for rounds in (2, 5):
        comm = Counted(MPI.COMM_WORLD)
        model = conche.CoCoARegressor(n_nodes=2, n_rounds=rounds, network=MPINetwork(comm))
        model.partial_fit(task.X, task.y)
        sums.append(sum(comm.sums))
    a_round = (sums[1] - sums[0]) / 3
    assert a_round == 8 * 1000, a_round
    assert {r["bytes"] for r in model.history_} == {2 * 2 * a_round}
    small = sums[0] - 3 * a_round  # beside the rounds: A w at the task's start, and a few words
    assert 0 <= small <= 100, small


@mpi
def test_an_mpi_round_is_one_vector_a_rank() -> None:
    done = mpiexec(2, "-c", "from tests.test_engines import count_on_a_rank as c; c()")
    assert done.returncode == 0, done.stderr


def on_a_device_on_a_rank() -> None:
    """Run by every rank: nodes that work on a device of their own give what local ones do."""
    from conche.common import device as devices

    from .helpers.devices import EXTRA

    devices.DEVICES.update(EXTRA)
    tasks = conche.gaussian_tasks(3, 30, 12, n_shared=8, noise_var=0.1)
    for solver in ("exact", "memory", conche.Memory(rank=6)):
        common: Any = {"n_nodes": 2, "solver": solver, "tol": 1e-12, "n_rounds": 100}
        there = conche.ConcheRegressor(**common, network="mpi", device="strict")
        here = conche.ConcheRegressor(**common, network="mpi")
        for task in tasks:
            there.partial_fit(task.X, task.y)
            here.partial_fit(task.X, task.y)
        assert there.state_.setup.device == "strict"
        np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-5, atol=1e-6)
        states = zip(there.node_states(), here.node_states(), strict=True)
        for own, other in ((a.to_arrays(), b.to_arrays()) for a, b in states):
            assert own.keys() == other.keys()
            assert all(type(array) is np.ndarray for array in own.values())


@mpi
def test_mpi_nodes_on_a_device() -> None:
    script = (
        "import warnings; warnings.simplefilter('ignore');"
        "from tests.test_engines import on_a_device_on_a_rank as c; c()"
    )
    done = mpiexec(2, "-c", script)
    assert done.returncode == 0, done.stderr


def test_ray_without_a_gpu_says_so(network: RayNetwork) -> None:
    task = conche.gaussian_tasks(1, 30, 8)[0]
    model = conche.CoCoARegressor(2, network=network, device="cuda")
    with pytest.raises(conche.DeviceError, match="Ray knows of no GPU"):
        model.fit(task.X, task.y)
    model.set_params(device=None).fit(task.X, task.y)


@pytest.mark.parametrize("steps", ["safe", "cg"])
def test_a_ray_round_is_one_vector_each_way_a_node(
    network: RayNetwork,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    steps: Literal["safe", "cg"],
) -> None:
    """What is serialised for the nodes, and what comes back, against what history_ counts; the
    columns are on disk, and nothing of their size goes either way."""
    import ray

    n, rounds, K = 5000, 4, 2
    write(tmp_path / "s", conche.gaussian_tasks(1, n, 40, noise_var=0.1))
    down: list[tuple[str, list[int]]] = []
    up: list[tuple[str, list[int]]] = []

    def size(thing: object) -> int:
        pickled = ray.cloudpickle.dumps(thing, protocol=5)  # type: ignore[no-untyped-call]  # Ray's
        return len(pickled)

    every = type(network)._all

    def spied(
        self: RayNetwork,
        method: str,
        calls: Sequence[tuple[Any, ...]],
        returns: int = 1,
        wait: float | None = None,
    ) -> list[Any]:
        answers = every(self, method, calls, returns, wait)
        down.append((method, [size(call) for call in calls]))
        up.append((method, [size(a[0] if returns > 1 else a) for a in answers]))
        return answers

    monkeypatch.setattr(type(network), "_all", spied)
    task = next(iter(conche.FileStream(tmp_path / "s")))
    model = conche.CoCoARegressor(n_nodes=K, n_rounds=rounds, network=network, steps=steps)
    model.partial_fit(task.X, task.y)
    words = 4096  # of envelope: names of classes, shapes, references
    sent = [s for method, sizes in down for s in sizes if method == "propose"]
    back = [s for method, sizes in up for s in sizes if method == "propose"]
    assert len(sent) == len(back) == K * rounds
    assert all(0 <= s - 8 * n <= words for s in [*sent, *back])
    scalars = 0 if steps == "safe" else 2 * 8  # step and momentum
    assert {r["bytes"] for r in model.history_} == {K * (2 * 8 * n + scalars)}
    for direction, allowed in ((down, words), (up, 8 * n + words)):
        others = [(m, s) for m, sizes in direction for s in sizes if m != "propose"]
        assert all(s <= allowed for _, s in others), others


@ray_there
def test_two_machines_in_namespaces() -> None:
    """A Ray head and a worker with networks of their own: the whole battery, the bytes on the wire
    between them, and a machine that is lost."""
    if reason := namespaces.missing():
        pytest.skip(f"network namespaces cannot be made here: {reason}")
    with namespaces.cluster() as cluster:
        done = cluster.drive("-m", "tests.helpers.two_machines", cluster.worker_raylet())
    said = done.stdout + done.stderr  # where Ray, too, has its say
    assert done.returncode == 0 and "all the same" in done.stdout, said
