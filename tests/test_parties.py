"""Nodes with files of their own on MPI and Ray: one table's result, and what stays where it is."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conche
from conche.common.arrays import Array

from .helpers import namespaces
from .helpers.engine_battery import ray_there
from .helpers.parties import HEAD, NODES, describe, edit, kept_at_home, small, write_beijing
from .test_engines import MPIEXEC, mpi

HERE = Path(__file__).parents[1]
MONTHS = 5


@pytest.fixture(scope="module")
def air(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Array]:
    """Twelve stations' folders, and the coefficients of the one table."""
    root = tmp_path_factory.mktemp("air")
    stations = write_beijing(root, MONTHS)
    describe(root, stations)
    here = conche.ConcheRegressor(partition=[[f"{s}/*"] for s in stations], missing="mean")
    for task in conche.FileStream(root / "table", missing="keep"):
        here.partial_fit(task.X, task.y)
    return root, here.coef_


def far(coef: Array, other: Array) -> float:
    return float(np.max(np.abs(coef - other)) / np.max(np.abs(coef)))


@mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_twelve_stations_on_ranks(air: tuple[Path, Array], tmp_path: Path, ranks: int) -> None:
    root, coef = air
    train = ["-m", "conche", "train", root / "stream.toml", "--missing", "mean", "--network", "mpi"]
    command = [MPIEXEC, "-n", ranks, sys.executable, *train, "--out", tmp_path / "m"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and "12 nodes of 11 columns" in done.stdout, done.stderr
    assert far(coef, conche.load(tmp_path / "m").coef_) <= 1e-10


@pytest.mark.parametrize("workers", [1, 3, 12])
def test_twelve_stations_on_workers(air: tuple[Path, Array], network: Any, workers: int) -> None:
    root, coef = air
    wire = type(network)(timeout=60, workers=workers)
    stream = conche.NodeStream(root / "stream.toml", wire, missing="keep")
    model = conche.ConcheRegressor(
        partition=stream.partition, missing="mean", network=stream.network
    )
    for task in stream:
        model.partial_fit(task.X, task.y)
    assert far(coef, model.coef_) <= 1e-10
    assert len(wire.workers) == workers
    wire.close()


@mpi
def test_a_bad_file_on_one_rank_is_one_line(tmp_path: Path) -> None:
    small(tmp_path)
    (tmp_path / "south" / "may.csv").write_text("day,hour,c,d,e\nd0,1,x,2,3\n")
    train = ["-m", "conche", "train", tmp_path / "stream.toml", "--network", "mpi"]
    command = [MPIEXEC, "-n", 2, sys.executable, *train, "--out", tmp_path / "m"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=100)
    lines = [line for line in done.stderr.splitlines() if line.startswith("conche: ")]
    assert done.returncode != 0 and len(lines) == 1, done.stderr
    assert re.search(r"node 'south': \S*south/may.csv: 29 of the 30 rows are missing", lines[0])


@mpi
def test_a_node_without_a_worker_lives_on_a_rank_that_is_there(tmp_path: Path) -> None:
    small(tmp_path)
    shutil.copytree(tmp_path / "north", tmp_path / "middle")
    text = (tmp_path / "stream.toml").read_text()
    text = text.replace('"north"', '"north"\nworker = "b"\n[nodes.middle]\nfiles = "middle"')
    (tmp_path / "stream.toml").write_text(text.replace('"south"', '"south"\nworker = "a"'))
    train = ["-m", "conche", "train", tmp_path / "stream.toml", "--network", "mpi"]
    for ranks in (1, 2, 3):
        command = [MPIEXEC, "-n", ranks, sys.executable, *train, "--out", tmp_path / "m"]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=100)
        if ranks == 1:
            assert "1 MPI rank(s) for 2 workers: b, a" in done.stderr
        else:
            assert done.returncode == 0 and "3 nodes of 2 to 3 columns" in done.stdout, done.stderr


@ray_there
def test_several_workers_that_fail_at_once_are_one_line(tmp_path: Path) -> None:
    small(tmp_path)
    for node in NODES:
        edit(tmp_path / node / "mar.csv", lambda rows: rows[3].__setitem__(3, "x"))
    train = ["train", str(tmp_path / "stream.toml"), "--network", "ray", "--out", "m"]
    command = [sys.executable, "-m", "conche", *train]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=100)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "node 'north'" in done.stderr and "1 task learnt" in done.stderr


