"""The addresses that the page asks for, and their answers in JSON."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..common.plain import defined
from ..common.words import one_line
from ..errors import ConcheError, ParameterError
from .guard import RefusedError
from .jobs import Jobs, TooManyError
from .settings import Setting, Wish, curves_of
from .shown import Shown

Endpoint = Callable[[Request], Awaitable[Response]]
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def static_files() -> dict[str, bytes]:
    """What browsers are given, by name: read once, so that no request reaches the file system."""
    folder = files("conche.explore") / "static"
    return {
        each.name: each.read_bytes()
        for each in folder.iterdir()
        if each.name.rpartition(".")[2] in TYPES
    }


class Page:
    """Everything behind the guard: one method for every address.

    Parameters
    ----------
    shown : the model or stream that was given on the command line, if any.
    """

    def __init__(self, shown: Shown):
        self.shown, self.served, self.jobs = shown, static_files(), Jobs()

    def app(self) -> Starlette:
        """The addresses, and what is said where something is wrong."""
        routes = [
            Route("/", self.file),
            Route("/static/{name}", self.file),
            Route("/api/nodes", self.theory("curve_answer")),
            Route("/api/advice", self.theory("advice_answer")),
            Route("/api/rounds", self.theory("rounds_answer")),
            Route("/api/tasks", self.tasks),
            Route("/api/model", self.model, methods=["GET", "POST"]),
            Route("/api/simulations", self.simulations, methods=["POST"]),
            Route("/api/simulations/{name}", self.simulation, methods=["GET", "DELETE"]),
        ]
        handlers: dict[Any, Any] = {
            HTTPException: _no,
            RefusedError: lambda request, error: _said(error.status, error.why),  # while read
            TooManyError: lambda request, error: _said(429, one_line(error)),
            ConcheError: lambda request, error: _said(422, one_line(error)),
            OSError: lambda request, error: _said(422, one_line(error)),
            MemoryError: lambda request, error: _said(422, "not enough memory for that"),
            Exception: lambda request, error: _said(
                500, f"this is a bug in Conche ({type(error).__name__}: {one_line(error)})"
            ),
        }
        return Starlette(routes=routes, lifespan=self.lifespan, exception_handlers=handlers)

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """While it runs; simulations end with it."""
        async with anyio.create_task_group() as group:
            group.start_soon(run_in_threadpool, _warm)
            yield
            await self.jobs.close()
            group.cancel_scope.cancel()

    async def file(self, request: Request) -> Response:
        """The page itself, or one of its files."""
        name = request.path_params.get("name", "index.html")
        if name not in self.served:
            raise HTTPException(404, "there is no such file")
        kind = TYPES[name.rpartition(".")[2]]
        return Response(self.served[name], media_type=f"{kind}; charset=utf-8")

    def theory(self, which: str) -> Endpoint:
        """What `answers` says of the stream that is asked about."""

        async def answer(request: Request) -> Response:
            setting = _setting(request)
            return await _answer(lambda: getattr(_answers(), which)(setting))

        return answer

    async def tasks(self, request: Request) -> Response:
        """The error over tasks, for chosen numbers of nodes."""
        setting = _setting(request)
        chosen = curves_of(request.query_params.get("nodes", "1,8"), setting)
        return await _answer(lambda: _answers().tasks_answer(setting, chosen))

    async def model(self, request: Request) -> Response:
        """The model that was given, or one that is dropped in."""
        if request.method != "POST":
            return await _answer(self.shown.described)
        body, name = await request.body(), request.query_params.get("name", "model.conche")
        return await _answer(lambda: self.shown.dropped(body, name))

    async def simulations(self, request: Request) -> Response:
        """Start one."""
        try:
            given = json.loads(await request.body())
        except (ValueError, RecursionError):
            raise ParameterError("a simulation is asked for with a JSON object") from None
        wish = Wish.read(given)
        left_out = await run_in_threadpool(_left_out, wish)
        name = await self.jobs.start(wish, left_out)
        return JSONResponse({"id": name, "left_out": left_out}, 202)

    async def simulation(self, request: Request) -> Response:
        """How far one is; or stop it."""
        name = request.path_params["name"]
        if name not in self.jobs.known:
            raise HTTPException(404, "there is no such simulation")
        if request.method == "DELETE":
            self.jobs.stop(name)
        return JSONResponse(defined(self.jobs.look(name)))


def _setting(request: Request) -> Setting:
    return Setting.read(request.query_params)


async def _answer(work: Callable[[], Any]) -> Response:
    """In a thread, so that other requests do not wait for it."""
    found = await run_in_threadpool(work)
    return JSONResponse(await run_in_threadpool(defined, found))


def _answers() -> Any:
    from . import answers  # late: the page shows before scikit-learn is imported

    return answers


def _left_out(wish: Wish) -> list[int]:
    from .worker import possible

    return possible(wish)[1]


def _warm() -> None:
    """Import what the first picture needs, and foresee once."""
    _answers().curve_answer(Setting.read({}))
    _answers().advice_answer(Setting.read({}))


async def _no(request: Request, error: HTTPException) -> Response:
    said = "there is nothing at this address" if error.detail == "Not Found" else error.detail
    return _said(error.status_code, said)


def _said(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status)
