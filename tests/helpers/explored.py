"""``conche explore`` as a user starts it, and requests as anybody may send them."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import numpy as np

from .commands import CONCHE


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: bytes
    headers: dict[str, str]

    def json(self) -> Any:
        """As it is meant."""
        return json.loads(self.body)


class Server(NamedTuple):
    """A server that runs, and its address."""

    address: str
    process: subprocess.Popen[str]

    @property
    def port(self) -> int:
        """That it listens on."""
        return int(urlsplit(self.address).port or 0)

    @property
    def token(self) -> str:
        """Of its address."""
        return parse_qs(urlsplit(self.address).query)["token"][0]

    def own_headers(self) -> dict[str, str]:
        """As the page itself sends them."""
        return {
            "Host": f"127.0.0.1:{self.port}",
            "Origin": f"http://127.0.0.1:{self.port}",
            "Cookie": f"conche-{self.port}={self.token}",
        }

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: dict[str, str | None] | None = None,
    ) -> Answer:
        """One request as the page would send it, with other ``headers`` (None: without)."""
        sent = {**self.own_headers(), **(headers or {})}
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            line.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value is not None:
                    line.putheader(name, value)
            if body is not None and "Content-Length" not in sent:
                line.putheader("Content-Length", str(len(body)))
            line.endheaders(body)
            answer = line.getresponse()
            return Answer(answer.status, answer.read(), dict(answer.headers))
        finally:
            line.close()


@contextmanager
def explored(*arguments: object, files: int | None = None) -> Iterator[Server]:
    """The server, for as long as it is needed; Ctrl-C must end it without a word.

    ``files`` is how many it may have open.
    """
    command = [*CONCHE, "explore", "--no-browser", "--port", "0", *map(str, arguments)]
    if files is not None:
        command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None, process.communicate()
        yield Server(found.group(), process)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert (process.returncode, said) == (0, "")


def months(folder: Path, count: int = 4) -> Path:
    """A small stream of files, of two nodes' worth of columns."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    w = rng.standard_normal(6)
    for t in range(count):
        X = rng.standard_normal((40, 6))
        y = X @ (w + 0.3 * rng.standard_normal(6)) + 0.1 * rng.standard_normal(40)
        rows = [",".join([*(f"x{j}" for j in range(6)), "y"])]
        rows += [",".join(f"{v:.6f}" for v in [*row, aim]) for row, aim in zip(X, y, strict=True)]
        (folder / f"2014-{t + 1:02d}.csv").write_text("\n".join(rows) + "\n")
    return folder
