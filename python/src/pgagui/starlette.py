"""The routes of pgagui.fastapi for a program of Starlette without FastAPI."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ._recorder import Agent, History, OnConcurrentRun
from ._routes import METHODS, Options, serve
from .store import AsyncStore


def route(
    store: AsyncStore,
    agents: Mapping[str, Agent],
    *,
    scope: Callable[[Request], str] = lambda _: "",
    history: History = "fill",
    on_concurrent_run: OnConcurrentRun = "refuse",
    queue_timeout: float = 60.0,
    repair_tool_calls: bool = False,
) -> Route:
    """Returns a route for all paths of `pgagui.fastapi.router`: Mount("/agui", routes=[route(…)]).

    scope returns the tenant or user of a request, and may raise an HTTPException.
    """
    options = Options(agents, history, on_concurrent_run, queue_timeout, repair_tool_calls)

    async def answer(request: Request) -> Response:
        path: str = request.path_params["path"]
        return await serve(request, path, store, scope(request), options)

    return Route("/{path:path}", answer, methods=METHODS)
