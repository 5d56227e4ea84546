#!/usr/bin/env bash
# starlette 1.10.0 (PyPI), its TestClient, beside uvicorn 0.38.0 and the ASGITransport of httpx 0.28.1; fastapi 0.165.0
#
# Behaviour: TestClient decodes the path of a request twice. Under a server and under httpx's own transport it is decoded once. So an id
# with a percent sign, written as URLs want it, reaches the handler changed in tests only.
#
# Why it matters: ids of threads come from clients, and may hold any character. A router that decodes the raw path itself, because an
# encoded slash must not end a segment, passes its tests and fails in production, or the other way round.
#
# Output:
#   /threads/100%2525: uvicorn: 100%25; ASGITransport: 100%25; TestClient: 100%
#   /threads/a%252Fb: uvicorn: a%2Fb; ASGITransport: a%2Fb; TestClient: Not Found
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check \
    starlette==1.10.0 fastapi==0.165.0 uvicorn==0.38.0 httpx==0.28.1 httpx2==2.16.2
cat > "$dir/run.py" <<'END'
import asyncio
import json
import threading
import time
import urllib.error
import urllib.request

import httpx
import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient

app = FastAPI()


@app.get("/threads/{thread_id}")
def read(thread_id: str):
    return thread_id


def said(body):
    value = json.loads(body)
    return value if isinstance(value, str) else value["detail"]


def by_server(path):
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return said(answer.read())
    finally:
        server.should_exit = True
        thread.join()


async def by_transport(path):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as client:
        return said((await client.get(path)).content)


for path, once, twice in [("/threads/100%2525", "100%25", "100%"), ("/threads/a%252Fb", "a%2Fb", "Not Found")]:
    answers = by_server(path), asyncio.run(by_transport(path)), said(TestClient(app).get(path).content)
    print(f"{path}: uvicorn: {answers[0]}; ASGITransport: {answers[1]}; TestClient: {answers[2]}")
    assert answers == (once, once, twice)
END
"$dir/venv/bin/python" -W ignore "$dir/run.py"
