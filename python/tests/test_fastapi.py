"""The program of docs/start/python.md, in a process of its own."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
from contextlib import asynccontextmanager

import httpx

from .conftest import ROOT, collect, run_input, until

SOURCE = str(ROOT / "python/src")


@asynccontextmanager
async def backend(address, folder):
    page = (ROOT / "docs/start/python.md").read_text()
    [program, _] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (folder / "app.py").write_text(program)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error::ResourceWarning", "-m", "uvicorn", "app:app",
        "--port", str(port), "--timeout-graceful-shutdown", "1",
        cwd=folder, env=os.environ | {"DATABASE_URL": address, "PYTHONPATH": SOURCE},
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:

            async def listens():
                try:
                    return (await client.get("/threads")).status_code == 200
                except httpx.ConnectError:
                    assert server.returncode is None
                    return False

            await until(listens)
            yield server, client
    finally:
        if server.returncode is None:
            server.kill()
            await server.communicate()


async def frames(response):
    """Yields the id and the event of each frame of a stream."""
    place = None
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "id":
            place = value
        elif name == "data":
            yield place, json.loads(value)
            place = None


def words(seen):
    return "".join(event["delta"] for _, event in seen if "delta" in event)


async def test_a_page_that_leaves_and_reloads(address, tmp_path):
    sentence = "Three days are enough for Lisbon. A week is better. "
    async with backend(address, tmp_path) as (_, client):
        assert (await client.get("/threads")).json() == []
        async with client.stream("POST", "/agent", json=run_input()) as response:
            stream = frames(response)
            first = [await anext(stream) for _ in range(4)]
        assert [place for place, _ in first] == ["1", "2", "3", "4"]
        second = await client.post("/agent", json=run_input("run-2"))
        assert second.status_code == 409 and "run-1" in second.json()["detail"]
        async with client.stream("GET", "/threads/trip/events") as response:
            reloaded = await collect(frames(response))
        assert reloaded[-1][1]["type"] == "RUN_FINISHED"
        [history] = [event for _, event in reloaded if event["type"] == "MESSAGES_SNAPSHOT"]
        question, answer = history["messages"]
        assert question["content"] == "Lisbon?"
        assert answer["content"] + words(reloaded) == sentence
        for last in (first[-1][0], next(place for place, _ in reloaded if place)):
            headers = {"Last-Event-ID": last}
            async with client.stream("GET", "/threads/trip/events", headers=headers) as response:
                rest = await collect(frames(response))
            assert int(rest[0][0].split("-")[0]) == int(last.split("-")[0]) + 1
            assert sentence.endswith(words(rest)) and rest[-1] == reloaded[-1]
        wrong = await client.get("/threads/trip/events", headers={"Last-Event-ID": "rubbish"})
        assert wrong.status_code == 422 and "position" in wrong.json()["detail"]
        [thread] = (await client.get("/threads")).json()
        assert (thread["thread_id"], thread["status"], thread["runs"]) == ("trip", "finished", 1)


async def test_a_stop_from_another_process_and_a_shutdown(store, address, tmp_path):
    async with backend(address, tmp_path) as (server, client):
        async with client.stream("POST", "/agent", json=run_input()) as response:
            stream = frames(response)
            await anext(stream)
            await store.request_stop("trip")
            rest = await collect(stream)
        assert rest[-1][1]["outcome"] == {"type": "cancelled"}
        async with client.stream("POST", "/agent", json=run_input("run-2")) as response:
            await anext(frames(response))
            server.send_signal(signal.SIGTERM)
            _, log = await server.communicate()
        assert b"never retrieved" not in log and b"was destroyed" not in log, log.decode()
    status = await store.status("trip", "run-2")
    assert (status.status, status.cut_off_reason) == ("cut_off", "its process was shut down")
