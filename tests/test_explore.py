"""The server of ``conche explore``: what it answers, and whom it refuses."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

pytest.importorskip("starlette", reason="starlette is not installed (conche[explore])")

import conche
from conche.explore.answers import curve_answer, rounds_answer, tasks_answer
from conche.explore.jobs import Jobs, TooManyError
from conche.explore.settings import Setting, Wish

from .helpers.commands import CONCHE, run_here
from .helpers.explored import Server, explored, months

SMALL = {"p": 24, "n": 40, "T": 4, "shared": 12, "noise": 0.1}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with explored() as server:
        yield server


def wish(**changes: Any) -> bytes:
    return json.dumps(
        {**SMALL, "kind": "points", "nodes": [1, 2], "trials": 20, **changes}
    ).encode()


def test_nodes_are_answered_as_the_planner_does(server: Server) -> None:
    found = server.ask(f"/api/nodes?{urlencode(SMALL)}").json()
    plan = conche.plan(24, 40, 4, 12, 0.1)
    assert found["nodes"] == [row["n_nodes"] for row in plan.table]
    np.testing.assert_allclose(found["errors"], [row["error"] for row in plan.table])
    assert found["best"] == {"n_nodes": plan.n_nodes, "error": pytest.approx(plan.error)}
    advice = server.ask(f"/api/advice?{urlencode(SMALL)}").json()
    assert advice["conche"] == pytest.approx(plan.memory.error) and advice["text"] == plan.text
    alike = conche.theory.Similarity.shared(4, [24], 12)
    assert found["offline"] == pytest.approx(conche.theory.offline_error(alike, 40, 0.1)[-1])
    said = run_here(*advice["command"].split()[1:], "--json")  # the command prints the same
    assert json.loads(said.stdout)["error"] == pytest.approx(plan.error)


def test_what_is_unbounded_is_null_and_shaded(server: Server) -> None:
    found = server.ask("/api/nodes?p=40&n=20&T=4&shared=20&noise=0.1").json()
    assert found["errors"][found["nodes"].index(2)] is None  # blocks of 20 columns, 20 samples
    bands = {band["kind"]: (band["from"], band["to"]) for band in found["bands"]}
    for kind in ("near-square", "unstable"):
        assert bands[kind][0] <= 2 <= bands[kind][1]


def test_tasks_are_answered_as_theory_does(server: Server) -> None:
    found = server.ask(f"/api/tasks?{urlencode(SMALL)}&nodes=1,4").json()
    for curve, sizes in zip(found["curves"], ([24], [6] * 4), strict=True):
        alike = conche.theory.Similarity.shared(4, sizes, 12)
        expected = conche.theory.generalization_error(alike, 40, 0.1)
        np.testing.assert_allclose(curve["errors"], expected)


def test_several_rounds_on_wide_blocks_are_one() -> None:
    """Blocks of more columns than samples fit any residual in one round (Lemma 2), at any size."""
    found = rounds_answer(Setting(10**6, 2048, 8, 7e5, 0.01, n_rounds=4))
    plan = conche.plan(10**6, 2048, 8, 7e5, 0.01)
    one = {row["n_nodes"]: row["error"] for row in plan.table}
    for K, error in zip(found["nodes"], found["errors"], strict=True):
        assert error == pytest.approx(one[K])


GROWING = [(260, 41, 10, 16), (170, 29, 10, 4), (200, 60, 4, 3)]  # one round alone would settle


@pytest.mark.parametrize(("p", "n", "K", "rounds"), GROWING)
def test_several_rounds_are_judged_by_their_own_radius(p: int, n: int, K: int, rounds: int) -> None:
    (curve,) = tasks_answer(Setting(p, n, 40, p, 0.01, rounds), [K])["curves"]
    sizes = [p // K] * K
    truth = conche.theory.spectral_radius(n, sizes, n_rounds=rounds)
    assert curve["verdict"] == "grows" and curve["drawn"]
    assert curve["radius"] == pytest.approx(truth, rel=0.1)
    assert curve["errors"][-1] > 1.02 * curve["errors"][-2]  # the curve says the same


def test_a_radius_close_to_one_decides_nothing_where_it_is_drawn() -> None:
    curves = tasks_answer(Setting(1024, 40, 4, 700, 0.01, 8), [8, 64])["curves"]
    assert [curve["verdict"] for curve in curves] == ["settles", "edge"]
    wide = tasks_answer(Setting(300, 600, 4, 200, 0.01, 2), [100])["curves"]  # 0.961, and sure
    assert wide[0]["verdict"] == "settles" and wide[0]["drawn"]


def test_what_is_not_drawn_has_no_verdict() -> None:
    curves = tasks_answer(Setting(4000, 100, 4, 3000, 0.01, 4), [1, 1000])["curves"]
    assert [curve["verdict"] for curve in curves] == ["settles", "unknown"]
    assert curves[1]["radius"] is None and np.isnan(curves[1]["errors"]).all()


def test_a_smaller_stream_is_not_nearly_square_where_its_own_is_not() -> None:
    """Blocks of 32 columns and 40 samples: 4 and 5 in the same proportions, and unbounded."""
    found = rounds_answer(Setting(1024, 40, 4, 700, 0.01, n_rounds=8))
    place = found["nodes"].index(32)
    assert np.isfinite(found["errors"][place]) and found["verdicts"][place] == "grows"


def test_a_radius_of_nothing_is_zero() -> None:
    setting = Setting(24, 40, 4, 12, 0.1)
    assert tasks_answer(setting, [1])["curves"][0]["radius"] == 0
    assert curve_answer(setting)["radii"][0] == 0


def test_a_simulation_runs_and_is_what_the_library_simulates(server: Server) -> None:
    name = server.ask("/api/simulations", "POST", wish()).json()["id"]
    job: dict[str, Any] = {"state": "running"}
    deadline = time.monotonic() + 60
    while job["state"] == "running" and time.monotonic() < deadline:
        time.sleep(0.1)
        job = server.ask(f"/api/simulations/{name}").json()
    assert job["state"] == "done" and job["done"] == job["total"] == 40
    for result, sizes in zip(job["results"], ([24], [12, 12]), strict=True):
        expected = conche.simulate(4, 40, sizes, n_shared=12, noise_var=0.1, trials=20)
        np.testing.assert_allclose(result["mean"], expected.mean)
        np.testing.assert_allclose(result["stderr"], expected.stderr)


def test_simulations_are_few_and_can_be_stopped(server: Server) -> None:
    large = wish(p=600, n=300, T=60, shared=300, nodes=[1, 2, 4], trials=200)
    names = [server.ask("/api/simulations", "POST", large).json()["id"] for _ in range(2)]
    refused = server.ask("/api/simulations", "POST", large)
    assert refused.status == 429 and "stop one" in refused.json()["error"]
    for name in names:
        assert server.ask(f"/api/simulations/{name}", "DELETE").json()["state"] == "stopped"
    again = server.ask("/api/simulations", "POST", wish())
    assert again.status == 202
    server.ask(f"/api/simulations/{again.json()['id']}", "DELETE")


def test_a_simulation_that_nobody_watches_makes_room() -> None:
    async def check() -> None:
        jobs = Jobs()
        large = Wish.read(json.loads(wish(p=600, n=300, T=60, shared=300, trials=200)))
        try:
            first, second = [await jobs.start(large, []) for _ in range(2)]
            jobs.known[first].seen -= 60  # a page in the background looks once a minute
            with pytest.raises(TooManyError, match="stop one"):
                await jobs.start(large, [])
            jobs.known[first].seen -= 60
            jobs.known[second].seen -= 120
            jobs.look(second)
            await jobs.start(large, [])
            assert [jobs.known[name].state for name in (first, second)] == ["stopped", "running"]
        finally:
            await jobs.close()

    asyncio.run(check())


def test_a_model_is_described_and_a_dropped_one_as_well(tmp_path: Path) -> None:
    stream = months(tmp_path / "months")
    model = tmp_path / "m.conche"
    train = ("train", stream, "--target", "y", "--nodes", 2, "--out", model, "--quiet")
    assert run_here(*train).returncode == 0
    said = json.loads(run_here("evaluate", model, stream, "--target", "y", "--json").stdout)
    with explored(model, "--stream", stream) as server:
        found = server.ask("/api/model").json()
        dropped = server.ask("/api/model?name=../../x.conche", "POST", model.read_bytes()).json()
    assert "view=model" in server.address
    np.testing.assert_allclose(found["matrix"]["values"], said["matrix"])
    assert found["matrix"]["forgetting"] == pytest.approx(said["forgetting"])
    assert [node["names"] for node in found["nodes"]] == [["x0", "x1", "x2"], ["x3", "x4", "x5"]]
    assert found["spectrum"]["share"] == 1 and found["spectrum"]["n_values"] == 6
    assert dropped["file"] == "x.conche" and dropped["matrix"] is None
    assert dropped["history"][-1]["name"] == "2014-04"


def test_a_stream_is_learnt(tmp_path: Path) -> None:
    with explored(months(tmp_path / "months"), "--target", "y", "--nodes", 3) as server:
        found = server.ask("/api/model").json()
    assert found["tasks"] == 4 and len(found["nodes"]) == 3
    assert found["matrix"]["on"] == "training" and np.shape(found["matrix"]["values"]) == (4, 4)


def test_what_cannot_be_explored_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.conche").write_bytes(b"nothing")
    for arguments, word in (
        ([tmp_path / "none"], "no such"),
        ([tmp_path / "bad.conche"], "bad.conche"),
        ([months(tmp_path / "m")], "--target"),
        (["--target", "y"], "--target"),
        (["--port", "70000"], "65535"),
    ):
        done = run_here("explore", "--no-browser", *arguments)
        assert done.returncode == 2 and word in done.stderr and done.stderr.count("\n") == 1


def test_a_busy_port_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_here("explore", "--no-browser", "--port", port)
    assert done.returncode == 2 and f"--port {port}" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_server_listens_on_loopback_alone(server: Server) -> None:
    lines = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    listening = re.findall(rf" ([0-9A-F]+):{server.port:04X} [0-9A-F:]+ 0A ", lines)
    assert listening == ["0100007F"]


def test_a_worker_ends_with_its_server() -> None:
    large = wish(p=600, n=300, T=60, shared=300, nodes=[1], trials=300)
    command = [*CONCHE, "explore", "--no-browser", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().split()[-1]
    server = Server(address, process)
    assert server.ask("/api/simulations", "POST", large).status == 202
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert children
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 60
    while any(_runs(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not any(_runs(child) for child in children)


def _runs(child: str) -> bool:
    try:
        os.kill(int(child), 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{child}/stat").read_text().split(") ")[1][0] != "Z"


# ---- whom it refuses ----

GIGABYTE = 10**9
HOSTILE: dict[str, tuple[int, dict[str, Any]]] = {
    "wrong host": (421, dict(path="/", headers={"Host": "evil.example"})),
    "wrong port": (421, dict(path="/", headers={"Host": "127.0.0.1:1"})),
    "two hosts": (421, dict(path="/", headers={"Host": "127.0.0.1, evil.example"})),
    "no token": (401, dict(path="/api/nodes", headers={"Cookie": None})),
    "wrong token": (401, dict(path="/?token=AAAA", headers={"Cookie": None})),
    "other characters": (401, dict(path="/?token=%C3%A9%00", headers={"Cookie": None})),
    "another origin": (403, dict(path="/api/nodes", headers={"Origin": "http://evil.example"})),
    "no origin": (403, dict(path="/api/simulations", method="POST", headers={"Origin": None})),
    "another site's link": (403, dict(path="/", headers={"Sec-Fetch-Site": "cross-site"})),
    "traversal": (404, dict(path="/static/../../../../etc/passwd")),
    "traversal, escaped": (404, dict(path="/static/..%2f..%2f..%2fetc%2fpasswd")),
    "an absolute path": (404, dict(path="/static//etc/passwd")),
    "a null byte": (404, dict(path="/static/style.css%00.html")),
    "our own source": (404, dict(path="/static/app.py")),
    "a gigabyte": (
        413,
        dict(path="/api/model", method="POST", headers={"Content-Length": str(GIGABYTE)}),
    ),
    "a long wish": (413, dict(path="/api/simulations", method="POST", body=b" " * 100_000)),
    "not a model": (422, dict(path="/api/model", method="POST", body=b"\x80\x04nothing")),
    "a million trials": (
        422,
        dict(path="/api/simulations", method="POST", body=wish(trials=10**6)),
    ),
    "too large": (
        422,
        dict(path="/api/simulations", method="POST", body=wish(p=10**9, n=10**6, nodes=[1])),
    ),
    "no number": (422, dict(path="/api/nodes?p=many")),
    "infinity": (422, dict(path="/api/nodes?noise=1e999")),
    "not a number": (422, dict(path="/api/nodes?noise=nan")),
    "less than nothing": (422, dict(path="/api/nodes?p=-5")),
    "too many tasks": (422, dict(path="/api/nodes?T=1e12")),
    "deep JSON": (422, dict(path="/api/simulations", method="POST", body=b"[" * 15_000)),
    "a huge number": (
        422,
        dict(path="/api/simulations", method="POST", body=wish().replace(b"40", b"9" * 5000)),
    ),
    "nodes that are texts": (
        422,
        dict(path="/api/simulations", method="POST", body=wish(nodes=["__import__('os')"])),
    ),
    "another method": (405, dict(path="/api/nodes", method="PATCH")),
    "no such job": (404, dict(path="/api/simulations/x", method="DELETE")),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_requests_are_refused_with_a_clear_answer(server: Server, name: str) -> None:
    status, request = HOSTILE[name]
    answer = server.ask(**request)
    assert answer.status == status, answer.body
    why = answer.json()["error"]
    assert 8 < len(why) < 300 and "Traceback" not in why and "\n" not in why
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert server.ask("/api/nodes").status == 200


def test_a_body_whose_length_is_not_said_is_cut_off(server: Server) -> None:
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    piece = bytes(1 << 20)
    try:
        line.request(
            "POST",
            "/api/model",
            body=(piece for _ in range(1000)),  # a gigabyte, if it is taken
            headers=server.own_headers(),
            encode_chunked=True,
        )
        answer = line.getresponse()
        assert answer.status == 413 and b"larger" in answer.read()
    except (BrokenPipeError, ConnectionResetError):  # it has hung up while we were sending
        pass
    finally:
        line.close()
    assert server.ask("/api/nodes").status == 200


def test_two_hundred_requests_at_once(server: Server) -> None:
    with ThreadPoolExecutor(200) as pool:
        asked = pool.map(lambda i: server.ask(f"/api/nodes?p={1000 + i}"), range(200))
        answers = [answer.status for answer in asked]
    assert set(answers) <= {200, 503} and 200 in answers
    assert server.ask("/api/nodes").status == 200


def test_silent_connections_keep_nobody_out() -> None:
    """More of them than the server may have files; it says nothing of it, and hangs up in time."""
    with explored(files=256) as server, ExitStack() as stack:

        def opened(text: str) -> socket.socket:
            line = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 30))
            line.sendall(text.encode())
            return line

        headers = {**server.own_headers(), "Content-Length": "1000"}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        slow = [opened(f"POST /api/model HTTP/1.1\r\n{head}\r\nabc") for _ in range(26)]
        assert server.ask("/api/nodes").status == 503
        silent = [opened("GET") for _ in range(300)]
        assert server.ask("/", headers={"Cookie": None}).status == 401
        for line in (silent[0], silent[-1]):
            assert line.recv(1) == b""
        assert b"did not come to its end" in slow[0].recv(4096)
        assert server.ask("/api/nodes").status == 200


def test_the_token_moves_from_the_address_into_a_cookie(server: Server) -> None:
    path = server.address.partition(str(server.port))[2]
    answer = server.ask(f"{path}&view=tasks&p=64", headers={"Cookie": None})
    assert answer.status == 303 and answer.headers["location"] == "/?view=tasks&p=64"
    cookie = answer.headers["set-cookie"]
    assert server.token in cookie and "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert server.ask(path.replace("/?", "/api/nodes?"), headers={"Cookie": None}).status == 401
