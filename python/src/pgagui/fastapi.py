"""A router for FastAPI: clients of AG-UI run agents, reload, follow and stop them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from ._recorder import Agent, History, OnConcurrentRun
from ._routes import METHODS, Options, serve
from .store import AsyncStore


def router(
    store: AsyncStore,
    agent: Agent | None = None,
    *,
    agents: Mapping[str, Agent] | None = None,
    scope: Callable[..., Any] | None = None,
    history: History = "fill",
    on_concurrent_run: OnConcurrentRun = "refuse",
    queue_timeout: float = 60.0,
    repair_tool_calls: bool = False,
) -> APIRouter:
    """Returns a router with the paths and bodies of `pgagui serve`.

        app = FastAPI()
        app.include_router(router(AsyncStore("postgresql://…"), agent))

    It opens the store when the program starts, and closes it when that ends.

    An agent is a function of a RunAgentInput that returns an async iterable of events. agents has
    several by their names; one alone is called "agent": POST /agent/agent/run. scope is a
    dependency that returns the tenant or user of a request, and may refuse it. For history,
    on_concurrent_run and queue_timeout see AsyncStore.record; repair_tool_calls gives the agent
    messages as repair_tool_calls() returns them.

    A run does not end with its request. What the router does not have is answered with 501.
    """
    named = dict(agents or {})
    if agent is not None:
        named["agent"] = agent
    options = Options(named, history, on_concurrent_run, queue_timeout, repair_tool_calls)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None, None]:
        async with store:
            yield

    api = APIRouter(lifespan=lifespan)

    async def of_all() -> str:
        return ""

    async def answer(
        request: Request, path: str, scope: str = Depends(scope or of_all)
    ) -> Response:
        return await serve(request, path, store, scope, options)

    api.add_api_route("/{path:path}", answer, methods=METHODS, include_in_schema=False)
    return api
