"""Whatever moment a process is killed at, the next one removes what it left; others' it leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conche.common.atomic import write_atomically
from conche.common.locks import new_locked, ownerless, private_folder

KILLED = """
import os, signal, sys
from pathlib import Path
from conche.common.atomic import write_atomically

path = Path(sys.argv[1])
write_atomically(path, b"old")
calls, last = 0, 0

def trace(frame, event, argument):
    global calls
    calls += event in ("line", "return")
    if calls == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return trace

ends, littered = [], 0
while True:
    last += 1
    child = os.fork()
    if not child:
        sys.settrace(trace)
        write_atomically(path, b"new" * 1000)
        os._exit(0)
    ended = os.waitpid(child, 0)[1]
    assert path.read_bytes() in (b"old", b"new" * 1000), last
    littered += len(list(path.parent.iterdir())) > 1
    write_atomically(path, b"old")
    assert list(path.parent.iterdir()) == [path], last
    if ended == 0:
        break
print(last, littered)
"""


def test_a_save_that_is_killed_on_any_line_leaves_nothing_that_lasts(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    command = [sys.executable, "-c", KILLED, str(tmp_path / "own" / "model.conche")]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    lines, littered = map(int, told.stdout.split())
    assert lines > 50 and littered > 10  # it was killed on all of them, and there was litter


def test_what_somebody_still_writes_is_left_alone(tmp_path: Path) -> None:
    held, descriptor = new_locked(tmp_path, ".m.", ".tmp")
    write_atomically(tmp_path / "m", b"x")
    assert held.exists() and not list(ownerless(tmp_path, ".m.", ".tmp"))
    os.close(descriptor)
    write_atomically(tmp_path / "m", b"y")
    assert not held.exists()


def test_writers_at_the_same_time_all_succeed(tmp_path: Path) -> None:
    code = "import sys; from conche.common.atomic import write_atomically as w\n"
    code += "for i in range(200): w(sys.argv[1], sys.argv[2].encode() * 5000)"
    command = [sys.executable, "-c", code, str(tmp_path / "m")]
    writers = [subprocess.Popen([*command, letter]) for letter in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert (tmp_path / "m").read_bytes() in (b"a" * 5000, b"b" * 5000)
    assert list(tmp_path.iterdir()) == [tmp_path / "m"]


def test_a_private_folder_is_ours_and_nobody_elses(tmp_path: Path) -> None:
    ours = private_folder(tmp_path, "own")
    assert ours is not None and ours.stat().st_mode & 0o777 == 0o700
    ours.chmod(0o777)
    assert private_folder(tmp_path, "own") == ours and ours.stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(ours)
    assert private_folder(tmp_path, "link") is None
    if os.getuid() == 0:
        os.chown(ours, 65534, 65534)
        assert private_folder(tmp_path, "own") is None


RAY = """
import numpy as np, conche, os, sys
X = np.random.default_rng(0).standard_normal((40, 4))
conche.ConcheRegressor(n_nodes=2, network="ray").fit(X, X[:, 0])
import ray
node = ray._private.worker._global_node
print(ray.get_runtime_context().gcs_address, node.get_session_dir_path(), os.getpid())
sys.stdout.flush()
sys.stdin.read()
"""

OTHER = """
import os, sys
session, token, pid = sys.argv[1:]
os.setgroups([]), os.setgid(65534), os.setuid(65534)
private = os.path.dirname(os.path.dirname(session))
for attempt in (
    lambda: os.listdir(private),
    lambda: os.listdir(session),
    lambda: os.listdir(session + "/logs"),
    lambda: open(session + "/planted", "w"),
    lambda: open(token).read(),
    lambda: open(f"/proc/{pid}/environ").read(),
):
    try:
        attempt()
    except OSError:
        continue
    sys.exit("could")
"""

CONNECT = "import sys, ray; ray.init(sys.argv[1], logging_level='fatal'); print('connected')"


@pytest.mark.skipif(os.getuid() != 0, reason="becoming somebody else takes root")
def test_another_user_can_neither_look_nor_write_nor_connect_to_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    home = tmp_path / "home"
    home.mkdir()
    clean = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    clean["HOME"] = str(home)
    command = [sys.executable, "-c", RAY]
    with subprocess.Popen(command, env=clean, text=True, stdin=-1, stdout=-1) as owner:
        assert owner.stdout is not None and owner.stdin is not None
        address, session, pid = owner.stdout.readline().split()
        token = home / ".ray" / "auth_token"
        assert not token.exists() or token.stat().st_mode & 0o077 == 0
        command = [sys.executable, "-c", OTHER, session, str(token), pid]
        assert subprocess.run(command, cwd="/").returncode == 0
        wrong = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
        wrong["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        command = [sys.executable, "-c", CONNECT, address]
        with subprocess.Popen(
            command, env=clean | wrong, text=True, stdout=-1, stderr=subprocess.STDOUT
        ) as stranger:
            assert stranger.stdout is not None
            told = next(line for line in stranger.stdout if "connected" in line or "Token" in line)
            stranger.kill()
        assert "InvalidAuthToken" in told, told
        owner.stdin.close()
        assert owner.wait(60) == 0 and not Path(session).exists()