@ray_there
def test_a_driver_that_is_told_to_end_saves_what_it_has(tmp_path: Path) -> None:
    """Ray would take that signal for itself."""
    small(tmp_path)
    slow = "import sys, time; from conche import cli, training; real = training.learn_task\n"
    slow += "training.learn_task = lambda *a: (real(*a), time.sleep(30 * (a[1].name == 'mar')))\n"
    slow += "cli.main()"
    train = ["train", str(tmp_path / "stream.toml"), "--network", "ray", "--out", "m"]
    with subprocess.Popen(
        [sys.executable, "-c", slow, *train],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        assert any(line.startswith("jan ") for line in process.stdout)
        time.sleep(1.0)
        process.terminate()
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 143, said
    assert re.match(r"conche: terminated: 1 task learnt, up to 'jan': saved to m.partial", said)
    assert conche.load(tmp_path / "m.partial").n_tasks_seen_ == 1  # though it knew two


@mpi
def test_every_rank_keeps_its_own_weights(tmp_path: Path) -> None:
    """Ranks have weights in files of their own, and prediction sums what they answer."""
    small(tmp_path)
    plain = conche.NodeStream(tmp_path / "stream.toml")
    solver = conche.Memory(ridge=2.0)
    model = conche.ConcheRegressor(partition=plain.partition, solver=solver, scaling="first")
    for task in plain:
        model.partial_fit(task.X, task.y)
    describe(tmp_path, NODES, 'keep_weights = "nodes"\nhome = "homes"')
    said = ""
    for line in (
        "train stream.toml --ridge 2 --scaling first --out m",
        "predict m stream.toml --tasks jan",
    ):
        command = [str(MPIEXEC), "-n", "2", sys.executable, "-m", "conche", *line.split()]
        command += ["--network", "mpi"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=100)
        assert done.returncode == 0, done.stderr
        said = done.stdout
    guess = [float(row.split(",")[-1]) for row in said.splitlines()[1:]]
    assert model.predict(plain.task(0).X) == pytest.approx(np.array(guess), rel=1e-9)


def held(pid: int, values: dict[str, float]) -> list[str]:
    """Those of the numbers that are anywhere in a process's memory."""
    wanted = {name: np.float64(value).tobytes() for name, value in values.items()}
    found: set[str] = set()
    for region in resident(pid):
        found |= {name for name, pattern in wanted.items() if pattern in region}
    return sorted(found)


def resident(pid: int) -> Iterator[bytes]:
    """What a process has written: runs of pages that are there, of regions it may write to."""
    size = os.sysconf("SC_PAGE_SIZE")
    with (
        open(f"/proc/{pid}/maps") as maps,
        open(f"/proc/{pid}/mem", "rb", 0) as memory,
        open(f"/proc/{pid}/pagemap", "rb", 0) as pagemap,
    ):
        for line in maps:
            where, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            first, last = (int(end, 16) // size for end in where.split("-"))
            pagemap.seek(8 * first)
            flags = np.frombuffer(pagemap.read(8 * (last - first)), np.uint64)
            there = np.flatnonzero(flags >> np.uint64(62))  # in memory, or swapped out
            for run in np.split(there, np.flatnonzero(np.diff(there) > 1) + 1):
                if len(run):
                    memory.seek((first + int(run[0])) * size)
                    yield memory.read(len(run) * size)


@ray_there
@pytest.mark.skipif(not os.access("/proc/self/mem", os.R_OK), reason="there is no /proc/self/mem")
@pytest.mark.parametrize("solver", ["memory", "damped"])
def test_the_driver_does_not_hold_weights_that_stay_at_home(tmp_path: Path, solver: str) -> None:
    """Its whole memory is searched for them; coefficients that come to the driver are found."""
    small(tmp_path)
    describe(tmp_path, NODES, 'keep_weights = "nodes"\nhome = "homes"', "home.toml")
    for stream in ("home.toml", "stream.toml"):
        command = [sys.executable, "-m", "tests.helpers.keeper", str(tmp_path / stream), solver]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE
        ) as driver:
            assert driver.stdout is not None
            guess, coef = (driver.stdout.readline().split() for _ in range(2))
            if stream == "home.toml":
                values = kept_at_home(tmp_path)
                assert len(values) >= 15 and not coef
            else:
                values = {f"coef {i}": float(value) for i, value in enumerate(coef)}
            assert len(guess) == 30
            there = held(driver.pid, values | {"guess": float(guess[0])})
            driver.communicate("\n", timeout=60)
        known = {"guess"} if stream == "home.toml" else {"guess", *(f"coef {i}" for i in range(5))}
        assert {*there} == known  # what it is to have


def test_workers_that_die_take_no_weights_with_them(tmp_path: Path, network: Any) -> None:
    """One between tasks, when its files are asked for, and one in a task: from its home it goes on
    where it stood."""
    small(tmp_path)
    plain = conche.NodeStream(tmp_path / "stream.toml")
    describe(tmp_path, NODES, 'keep_weights = "nodes"\nhome = "homes"', "home.toml")
    wire = type(network)(timeout=20)
    stream = conche.NodeStream(tmp_path / "home.toml", wire)
    options: dict[str, Any] = {"solver": "damped", "n_rounds": 20, "scaling": "first"}
    here = conche.CoCoARegressor(partition=plain.partition, **options)
    there = conche.CoCoARegressor(partition=plain.partition, network=wire, **options)
    propose, rounds = wire.propose, list[int]()

    def kill(k: int) -> None:
        import ray

        os.kill(ray.get(wire.workers[k].pid.remote()), signal.SIGKILL)

    def interrupted(g: Array) -> Any:
        rounds.append(1)
        if len(rounds) == 38:  # more rounds into the second task than would be replayed
            kill(0)
        return propose(g)

    wire.propose = interrupted
    for i in range(3):
        if i == 2:
            kill(1)
        task, other = stream.task(i), plain.task(i)
        there.partial_fit(task.X, task.y)
        here.partial_fit(other.X, other.y)
    assert wire.failures == 2
    guess = here.predict(plain.task(0).X)
    assert there.predict(stream.task(0).X) == pytest.approx(guess, rel=1e-10)
    wire.close()


@ray_there
def test_folders_that_only_their_own_machine_can_read(
    air: tuple[Path, Array], tmp_path: Path
) -> None:
    """Six stations on each of two machines, in folders that the other cannot look into."""
    if reason := namespaces.missing():
        pytest.skip(f"network namespaces cannot be made here: {reason}")
    _, coef = air
    stations = write_beijing(tmp_path / "all", MONTHS)  # as there
    sites = [tmp_path / "first", tmp_path / "second"]
    first = sites[0]
    text = HEAD.format(more="").replace('"target"', f'"{first}/target"')
    for k, station in enumerate(stations):
        site = sites[k // 6]
        site.mkdir(exist_ok=True)
        shutil.move(tmp_path / "all" / station, site)
        text += f'[nodes.{station}]\nfiles = "{site}/{station}"\nworker = "{site.name}"\n'
    shutil.move(tmp_path / "all" / "target", first)
    (first / "stream.toml").write_text(text)
    with namespaces.cluster(sites) as cluster:
        train = f"train {first}/stream.toml --network ray --missing mean --out {first}/m.conche"
        look = cluster.drive("-c", f"import os; print(*map(os.listdir, {[*map(str, sites)]}))")
        done = cluster.drive("-m", "conche", *train.split())
    assert look.stdout.strip().endswith("[]"), look.stdout  # of the other's
    assert done.returncode == 0 and "12 nodes of 11 columns" in done.stdout, done.stderr
    assert far(coef, conche.load(first / "m.conche").coef_) <= 1e-10


@ray_there
def test_two_parties_from_nothing_to_a_prediction(tmp_path: Path) -> None:
    """docs/parties.md, whose commands the script has: what one machine with all data would say."""
    if reason := namespaces.missing():
        pytest.skip(f"network namespaces cannot be made here: {reason}")
    script = HERE / "examples" / "parties" / "two_machines.sh"
    shown = (HERE / "docs" / "parties.md").read_text().partition("## Two machines")[2]
    shown = shown.partition("\n## ")[0]
    for line in re.findall(r"^(?:ray start|conche) .*$", shown, re.M):
        assert line.rstrip("\\ ") in script.read_text(), line
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    plain = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    done = subprocess.run(
        ["bash", str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=200,
        env=plain | {"PATH": path, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[:4] == ["outcomes", "stream.toml", "vitals", "bloods"]  # each sees its own
    homes = {f.name.split("-")[0] for f in (tmp_path / "laboratory" / "weights").glob("*.conche")}
    assert homes == {"bloods"}
    pd = pytest.importorskip("pandas")
    model = conche.ConcheRegressor(partition=[3, 3], missing="mean")
    frames = []
    for file in sorted((tmp_path / "hospital" / "outcomes").iterdir()):
        frame = pd.read_csv(file)
        for own in ("hospital/vitals", "laboratory/bloods"):
            frame = frame.merge(pd.read_csv(tmp_path / own / file.name), "left", on="patient")
        frames.append(frame)
        model.partial_fit(frame.iloc[:, 2:], frame["risk"])
    found = pd.read_csv(tmp_path / "hospital" / "risk.csv")
    assert found["patient"].tolist() == frames[-1]["patient"].tolist()
    guess = model.predict(frames[-1].iloc[:, 2:])
    # weights at home: the ridge is in units of the first rows, and not of all
    assert np.std(found["prediction"].to_numpy() - guess) < 0.02 * np.std(guess)
