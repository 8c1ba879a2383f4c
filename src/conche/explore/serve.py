"""Start the server on loopback, say where it is, open it, end it quietly."""

from __future__ import annotations

import logging
import secrets
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable

from ..common.extras import need
from ..errors import ParameterError
from .shown import Shown

HOST = "127.0.0.1"
USUAL_PORT = 8417  # the same every day, so that addresses can be kept; any other where it is taken

BACKLOG = 32  # connections that are taken at once


def listening(port: int | None) -> socket.socket:
    """A socket on loopback: on this port, or on the usual one if it is free, or on any."""
    for each in (USUAL_PORT, 0) if port is None else (port,):
        # named TCP, so that asyncio sends small answers at once (TCP_NODELAY)
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((HOST, each))
            sock.listen(128)
            return sock
        except OSError:
            sock.close()
        except OverflowError:
            sock.close()
            raise ParameterError(f"--port {port}: ports go from 0 to 65535") from None
    raise ParameterError(f"--port {port}: another program has it; leave --port out for a free one")


def serve(
    shown: Shown, port: int | None, browser: bool, say: Callable[[str], None], path: str = ""
) -> None:
    """Serve until Ctrl-C.

    Parameters
    ----------
    shown : the model or stream to show.
    port : to listen on; None: a free one.
    browser : whether to open the page.
    say : is told the address.
    path : what comes behind the token in it.
    """
    uvicorn = need("uvicorn", "explore", "conche explore")
    need("starlette", "explore", "conche explore")
    from .app import Page
    from .guard import Guard
    from .lines import ImpatientProtocol

    sock = listening(port)
    where, token = sock.getsockname()[1], secrets.token_urlsafe(24)
    address = f"http://{HOST}:{where}/?token={token}{path}"
    config = uvicorn.Config(
        Guard(Page(shown).app(), token, where),
        log_level="critical",
        lifespan="on",
        http=ImpatientProtocol,
        backlog=BACKLOG,
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=30,
    )
    server = uvicorn.Server(config)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # not a word of lost connections

    def end(*_: object) -> None:
        server.should_exit = True

    # From the first word on, Ctrl-C ends it; not by an exception, which Python may drop at places
    # that ignore them.
    before = signal.signal(signal.SIGINT, end)
    try:
        say(address)
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        server.run(sockets=[sock])
    finally:
        signal.signal(signal.SIGINT, before)
        sock.close()
