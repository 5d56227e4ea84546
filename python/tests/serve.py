"""A server of the router for the tests of clients: serve.py ADDRESS AGENTS, by name as JSON.

It writes its address when it listens. Its agents are at addresses, as those of `pgagui serve`.
"""

import asyncio
import contextlib
import json
import signal
import socket
import sys

import httpx
import uvicorn
from fastapi import FastAPI

from pgagui import AsyncStore
from pgagui.fastapi import router


def remote(client, url):
    async def agent(run_input):
        async with client.stream("POST", url, json=run_input) as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    yield line[6:]

    return agent


async def main(address, agents):
    async with httpx.AsyncClient(timeout=None) as client:
        named = {name: remote(client, url) for name, url in json.loads(agents).items()}
        app = FastAPI()
        app.include_router(router(AsyncStore(address, check_every=0.1), agents=named))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = uvicorn.Server(
                uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
            )
            serving = asyncio.create_task(server.serve([listener]))
            print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
            await serving


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
