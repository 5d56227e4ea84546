"""A checkpointer of LangGraph, which keeps the state of graphs beside the log of the same thread.

pip install "pgagui[langgraph]"
"""

from __future__ import annotations

import asyncio
import builtins
import json
import random
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ._database import Rows
from ._error import Error
from .errors import InvalidArgument, UnknownCheckpoint, UnknownRun, UnknownThread
from .store import AsyncStore, Store

PAGE_ROWS = 50  # checkpoints that one statement reads
LEAST_BYTES = 128  # of an element on average: a part takes about 130 bytes beside its body
MSGPACK = "msgpack"
SHARED = f'["{MSGPACK}:'  # how a list begins whose elements are stored once
MAX_LISTS = 256  # of which a saver notes what the database has


class Call(NamedTuple):
    """A statement and its values."""

    text: str
    values: dict[str, Any]


class Known(NamedTuple):
    """A version of a list: how many elements it has, and what their encoding is."""

    version: str
    elements: int
    length: int
    digest: int


Channel = tuple[str, str, str]  # thread, namespace and name


class PgaguiSaver(BaseCheckpointSaver[Any]):
    """Keeps checkpoints in the schema agui: each element of a list once, each value once a version.

        async with AsyncStore("postgresql://…") as store:
            graph = builder.compile(checkpointer=PgaguiSaver(store))
            await graph.ainvoke({"messages": […]}, {"configurable": {"thread_id": "trip"}})

    store is a Store or an AsyncStore: its connections, and its scope. Either serves both kinds of
    calls. With a Store, calls of asyncio run in threads. With an AsyncStore, the others come from
    threads other than that of its loop, as those of LangGraph do.

    If `run_id` in `configurable` is the id of a run of AG-UI, checkpoint_at finds what belongs to
    it. serde makes bytes of values. Elements of lists are shared with LangGraph's own only.
    """

    def __init__(
        self, store: Store | AsyncStore, *, serde: SerializerProtocol | None = None
    ) -> None:
        super().__init__(serde=serde)
        self._store = store
        # In a transaction of the caller a put that fails cannot be repeated.
        self._lists = _Lists(MAX_LISTS if store._database.has_pool else 0)
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint that config names, or the one with the greatest id."""
        return next(iter(self._tuples(self._rows(_one(config)))), None)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint that config names, or the one with the greatest id."""
        return next(iter(self._tuples(await self._arows(_one(config)))), None)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yields checkpoints, the greatest id first: of a thread, or of all of the scope.

        filter: what their metadata contains, as @> of jsonb has it.
        """
        pages = _Pages(config, filter, before, limit)
        while call := pages.next():
            rows = self._rows(call)
            pages.take(rows)
            yield from self._tuples(rows)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yields checkpoints, the greatest id first: of a thread, or of all of the scope."""
        pages = _Pages(config, filter, before, limit)
        while call := pages.next():
            rows = await self._arows(call)
            pages.take(rows)
            for found in self._tuples(rows):
                yield found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint with what has changed. One with the same id is replaced."""
        call, lists = self._put(config, checkpoint, metadata, new_versions)
        try:
            self._rows(call)
        except UnknownCheckpoint:  # a list to append to was removed
            self._lists.forget(lists)
            call, lists = self._put(config, checkpoint, metadata, new_versions)
            self._rows(call)
        self._lists.note(lists)
        return _config(*_place(config)[:2], checkpoint["id"])

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint with what has changed. One with the same id is replaced."""
        call, lists = self._put(config, checkpoint, metadata, new_versions)
        try:
            await self._arows(call)
        except UnknownCheckpoint:  # a list to append to was removed
            self._lists.forget(lists)
            call, lists = self._put(config, checkpoint, metadata, new_versions)
            await self._arows(call)
        self._lists.note(lists)
        return _config(*_place(config)[:2], checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Stores what a task wrote after a checkpoint, each write once."""
        self._rows(self._put_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Stores what a task wrote after a checkpoint, each write once."""
        await self._arows(self._put_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Removes the checkpoints of a thread. Its log stays."""
        self._rows(_of_thread("remove_checkpoints", thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """Removes the checkpoints of a thread. Its log stays."""
        await self._arows(_of_thread("remove_checkpoints", thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Removes the checkpoints of runs, in all threads of the scope."""
        self._rows(_of_runs(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Removes the checkpoints of runs, in all threads of the scope."""
        await self._arows(_of_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints of a thread to one that has none."""
        self._rows(_copy(source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints of a thread to one that has none."""
        await self._arows(_copy(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Removes checkpoints of threads: all, or ("keep_latest") what the newest do not need."""
        for call in _prune(thread_ids, strategy):
            self._rows(call)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Removes checkpoints of threads: all, or ("keep_latest") what the newest do not need."""
        for call in _prune(thread_ids, strategy):
            await self._arows(call)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Returns what built the values of DeltaChannels, in one call for the whole lineage."""
        rows = self._rows(_history(config, channels)) if channels else []
        return self._deltas(channels, rows)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Returns what built the values of DeltaChannels, in one call for the whole lineage."""
        rows = await self._arows(_history(config, channels)) if channels else []
        return self._deltas(channels, rows)

    def checkpoint_at(
        self, thread_id: str, run_id: str, *, checkpoint_ns: str = ""
    ) -> RunnableConfig | None:
        """Returns the config of the checkpoint that belongs to a run of the log.

        It is the one stored last at the run, or else at the nearest run before it on its lineage.
        Invoke the graph with it to continue from a branch of the conversation.
        """
        try:
            rows = self._rows(_at_run(thread_id, run_id, checkpoint_ns))
        except (UnknownThread, UnknownRun):
            return None
        return _config(thread_id, checkpoint_ns, rows[0]["checkpoint_id"]) if rows else None

    async def acheckpoint_at(
        self, thread_id: str, run_id: str, *, checkpoint_ns: str = ""
    ) -> RunnableConfig | None:
        """Returns the config of the checkpoint that belongs to a run, as checkpoint_at does."""
        try:
            rows = await self._arows(_at_run(thread_id, run_id, checkpoint_ns))
        except (UnknownThread, UnknownRun):
            return None
        return _config(thread_id, checkpoint_ns, rows[0]["checkpoint_id"]) if rows else None

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Returns the version after current, with a random fraction.

        Branches that begin at one checkpoint continue from the same version, and a version of a
        channel is stored once: without the fraction one branch would get the values of the other.
        """
        if isinstance(current, str):  # of LangGraph's own saver, which compares texts
            return f"{int(current.partition('.')[0]) + 1:032}.{random.random():016}"
        return int(current or 0) + 1 + random.random()

    def _rows(self, call: Call) -> Rows:
        store = self._store
        if isinstance(store, Store):
            return store._database.rows(
                call.text, call.values | {"scope": store.scope}, store.scope
            )
        if self._loop is None or self._loop is _running_loop():
            raise Error(
                "a call without asyncio reached a PgaguiSaver over an AsyncStore",
                hint="Use ainvoke, astream and aget_state, or give the saver a Store.",
            )
        return asyncio.run_coroutine_threadsafe(self._arows(call), self._loop).result()

    async def _arows(self, call: Call) -> Rows:
        store = self._store
        if isinstance(store, Store):
            return await asyncio.to_thread(self._rows, call)
        self._loop = self._loop or asyncio.get_running_loop()
        values = call.values | {"scope": store.scope}
        return await store._database.rows(call.text, values, store.scope)

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> tuple[Call, dict[Channel, Known]]:
        thread_id, namespace, parent_id = _place(config)
        values = checkpoint["channel_values"]
        document = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        noted = get_serializable_checkpoint_metadata(config, metadata)
        changed = [channel for channel in new_versions if channel in values]
        lists: dict[Channel, Known] = {}
        encoded: builtins.list[tuple[str, str]] = []
        for channel in changed:
            version = _text_of(new_versions[channel])
            place = thread_id, namespace, channel
            value = values[channel]
            body = self._body(value)
            shared = self._shared(value, body, self._lists.begins(place, body)) if body else None
            if shared:
                lists[place] = _known(version, len(value), body)
            encoded.append(shared or self._encode(value))
        types, contents = _array(encoded)
        run_id: object = noted.get("run_id")
        call = Call(
            "select agui.put_checkpoint(%(thread)s, %(id)s, %(document)s::json,"
            " %(metadata)s::json, %(parent)s, %(channels)s::text[], %(versions)s::text[],"
            " %(types)s::text[], %(values)s::json, %(run)s, %(namespace)s, %(scope)s)",
            {
                "thread": thread_id,
                "id": checkpoint["id"],
                "document": json.dumps(document, separators=(",", ":")),
                "metadata": json.dumps(noted, separators=(",", ":")),
                "parent": parent_id,
                "channels": changed,
                "versions": [_text_of(new_versions[channel]) for channel in changed],
                "types": types,
                "values": contents,
                "run": run_id if isinstance(run_id, str) and run_id else None,
                "namespace": namespace,
            },
        )
        return call, lists

    def _put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> Call:
        thread_id, namespace, checkpoint_id = _place(config)
        if checkpoint_id is None:
            raise InvalidArgument(
                "put_writes: configurable has no checkpoint_id",
                hint="Name the checkpoint that the task continued from.",
            )
        values = [value for _, value in writes]
        bodies = [self._body(value) for value in values]
        types, contents = _array(
            [
                (body and self._shared(value, body)) or self._encode(value)
                for value, body in zip(values, bodies, strict=True)
            ]
        )
        return Call(
            "select agui.put_checkpoint_writes(%(thread)s, %(id)s, %(task)s, %(channels)s::text[],"
            " %(types)s::text[], %(values)s::json, %(places)s::int[], %(path)s, %(namespace)s,"
            " %(scope)s)",
            {
                "thread": thread_id,
                "id": checkpoint_id,
                "task": task_id,
                "channels": [channel for channel, _ in writes],
                "types": types,
                "values": contents,
                "places": [WRITES_IDX_MAP.get(name, n) for n, (name, _) in enumerate(writes)],
                "path": task_path,
                "namespace": namespace,
            },
        )

    def _encode(self, value: Any) -> tuple[str, str]:
        """Returns the type and the JSON of a value."""
        kind, data = self.serde.dumps_typed(value)
        if kind == "json":
            return kind, data.decode()
        return kind, f'"{b64encode(data).decode()}"'

    def _body(self, value: Any) -> bytes:
        """Returns the elements of a list in msgpack, if each is to be stored for itself.

        The encoding of a list in msgpack is that of its elements, behind their number.
        """
        if type(value) is not list or type(self.serde) is not JsonPlusSerializer:
            return b""
        kind, data = self.serde.dumps_typed(value)
        elements: builtins.list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        count = len(elements)
        body = data[1 if count < 1 << 4 else 3 if count < 1 << 16 else 5 :]
        return body if kind == MSGPACK and len(body) >= LEAST_BYTES * count else b""

    def _shared(
        self, value: builtins.list[Any], body: bytes, known: Known | None = None
    ) -> tuple[str, str] | None:
        """Returns the type and the JSON of a list, which begins with what is known."""
        keep, length = (known.elements, known.length) if known else (0, 0)
        dumped = [self.serde.dumps_typed(element)[1] for element in value[keep:]]
        if b"".join(dumped) != body[length:]:  # None is, and bytes are, encoded otherwise alone
            return None
        texts = ",".join(f'"{MSGPACK}:{b64encode(part).decode()}"' for part in dumped)
        if known is None:
            return "json", f"[{texts}]"
        version = json.dumps(known.version)
        return "append", f'{{"version":{version},"keep":{keep},"values":[{texts}]}}'

    def _decode(self, row: dict[str, Any], place: tuple[str, str] | None = None) -> Any:
        kind, text = row["type"], row["body"]
        if kind != "json":
            return self.serde.loads_typed((kind, row["bytes"]))
        if text.startswith(SHARED):
            parts = [b64decode(part[len(MSGPACK) + 1 :]) for part in json.loads(text)]
            body = b"".join(parts)
            if place is not None:
                known = _known(row["version"], len(parts), body)
                self._lists.note({(*place, row["channel"]): known})
            data = b"\xdd" + len(parts).to_bytes(4, "big") + body
            return self.serde.loads_typed((MSGPACK, data))
        return self.serde.loads_typed((kind, text.encode()))

    def _tuples(self, rows: Rows) -> Iterator[CheckpointTuple]:
        for _, pieces in groupby(rows, key=lambda row: row["cursor"]):
            yield self._tuple(list(pieces))

    def _tuple(self, rows: Rows) -> CheckpointTuple:
        document, metadata = rows[0], rows[1]
        place = document["thread_id"], document["namespace"]
        values: dict[str, Any] = {}
        writes: builtins.list[tuple[str, str, Any]] = []
        for row in rows[2:]:
            if row["kind"] == "value":
                values[row["channel"]] = self._decode(row, place)
            else:
                writes.append((row["task_id"], row["channel"], self._decode(row)))
        checkpoint: Any = json.loads(document["body"]) | {"channel_values": values}
        parent_id = document["parent_id"]
        return CheckpointTuple(
            _config(*place, document["checkpoint_id"]),
            checkpoint,
            json.loads(metadata["body"]),
            None if parent_id is None else _config(*place, parent_id),
            writes,
        )

    def _deltas(self, channels: Sequence[str], rows: Rows) -> dict[str, DeltaChannelHistory]:
        history: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}
        for row in rows:
            found = history[row["channel"]]
            if row["task_id"] is None:
                found["seed"] = self._decode(row)
            else:
                found["writes"].append((row["task_id"], row["channel"], self._decode(row)))
        return history


class _Lists:
    """What the database has of lists that grow: then a put brings their new elements alone.

    Only versions with a random fraction are noted: under a version that is there already the
    database may have another list.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[Channel, Known] = OrderedDict()

    def note(self, lists: Mapping[Channel, Known]) -> None:
        """Notes versions that the database has."""
        for channel, known in lists.items():
            if self._most and "." in known.version:
                self._known.pop(channel, None)
                self._known[channel] = known
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    def forget(self, lists: Mapping[Channel, Known]) -> None:
        """Forgets what it knows of channels."""
        for channel in lists:
            self._known.pop(channel, None)

    def begins(self, channel: Channel, body: bytes) -> Known | None:
        """Returns the version that a list begins with, if one is known."""
        known = self._known.get(channel)
        if known is None or hash(body[: known.length]) != known.digest:
            return None
        return known


class _Pages:
    """The statements that read a list."""

    def __init__(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        given = (config or {}).get("configurable", {})
        self._left = limit
        self._values = {
            "thread": None if given.get("thread_id") is None else str(given["thread_id"]),
            "id": given.get("checkpoint_id") or None,
            "namespace": given.get("checkpoint_ns"),
            "before": (before or {}).get("configurable", {}).get("checkpoint_id"),
            "filter": json.dumps(filter) if filter else None,
            "cursor": None,
        }
        self._is_last = False

    def next(self) -> Call | None:
        """Returns the statement that reads the next page, unless there is none."""
        self._rows = PAGE_ROWS if self._left is None else min(self._left, PAGE_ROWS)
        if self._is_last or self._rows <= 0:
            return None
        return _contents(**self._values, rows=self._rows)

    def take(self, rows: Rows) -> None:
        """Notes where a page has ended."""
        found = sum(row["kind"] == "document" for row in rows)
        self._is_last = found < self._rows
        if rows:
            self._values["cursor"] = rows[-1]["cursor"]
        if self._left is not None:
            self._left -= found


def _known(version: str, elements: int, body: bytes) -> Known:
    return Known(version, elements, len(body), hash(body))


def _array(encoded: list[tuple[str, str]]) -> tuple[list[str], str]:
    """Returns the types of values, and a JSON array of them."""
    return [kind for kind, _ in encoded], f"[{','.join(text for _, text in encoded)}]"


def _contents(**values: Any) -> Call:
    return Call(
        "select thread_id, namespace, checkpoint_id, parent_id, cursor, kind, task_id, channel,"
        " version, type, body::text, bytes from agui.checkpoint_contents(%(thread)s, %(id)s,"
        " %(namespace)s, %(before)s, %(filter)s::json, %(rows)s, %(cursor)s, %(scope)s)",
        values,
    )


def _one(config: RunnableConfig) -> Call:
    thread_id, namespace, checkpoint_id = _place(config)
    return _contents(
        thread=thread_id, namespace=namespace, id=checkpoint_id, before=None, filter=None,
        rows=1, cursor=None,
    )  # fmt: skip


def _history(config: RunnableConfig, channels: Sequence[str]) -> Call:
    thread_id, namespace, checkpoint_id = _place(config)
    return Call(
        "select channel, task_id, type, body::text, bytes from agui.channel_history(%(thread)s,"
        " %(channels)s::text[], %(id)s, %(namespace)s, %(scope)s) order by place",
        {
            "thread": thread_id,
            "channels": list(channels),
            "id": checkpoint_id,
            "namespace": namespace,
        },
    )


def _at_run(thread_id: str, run_id: str, checkpoint_ns: str) -> Call:
    return Call(
        "select checkpoint_id from agui.load_checkpoint(%(thread)s, null, %(namespace)s, %(run)s,"
        " %(scope)s)",
        {"thread": thread_id, "namespace": checkpoint_ns, "run": run_id},
    )


def _of_thread(function: str, thread_id: str) -> Call:
    return Call(f"select agui.{function}(%(thread)s, %(scope)s)", {"thread": str(thread_id)})


def _of_runs(run_ids: Sequence[str]) -> Call:
    return Call(
        "select agui.remove_run_checkpoints(%(runs)s::text[], scope => %(scope)s)",
        {"runs": [str(run_id) for run_id in run_ids]},
    )


def _copy(source: str, target: str) -> Call:
    return Call(
        "select agui.copy_checkpoints(%(thread)s, %(target)s, %(scope)s)",
        {"thread": str(source), "target": str(target)},
    )


def _prune(thread_ids: Sequence[str], strategy: str) -> list[Call]:
    functions = {"keep_latest": "prune_checkpoints", "delete": "remove_checkpoints"}
    if strategy not in functions:
        raise InvalidArgument(
            f'prune: "{strategy}" is no strategy', hint='There are "keep_latest" and "delete".'
        )
    return [_of_thread(functions[strategy], thread_id) for thread_id in thread_ids]


def _place(config: RunnableConfig) -> tuple[str, str, str | None]:
    given = config.get("configurable", {})
    if given.get("thread_id") in (None, ""):
        raise InvalidArgument(
            "configurable has no thread_id",
            hint='Invoke the graph with {"configurable": {"thread_id": "…"}}.',
        )
    return (
        str(given["thread_id"]),
        given.get("checkpoint_ns") or "",
        given.get("checkpoint_id") or None,
    )


def _config(thread_id: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": namespace,
            "checkpoint_id": checkpoint_id,
        }
    }


def _text_of(version: str | int | float) -> str:
    """Returns a version as it stands in the document, which names it."""
    return version if isinstance(version, str) else json.dumps(version)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
