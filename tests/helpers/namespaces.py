"""Two machines on one: network namespaces joined by a cable, a Ray head in one, a worker in the
other. Needs root and `ip`; says so where it cannot be."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

RAY = str(Path(sys.executable).with_name("ray"))
HERE = Path(__file__).parents[2]
HEAD, WORKER = "10.213.77.1", "10.213.77.2"
RACKS = "rack1", "rack2"  # names of the two machines, as resources of Ray's
CABLE = "cable"  # the head's end of it


def missing() -> str | None:
    """Why namespaces cannot be made here, if they cannot."""
    if shutil.which("ip") is None:
        return "there is no `ip` command (iproute2)"
    name = f"conche-try-{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip() or "`ip netns add` fails"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return None


def run(line: str, env: dict[str, str] | None = None) -> str:
    """What the command prints; it must not fail."""
    done = subprocess.run(shlex.split(line), capture_output=True, text=True, timeout=100, env=env)
    assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    return done.stdout


def pids(name: str) -> list[int]:
    return [int(pid) for pid in run(f"ip netns pids {name}").split()]


@dataclass
class Cluster:
    head: str  # names of the namespaces
    worker: str
    environment: dict[str, str]
    hidden: dict[str, Path]  # folders that they cannot see into

    def worker_raylet(self) -> str:
        """The process without which the worker's machine is gone from the cluster."""
        for pid in pids(self.worker):
            if Path(f"/proc/{pid}/exe").resolve().name == "raylet":
                return str(pid)
        raise AssertionError("no raylet on the worker")

    def drive(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Python on the head's machine."""
        command = [*inside(self.head, self.hidden), sys.executable, *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=200, cwd=HERE, env=self.environment
        )


def inside(name: str, hidden: Mapping[str, Path]) -> list[str]:
    """What a command is run with in a namespace, where a folder of the other's may be hidden."""
    enter = ["ip", "netns", "exec", name]
    if name not in hidden:
        return enter
    hide = f'mount -t tmpfs none {shlex.quote(str(hidden[name]))} && exec "$@"'
    return [*enter, "sh", "-c", hide, "sh"]


@contextmanager
def cluster(folders: Sequence[Path] = ()) -> Iterator[Cluster]:
    """Two machines, which Ray knows by the names of racks; or by those of two ``folders``, of which
    each sees its own alone."""
    head, worker = names = [f"conche-{os.getpid()}-{side}" for side in "ab"]
    hidden = dict(zip(names, reversed(folders), strict=False))
    called = [folder.name for folder in folders] or RACKS
    sites = [{"site": 1, name: 1} for name in called]
    environment = os.environ | {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(16),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ADDRESS": f"{HEAD}:6379",
        "OPENBLAS_NUM_THREADS": "1",
        # a lost machine is noticed within seconds, and not after a quarter of a minute
        "RAY_health_check_initial_delay_ms": "1000",
        "RAY_health_check_period_ms": "1000",
        "RAY_health_check_timeout_ms": "3000",
        "RAY_health_check_failure_threshold": "3",
    }
    environment.pop("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", None)  # a cluster it is
    start = {k: v for k, v in environment.items() if k != "RAY_ADDRESS"}
    short = Path(f"/tmp/cn-{os.getpid()}")  # sockets' paths must be short
    try:
        for name in (head, worker):
            run(f"ip netns add {name}")
            run(f"ip -n {name} link set lo up")
        run(f"ip link add {CABLE} netns {head} type veth peer name {CABLE} netns {worker}")
        for name, address in ((head, HEAD), (worker, WORKER)):
            run(f"ip -n {name} addr add {address}/24 dev {CABLE}")
            run(f"ip -n {name} link set {CABLE} up")
        own = f"--head --port 6379 --include-dashboard false --temp-dir {short}"
        for name, address, how, site in (
            (head, HEAD, own, sites[0]),
            (worker, WORKER, f"--address {HEAD}:6379", sites[1]),
        ):
            line = f"{shlex.join([*inside(name, hidden), RAY])} start {how} --num-cpus 1"
            site_option = f"--resources {shlex.quote(json.dumps(site))}"
            run(f"{line} --node-ip-address {address} {site_option}", env=start)
        yield Cluster(head, worker, environment, hidden)
    finally:
        for name in (head, worker):
            if Path(f"/run/netns/{name}").exists():
                for pid in pids(name):
                    os.kill(pid, signal.SIGKILL)
                subprocess.run(["ip", "netns", "del", name], check=False)
        shutil.rmtree(short, ignore_errors=True)
