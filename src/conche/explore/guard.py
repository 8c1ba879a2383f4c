"""Who may ask, and what: this machine's user, with the token, from the page itself."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_AT_ONCE = 24  # requests
LARGEST_BODY = 64 << 20  # of a model that is dropped in
PATIENCE = 10.0  # seconds for a body
LARGEST_ASKED = 16 << 10  # of any other body
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class RefusedError(Exception):
    """An answer that is no: its status, and a line that says why."""

    def __init__(self, status: int, why: str):
        super().__init__(why)
        self.status, self.why = status, why


class Guard:
    """Around the app: refuses before anything is read, and puts the headers on every answer.

    Parameters
    ----------
    app : what is guarded.
    token : which every request must have, in its cookie or, the first time, in its address.
    port : that the server listens on; requests for any other host or port are refused, so that no
        name that points here by trickery (DNS rebinding) is of any use.
    """

    def __init__(self, app: App, token: str, port: int):
        self.app, self.token = app, token
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.cookie = f"conche-{port}"
        self.running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        try:
            entered = self.check(scope)
        except RefusedError as error:
            await refuse(with_headers, error)
            return
        if entered is not None:
            await _enter(with_headers, entered, f"{self.cookie}={self.token}")
            return
        self.running += 1
        try:
            await self._run(scope, receive, with_headers)
        finally:
            self.running -= 1

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False
        most = LARGEST_BODY if scope["path"] == "/api/model" else LARGEST_ASKED
        read = 0
        until: float | None = asyncio.get_running_loop().time() + PATIENCE

        async def counted() -> MutableMapping[str, Any]:
            nonlocal read, until
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise RefusedError(408, "the request did not come to its end") from None
            if not message.get("more_body", False):
                until = None  # all of it is there
            read += len(message.get("body", b""))
            if read > most:
                raise RefusedError(413, _too_large(most))
            return message

        async def noted(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            if self.running > MOST_AT_ONCE:
                raise RefusedError(503, f"more than {MOST_AT_ONCE} requests at once: try again")
            if _length(_headers(scope)) > most:
                raise RefusedError(413, _too_large(most))
            await self.app(scope, counted, noted)
        except RefusedError as error:
            if not started:
                await refuse(send, error)

    def check(self, scope: Scope) -> str | None:
        """Refuse what does not come from the page; the address to go to, where the token is in the
        one that was asked for."""
        headers = _headers(scope)
        if headers.get("host") not in self.hosts:
            raise RefusedError(421, "this server answers for this machine alone: use its address")
        origin = headers.get("origin")
        if origin is not None and origin.removeprefix("http://") not in self.hosts:
            raise RefusedError(403, "asked by another site")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise RefusedError(403, "asked by another site")
        if scope["method"] not in ("GET", "HEAD", "POST", "DELETE"):
            raise RefusedError(405, f"{scope['method'][:20]} is not answered here")
        if scope["method"] in ("POST", "DELETE") and origin is None:
            raise RefusedError(403, "only the page itself may ask for that: no Origin")
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = dict(query).get("token")
        if given is not None and scope["path"] == "/" and self._is_token(given):
            rest = urlencode([(key, value) for key, value in query if key != "token"])
            return f"/?{rest}" if rest else "/"
        if not self._is_token(_cookie(headers.get("cookie", ""), self.cookie)):
            raise RefusedError(401, "no token: open the address that conche explore has printed")
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


async def refuse(send: Send, error: RefusedError) -> None:
    """One line of JSON; the connection ends, so that nothing more is sent to nobody."""
    body = json.dumps({"error": error.why}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _enter(send: Send, where: str, cookie: str) -> None:
    """Keep the token in a cookie that no script can read, and out of the address."""
    headers = [
        (b"location", where.encode()),
        (b"set-cookie", f"{cookie}; Path=/; HttpOnly; SameSite=Strict".encode()),
        (b"content-length", b"0"),
    ]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _headers(scope: Scope) -> dict[str, str]:
    """By name; of two with the same name, which browsers never send, both together."""
    found: dict[str, str] = {}
    for key, value in scope["headers"]:
        name = key.decode("latin-1").lower()
        text = value.decode("latin-1")
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def _cookie(text: str, name: str) -> str:
    try:
        found = SimpleCookie(text).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _length(headers: dict[str, str]) -> int:
    text = headers.get("content-length", "0")
    if not text.isascii() or not text.isdigit():
        raise RefusedError(400, "the length of the body is not a number")
    return int(text[:20])


def _too_large(most: int) -> str:
    return f"larger than the {most // 1024} kB that are taken here"
