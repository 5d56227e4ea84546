"""pgagui.fastapi.router over HTTP, beside `pgagui serve` on the same database."""

import asyncio
import os
import re
import socket
import sys
from contextlib import asynccontextmanager
from types import SimpleNamespace
from urllib.parse import quote

import httpx
import pytest
import uvicorn
import yaml  # type: ignore[import-untyped]
from fastapi import FastAPI, Header, HTTPException
from starlette.applications import Starlette
from starlette.routing import Mount

from pgagui import AsyncStore
from pgagui.fastapi import router
from pgagui.starlette import route

from .conftest import PROGRAM, ROOT, collect, finished, message, run_input, shown, started, until
from .test_fastapi import frames, words


class Echo:
    """An agent that says what it gets, and waits in the middle until it may go on."""

    def __init__(self):
        self.inputs, self.may_end = [], asyncio.Event()
        self.may_end.set()

    async def __call__(self, run_input):
        self.inputs.append(run_input)
        run, thread = run_input["runId"], run_input["threadId"]
        yield started(run, thread)
        first, *rest = message("one ", "two ", id=f"a-{run}")
        yield first
        yield rest[0]
        await self.may_end.wait()
        for event in rest[1:]:
            yield event
        yield finished(run, thread)

    def texts(self):
        return [said["content"] for said in self.inputs[-1]["messages"]]


