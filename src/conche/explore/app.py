"""The addresses that the page asks for, and their answers in JSON."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
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
from .jobs import Jobs, TooManyError
from .settings import Setting, Wish, nodes_listed
from .shown import Shown

TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def static_files() -> dict[str, bytes]:
    """What browsers are given, by name: read once, so that no request reaches the file system."""
    folder = files("conche.explore") / "static"
    return {
        each.name: each.read_bytes()
        for each in folder.iterdir()
        if each.name.rpartition(".")[2] in TYPES
    }


def make_app(shown: Shown) -> Starlette:
    """Everything behind the guard.

    Parameters
    ----------
    shown : the model or stream that was given on the command line, if any.
    """
    served, jobs = static_files(), Jobs()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(run_in_threadpool, _warm)
            yield
            await jobs.close()
            group.cancel_scope.cancel()

    async def file(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in served:
            raise HTTPException(404, "there is no such file")
        kind = TYPES[name.rpartition(".")[2]]
        return Response(served[name], media_type=f"{kind}; charset=utf-8")

    async def nodes(request: Request) -> Response:
        setting = _setting(request)
        return await _answer(lambda: _answers().curve_answer(setting))

    async def advice(request: Request) -> Response:
        setting = _setting(request)
        return await _answer(lambda: _answers().advice_answer(setting))

    async def rounds(request: Request) -> Response:
        setting = _setting(request)
        return await _answer(lambda: _answers().rounds_answer(setting))

    async def tasks(request: Request) -> Response:
        setting = _setting(request)
        chosen = nodes_listed(request.query_params.get("nodes", "1,8"), setting.n_features)
        return await _answer(lambda: _answers().tasks_answer(setting, chosen))

    async def model(request: Request) -> Response:
        if request.method == "POST":
            body = await request.body()
            name = request.query_params.get("name", "model.conche")
            return await _answer(lambda: shown.dropped(body, name))
        return await _answer(shown.described)

    async def simulations(request: Request) -> Response:
        try:
            wish = Wish.read(json.loads(await request.body()))
        except (ValueError, RecursionError) as error:
            if isinstance(error, ConcheError):
                raise
            raise ParameterError("a simulation is asked for with a JSON object") from None
        left_out = await run_in_threadpool(_left_out, wish)
        return JSONResponse({"id": await jobs.start(wish, left_out), "left_out": left_out}, 202)

    async def simulation(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in jobs.known:
            raise HTTPException(404, "there is no such simulation")
        if request.method == "DELETE":
            jobs.stop(name)
        return JSONResponse(defined(jobs.known[name].as_dict()))

    routes = [
        Route("/", file),
        Route("/static/{name}", file),
        Route("/api/nodes", nodes),
        Route("/api/advice", advice),
        Route("/api/rounds", rounds),
        Route("/api/tasks", tasks),
        Route("/api/model", model, methods=["GET", "POST"]),
        Route("/api/simulations", simulations, methods=["POST"]),
        Route("/api/simulations/{name}", simulation, methods=["GET", "DELETE"]),
    ]
    handlers: dict[Any, Any] = {
        HTTPException: _no,
        TooManyError: lambda request, error: _said(429, one_line(error)),
        ConcheError: lambda request, error: _said(422, one_line(error)),
        MemoryError: lambda request, error: _said(422, "not enough memory for that"),
    }
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


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


async def _no(request: Request, error: Any) -> Response:
    said = error.detail if error.status_code in (404, 405) else "that cannot be answered"
    return _said(error.status_code, said)


def _said(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status)
