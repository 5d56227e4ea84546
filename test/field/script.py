"""What the scripted models say, and how the programs beside this one serve their agents. script.mjs is the same for Node."""

import asyncio
import json
import os
import socket
import sys
import threading
import uuid
from collections import defaultdict

import uvicorn
from fastapi import FastAPI

app = FastAPI()
gates = defaultdict(asyncio.Event)


@app.post("/release/{name}")
async def release(name: str):
    """Lets a model go on that waits in the middle of its answer."""
    gates[name].set()


async def reply(history):
    """The model's answer to a history of (role, text): pieces of text, and calls as (id, name, arguments)."""
    asked = [text for role, text in history if role == "user"][-1]
    results = []
    for role, text in reversed(history):
        if role != "tool":
            break
        results.insert(0, text)
    if results:
        yield "It says: "
        yield ", ".join(results)
        return
    tools = [word for word in asked.split() if word in ("look", "erase", "pick", "shatter")]
    for name in tools:
        yield f"call-{uuid.uuid4().hex[:8]}", name, json.dumps({"at": "it"})
    if tools:
        return
    yield "You "
    if "fail" in asked.split():
        raise RuntimeError("the model is out of order")
    yield "said "
    if "slowly" in asked.split():
        await gates[asked.split()[-1]].wait()
    yield f"{len(asked)} letters \U0001f600." if len(asked) > 1000 else f"{json.dumps(asked)} \U0001f600."


def serve():
    """Serves app until stdin ends. The first line of stdout is the address."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run([listener])