@asynccontextmanager
async def served(app):
    """An HTTP client of an application, which runs in this process."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve([listener]))
        await until(lambda: server.started or task.done())
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
                yield client
        finally:
            server.should_exit = True
            await task


@asynccontextmanager
async def routed(address, agent, prefix="", **options):
    app = FastAPI()
    app.include_router(
        router(AsyncStore(address, check_every=0.1), agent, **options), prefix=prefix
    )
    async with served(app) as client:
        client.base_url = client.base_url.join(prefix)
        yield client


@asynccontextmanager
async def pgagui_serve(address):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "serve", "--listen", f"127.0.0.1:{port}", "--insecure", "--explorer=false",
        "--agent", "agent=http://127.0.0.1:1", env=os.environ | {"DATABASE_URL": address},
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:

            async def listens():
                try:
                    return (await client.get("/healthz")).status_code == 200
                except httpx.ConnectError:
                    assert process.returncode is None
                    return False

            await until(listens)
            yield client
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def run(client, run_id, *messages, thread="trip", **more):
    """Runs to the end, and returns the events and the header of the answer."""
    body = run_input(run_id, thread, **more) | {"messages": list(messages)}
    async with client.stream("POST", "/agent/agent/run", json=body) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"] == "text/event-stream"
        events = await collect(frames(response))
        return [event for _, event in events], response.headers.get("pgagui-parent-run")


def said(id, role, content):
    return {"id": id, "role": role, "content": content}


async def test_a_client_that_edits_and_regenerates_gets_a_branch(address):
    agent = Echo()
    async with routed(address, agent, prefix="/agui") as client:
        u1, u2 = said("u1", "user", "Lisbon?"), said("u2", "user", "When?")
        events, parent = await run(client, "r1", u1)
        assert [event["type"] for event in events][-1] == "RUN_FINISHED" and parent is None
        a1 = said("a-r1", "assistant", "one two ")
        _, parent = await run(client, "r2", u1, a1, u2)
        assert parent == "r1" and agent.texts() == ["Lisbon?", "one two ", "When?"]
        _, parent = await run(client, "r3", u1, a1, said("u2", "user", "How?"))
        assert parent == "r1" and agent.texts() == ["Lisbon?", "one two ", "How?"]
        _, parent = await run(client, "r4", u1, a1)
        assert parent == "r1", "an edit by leaving out"
        _, parent = await run(client, "r5", said("u9", "user", "Madrid?"))
        assert parent == "r4" and agent.texts() == ["Lisbon?", "one two ", "one two ", "Madrid?"]
        _, parent = await run(client, "r6", u1)
        assert parent is None, "the first answer again"
        runs = (await client.get("/threads/trip/runs")).json()["runs"]
        parents = {one["runId"]: one.get("parentRunId") for one in runs}
        assert parents == dict(r1=None, r2="r1", r3="r1", r4="r1", r5="r4", r6=None)


async def test_a_client_without_the_history_gets_it_before_the_run(address):
    agent = Echo()
    async with routed(address, agent) as client:
        await run(client, "r1", said("u1", "user", "Lisbon?"))
        new = {"pgagui": {"history": "new"}}
        events, _ = await run(client, "r2", said("u2", "user", "When?"))
        first, history = (one for one in events if one["type"] == "MESSAGES_SNAPSHOT")
        assert [one["id"] for one in first["messages"]] == ["u1"]
        assert [one["id"] for one in history["messages"]] == ["u1", "a-r1", "u2"]
        assert words([(None, event) for event in events]) == "one two "
        events, _ = await run(client, "r3", said("u3", "user", "How?"), forwardedProps=new)
        assert "MESSAGES_SNAPSHOT" not in [event["type"] for event in events]
        assert agent.texts() == ["Lisbon?", "one two ", "When?", "one two ", "How?"]


async def test_a_page_leaves_reloads_and_stops(address):
    agent = Echo()
    agent.may_end.clear()
    async with routed(address, agent) as client:
        body = run_input("r1") | {"messages": [said("u1", "user", "Lisbon?")]}
        async with client.stream("POST", "/agent/agent/run", json=body) as response:
            stream = frames(response)
            first = [await anext(stream) for _ in range(3)]
        refused = await client.post("/agent/agent/run", json=run_input("r2"))
        assert (refused.status_code, refused.json()["runId"]) == (409, "r1")
        assert refused.headers["content-type"] == "application/problem+json"
        after = {"Last-Event-ID": first[-1][0]}
        ways = [
            ("POST", "/agent/agent/run", {"json": body}),  # the same request attaches to its run
            ("POST", "/agent/agent/connect", {"json": body}),
            ("POST", "/agent/agent/connect", {"json": body, "headers": after}),
            ("GET", "/threads/trip/events", {}),
            ("GET", "/threads/trip/events?run=r1", {}),
        ]

        async def read(way):
            method, path, more = way
            async with client.stream(method, path, **more) as response:
                assert response.status_code == 200
                return [event async for _, event in frames(response)]

        reading = [asyncio.create_task(read(way)) for way in ways]
        await asyncio.sleep(0.1)
        agent.may_end.set()
        for events in await asyncio.gather(*reading):
            assert events[-1]["type"] == "RUN_FINISHED", events
        agent.may_end.clear()
        async with client.stream("POST", "/agent/agent/run", json=run_input("r2")) as response:
            stream = frames(response)
            await anext(stream)
            stopped = await client.post("/threads/trip/stop", json={"reason": "enough"})
            assert stopped.json() == {"stopped": 1}
            rest = await collect(stream)
        # This client names no protocol: it may be one before AG-UI 1.0, which refuses the outcome.
        assert rest[-1][1]["result"]["stopped"] and "outcome" not in rest[-1][1]


async def test_answers_are_those_of_pgagui_serve(address):
    agent = Echo()
    thread = quote("a/b ü%2F", safe="")
    async with routed(address, agent) as client, pgagui_serve(address) as server:
        await run(client, "r/1", said("u1", "user", "Lisbon?"), thread="a/b ü%2F", state={"a": 1.0})
        await run(client, "r2", said("u2", "user", "x"), thread="other")
        for body in (
            {"runId": "f1", "parentRunId": "r/1"},
            {"runId": "f2", "beforeMessageId": "u1"},
        ):
            forked = [
                await one.post(f"/threads/{thread}/fork", json=body)
                for one in (client, client, server)
            ]
            assert [one.status_code for one in forked] == [200] * 3, forked[0].text
            answers = [one.json() for one in forked]
            assert answers[0] == answers[1] == answers[2]
        changed = {"title": "Trip", "metadata": {"a": [1]}}
        patched = await client.patch(f"/threads/{thread}", json=changed)
        assert patched.json() == (await server.patch(f"/threads/{thread}", json=changed)).json()
        for path in [
            "/threads", "/threads?limit=1", "/threads?archived=with&title=Trip",
            "/threads?status=failed", '/threads?metadata={"a":[1]}', "/threads?limit=0",
            "/threads?nope=1", "/threads?stale=maybe", "/threads?since=yesterday",
            "/threads?since=2020-01-01T00:00:00Z", "/threads?cursor=x", "/waiting",
            "/waiting?limit=5",
            *(
                f"/threads/{thread}{rest}"
                for rest in [
                    "", "/runs", "/runs/r%2F1", "/runs/none", "/head", "/conversation",
                    "/conversation?run=r%2F1", "/conversation?at_seq=2", "/messages",
                    "/messages?run=r%2F1", "/messages?at_seq=-1",
                    "/messages?at_time=2020-01-01T00:00:00Z", "/state",
                    "/state?run=r%2F1", "/interrupts", "/interrupts?run=none", "/events?run=none",
                ]
            ),
            "/threads/none", "/threads/none/conversation", "/threads/none/events", "/threads/a%00b",
        ]:  # fmt: skip
            ours, theirs = await client.get(path), await server.get(path)
            assert ours.status_code == theirs.status_code, (path, ours.text, theirs.text)
            if ours.status_code == 200:
                assert ours.json() == theirs.json(), path
            else:
                have, want = ours.json(), theirs.json()
                assert have.get("sqlstate") == want.get("sqlstate"), (path, have, want)
                assert have["title"] == want["title"] and have["detail"], path
        for path, body in [
            ("/agent/none/run", run_input()), ("/agent/agent/run", {}), ("/agent/agent/run", []),
            ("/agent/agent/run", {"threadId": "t"}), ("/agent/agent/connect", {"runId": "r"}),
            ("/agent/agent/run", run_input(messages={})), (f"/threads/{thread}/fork", {}),
            ("/agent/agent/run", run_input(forwardedProps={"pgagui": {"history": "none"}})),
            ("/threads/none/fork", {"runId": "x"}), (f"/threads/{thread}/stop", {"nope": "x"}),
        ]:  # fmt: skip
            ours, theirs = await client.post(path, json=body), await server.post(path, json=body)
            assert ours.status_code == theirs.status_code, (path, body, ours.text, theirs.text)
        wrong = await client.get(f"/threads/{thread}/events", headers={"Last-Event-ID": "rubbish"})
        assert wrong.status_code == 422 and "position" in wrong.json()["detail"]


async def test_the_program_of_the_readme(address, monkeypatch):
    monkeypatch.setitem(sys.modules, "my_agent", SimpleNamespace(agent=Echo()))
    monkeypatch.setattr("pgagui.AsyncStore", lambda _: AsyncStore(address))
    async with served(shown("../README.md", "From Python")["app"]) as client:
        assert (await client.post("/agent/agent/run", json=run_input())).status_code == 200
        messages = (await client.get("/threads/trip/messages")).json()["messages"]
        assert [said["content"] for said in messages] == ["Lisbon?", "one two "]


async def test_each_route_of_the_api_is_there_or_says_where_it_is(address):
    """The table of docs/start/python.md has those that are there."""
    paths = yaml.safe_load((ROOT / "server/openapi.yaml").read_text())["paths"]
    page = (ROOT / "docs/start/python.md").read_text()
    listed = set(re.findall(r"^\| `([A-Z]+ /[^`]*)` \|", page, re.MULTILINE))
    have = set()
    async with routed(address, Echo()) as client:
        for path, methods in paths.items():
            for method in methods.keys() & {"get", "post", "put", "patch", "delete"}:
                answer = await client.request(method, path)
                elsewhere = answer.status_code in (405, 501)
                assert not elsewhere or "pgagui serve" in answer.json()["hint"], path
                if not elsewhere:
                    have.add(f"{method.upper()} {path}")
    assert have == listed


async def test_a_dependency_says_whose_threads_they_are(address):
    async def user(authorization: str = Header("")) -> str:
        if not authorization.startswith("user-"):
            raise HTTPException(401, "no token")
        return authorization

    async with routed(address, Echo(), scope=user) as client:
        assert (await client.get("/threads")).status_code == 401
        for name in ("user-1", "user-2"):
            client.headers["Authorization"] = name
            await run(client, "r1", said("u1", "user", name))
            assert len((await client.get("/threads")).json()["threads"]) == 1
            [one] = (await client.get("/threads/trip/messages")).json()["messages"][:1]
            assert one["content"] == name


async def test_starlette_alone(address):
    store = AsyncStore(address)
    app = Starlette(routes=[Mount("/agui", routes=[route(store, {"agent": Echo()})])])
    async with store, served(app) as client:
        client.base_url = client.base_url.join("/agui")
        await run(client, "r1", said("u1", "user", "x"), thread="a/b")
        assert (await client.get("/threads/a%2Fb/messages")).json()["messages"][0]["content"] == "x"


async def test_an_agent_that_fails_and_one_that_yields_rubbish(address):
    async def fails(run_input):
        yield started(run_input["runId"])
        raise ValueError("no tokens left")

    async def rubbish(_):
        yield 17

    async with routed(address, None, agents={"agent": fails, "rubbish": rubbish}) as client:
        events, _ = await run(client, "r1", said("u1", "user", "x"))
        assert events[-1]["type"] == "RUN_ERROR" and events[-1]["message"] == "no tokens left"
        body = run_input("r2")
        async with client.stream("POST", "/agent/rubbish/run", json=body) as response:
            events = [event async for _, event in frames(response)]
        assert events[-1]["type"] == "RUN_ERROR" and "17" in events[-1]["message"]
        assert (await client.get("/threads/trip")).json()["agent"] == "agent"


async def test_nothing_is_left_after_shutdown(address):
    agent = Echo()
    agent.may_end.clear()
    async with routed(address, agent) as client:
        async with client.stream("POST", "/agent/agent/run", json=run_input("r1")) as response:
            await anext(frames(response))
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, left
    async with AsyncStore(address) as store:
        assert (await store.status("trip", "r1")).status == "cut_off"


@pytest.mark.parametrize("mode", ["queue", "supersede"])
async def test_a_second_message_during_a_run(address, mode):
    agent = Echo()
    agent.may_end.clear()
    async with routed(address, agent, on_concurrent_run=mode) as client:
        u1, u2 = said("u1", "user", "Lisbon?"), said("u2", "user", "And Porto?")
        first = asyncio.create_task(run(client, "r1", u1))
        await until(lambda: agent.inputs)
        second = asyncio.create_task(run(client, "r2", u1, u2))
        if mode == "queue":
            await asyncio.sleep(0.2)
            assert len(agent.inputs) == 1
        else:
            await until(lambda: len(agent.inputs) == 2)
        agent.may_end.set()
        await first
        two, parent = await second
        assert parent == "r1" and two[-1]["type"] == "RUN_FINISHED"
        # What the agent said meanwhile was not removed by a client that could not have it.
        assert agent.texts()[:2] == ["Lisbon?", "one two " if mode == "queue" else "one "]
