"""A database of its own for each test, on the server in PGAGUI_TEST_DATABASE_URL."""

import asyncio
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
import pytest_asyncio
from psycopg import conninfo

from pgagui import AsyncStore

# agent-framework-ag-ui excludes the ag-ui-protocol of the other tests: make test-python runs these
# in the environment ag-ui-0.1.
collect_ignore = [] if find_spec("agent_framework_ag_ui") else ["test_agent_framework.py"]

ROOT = Path(__file__).parents[2]
PROGRAM = os.environ.get("PGAGUI", str(ROOT / "bin" / "pgagui"))


def program(page: str, heading: str) -> str:
    """Returns the first program in Python behind a heading of docs."""
    _, _, section = (ROOT / "docs" / page).read_text().partition(f"\n## {heading}\n")
    found = re.search("```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    assert found, f"{page} has no program in {heading}"
    return found[1]


def shown(page: str, heading: str) -> dict[str, Any]:
    """Executes that program, and returns its names."""
    names: dict[str, Any] = {}
    exec(program(page, heading), names)
    return names


@pytest.fixture(scope="session")
def server():
    address = os.environ.get("PGAGUI_TEST_DATABASE_URL")
    if not address:
        pytest.skip("PGAGUI_TEST_DATABASE_URL is not set: make test-python")
    return address


@pytest.fixture(scope="session")
def template(server):
    """A database with the schema, which tests copy."""
    with database(server, "template1") as address:
        environment = os.environ | {"DATABASE_URL": address}
        subprocess.run([PROGRAM, "migrate", "up"], env=environment, check=True)
        yield conninfo.conninfo_to_dict(address)["dbname"]


@pytest.fixture
def empty(server):
    """The address of a database without the schema."""
    with database(server, "template1") as address:
        yield address


@pytest.fixture
def address(server, template):
    """The address of a database of the test."""
    with database(server, template) as address:
        yield address


@contextmanager
def database(server, template):
    name = f"python_{uuid.uuid4().hex}"
    execute(server, f"create database {name} template {template}")
    # libpq alone would read the user's own settings, and search_path with them.
    yield conninfo.make_conninfo(server, dbname=name)
    execute(server, f"drop database {name} with (force)")


def execute(server, text):
    """Executes a statement on a connection of its own: a test may end all others."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(text)


@pytest.fixture
def pooled(address):
    """The address through PgBouncer in transaction mode."""
    with pooler(address, "transaction") as pooled:
        yield pooled


@contextmanager
def pooler(address, mode):
    """The address through PgBouncer in a mode, which has two connections to the server."""
    program = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
    if program is None:
        assert "pgbouncer" not in os.environ.get("PGAGUI_TEST_REQUIRE", "").split(",")
        pytest.skip("PgBouncer is not installed")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    server = conninfo.conninfo_to_dict(address)
    names = ("host", "port", "user", "password")
    database = " ".join(f"{name}={server[name]}" for name in names if name in server)
    text = (
        f"[databases]\n* = {database}\n[pgbouncer]\npool_mode = {mode}\n"
        f"default_pool_size = 2\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        "unix_socket_dir =\nauth_type = any\n"
    )
    # It refuses to run as root.
    account = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as settings:
        settings.write(text)
        settings.flush()
        os.chmod(settings.name, 0o644)
        process = subprocess.Popen([program, "-q", settings.name], user=account)
        try:
            while True:
                assert process.poll() is None, "PgBouncer has ended"
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
            yield conninfo.make_conninfo(address, host="127.0.0.1", port=port, sslmode="disable")
        finally:
            process.kill()
            process.wait()


@pytest.fixture(params=["psycopg", "asyncpg"])
def opened(request):
    """Opens stores, over each driver: async with opened(address) as store."""
    return over_asyncpg if request.param == "asyncpg" else AsyncStore


@asynccontextmanager
async def over_asyncpg(address, **settings):
    async with pool_of_asyncpg(address) as pool, AsyncStore(pool, **settings) as store:
        yield store


def pool_of_asyncpg(address, **settings):
    """Works through poolers, too."""
    server = conninfo.conninfo_to_dict(address)
    server = {"database" if name == "dbname" else name: server[name] for name in server}
    server["ssl"] = server.pop("sslmode", None)
    return asyncpg.create_pool(**(server | {"min_size": 0, "statement_cache_size": 0} | settings))


@pytest_asyncio.fixture
async def store(address, opened):
    """A store, after which no task is left."""
    async with opened(address, check_every=0.1) as store:
        yield store
    await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, left


def run_input(run="run-1", thread="trip", text="Lisbon?", **more):
    return {
        "threadId": thread, "runId": run, "state": {}, "tools": [], "context": [],
        "forwardedProps": {}, "messages": [{"id": f"u-{run}", "role": "user", "content": text}],
    } | more  # fmt: skip


def started(run="run-1", thread="trip"):
    return {"type": "RUN_STARTED", "threadId": thread, "runId": run}


def finished(run="run-1", thread="trip"):
    return {"type": "RUN_FINISHED", "threadId": thread, "runId": run}


def message(*words, id="m1"):
    yield {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}
    for word in words:
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": word}
    yield {"type": "TEXT_MESSAGE_END", "messageId": id}


async def until(condition, seconds=20.0):
    """Waits for a condition, which may be async."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        found = condition()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        assert asyncio.get_running_loop().time() < deadline, "it never happened"
        await asyncio.sleep(0.02)


class outage:
    """Closes all connections of a database, and allows no other."""

    def __init__(self, address):
        self.name = psycopg.conninfo.conninfo_to_dict(address)["dbname"]
        self.server = psycopg.conninfo.make_conninfo(address, dbname="postgres")

    async def __aenter__(self):
        await self.execute("false")

    async def __aexit__(self, *_):
        await self.execute("true")

    async def execute(self, allow):
        async with await psycopg.AsyncConnection.connect(
            self.server, autocommit=True
        ) as connection:
            await connection.execute(f"alter database {self.name} allow_connections {allow}")
            await connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s",
                [self.name],
            )


async def collect(events):
    return [event async for event in events]


async def crash(address):
    """Kills a process of the server, which then crashes and recovers, for all databases."""
    async with await psycopg.AsyncConnection.connect(address) as connection:
        pid = connection.info.backend_pid
        command = Path(f"/proc/{pid}/cmdline")
        if not command.exists() or not command.read_bytes().startswith(b"postgres: "):
            pytest.skip("the server is on another machine, or in a container: it cannot be killed")
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            while True:
                await connection.execute("select pg_sleep(0.01)")
