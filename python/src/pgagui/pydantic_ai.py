"""A store of conversations for Pydantic AI, beside the log of the thread of the same id.

pip install "pgagui[pydantic-ai]"
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from ._database import Rows
from ._events import json_text
from .errors import StaleVersion, ThreadErased, UnknownCheckpoint
from .store import AsyncStore

NAME = "pydantic-ai"  # the namespace and run of the entries, and the key of the record
PAGE_ROWS = 200  # threads of a page
MAX_KNOWN = 10_000  # entries and versions of which a store notes where they are
RECORDS: TypeAdapter[ConversationRecord] = TypeAdapter(ConversationRecord)


class PgaguiConversationStore(ConversationStore):
    """Keeps conversations in the schema agui: entries as checkpoints, records as session state.

        conversations = PgaguiConversationStore(store)
        adapter = AGUIAdapter(agent, run_input, conversation_store=conversations)
        async for event in store.tee(run_input, adapter.run_stream()):
            …

    A conversation is in the thread of its id. A load or a save is two statements; a fork copies
    the entries that it keeps. delete also deletes the entries, and leaves the log.
    list_conversations reads the records of all threads of the scope of the store. That scope keeps
    tenants apart: the scope of a conversation is a label in its record.
    """

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._threads = _Known()  # of entries
        self._versions = _Known()  # of records, by id and revision

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Returns the record of a conversation."""
        rows = await self._store._rows(
            "load_session_state", "version, document", thread_id=conversation_id, key=NAME
        )
        if not rows or rows[0]["document"] is None:
            return None
        record = RECORDS.validate_python(rows[0]["document"])
        self._versions[conversation_id, record.revision] = rows[0]["version"]
        self._note(record)
        return record

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Returns the records, those with the scope alone, the one saved last first."""
        found: list[Any] = []
        for archived in (False, True):
            cursor = None
            while page := await self._store.threads(
                archived=archived, limit=PAGE_ROWS, cursor=cursor
            ):
                sessions = await self._store._value(
                    "load_sessions", thread_ids=[thread.thread_id for thread in page]
                )
                found += [
                    RECORDS.validate_python(session["state"][NAME])
                    for session in sessions
                    if NAME in session["state"]
                ]
                cursor = page[-1].cursor
        records = [record for record in found if scope is None or record.scope == scope]
        records.sort(key=lambda record: record.updated_at, reverse=True)
        return records[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Stores a record with its new entries, in one statement."""
        thread_id = record.conversation_id
        entries = list(new_entries)
        if expected_revision is None:
            entries = await self._copied(record, entries) + entries
        version = await self._version(thread_id, expected_revision)
        try:
            await self._store._database.rows(
                "select agui.save_session_state(%(thread)s, %(name)s, %(record)s::json,"
                " expected_version => %(version)s, scope => %(scope)s),"
                " (select count(agui.put_checkpoint(%(thread)s, entry.id, entry.document::json,"
                " parent_id => entry.parent_id, run_id => %(name)s, namespace => %(name)s,"
                " scope => %(scope)s)) from unnest(%(ids)s::text[], %(parents)s::text[],"
                " %(documents)s::text[]) as entry (id, parent_id, document))",
                {
                    "thread": thread_id,
                    "name": NAME,
                    "record": json_text(RECORDS.dump_python(record, mode="json")),
                    "version": version,
                    "ids": [entry.id for entry in entries],
                    "parents": [entry.parent_id for entry in entries],
                    "documents": [_document(entry) for entry in entries],
                    "scope": self._store.scope,
                },
                self._store.scope,
            )
        except (StaleVersion, ThreadErased) as error:
            raise ConversationConflict(thread_id) from error
        self._note(record, *entries)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Deletes a record with its entries."""
        version = await self._version(conversation_id, expected_revision)
        try:
            await self._store._database.rows(
                "select agui.remove_session_state(%(thread)s, %(name)s,"
                " expected_version => %(version)s, scope => %(scope)s),"
                " agui.remove_run_checkpoints(array[%(name)s::text], %(thread)s, %(scope)s)",
                {
                    "thread": conversation_id,
                    "name": NAME,
                    "version": version,
                    "scope": self._store.scope,
                },
                self._store.scope,
            )
        except StaleVersion as error:
            raise ConversationConflict(conversation_id) from error

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Returns an entry."""
        return (await self.read_history(entry_id))[-1]

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Returns the entries up to one, or the last of them."""
        if head_id is None:
            return []
        try:
            thread_id = self._threads[head_id]
            rows = await self._lineage(thread_id, head_id)
        except (KeyError, UnknownCheckpoint):  # a fork may have it, if the other is deleted
            thread_id = await self._find(head_id)
            rows = await self._lineage(thread_id, head_id)
        entries = [
            ConversationEntry(
                id=row["checkpoint_id"],
                parent_id=row["parent_id"],
                message=_message(row["document"]),
                kind=row["document"]["kind"],
            )
            for row in rows[len(rows) - limit if limit is not None and limit < len(rows) else 0 :]
        ]
        for entry in entries:
            self._threads[entry.id] = thread_id
        return entries

    async def _lineage(self, thread_id: str, head_id: str) -> Rows:
        return await self._store._rows(
            "checkpoint_lineage", "checkpoint_id, parent_id, document", thread_id=thread_id,
            checkpoint_id=head_id, namespace=NAME,
        )  # fmt: skip

    async def _find(self, entry_id: str) -> str:
        """Finds the thread of an entry that this store has not seen, in the whole scope."""
        rows = await self._store._rows(
            "checkpoint_contents", "thread_id", checkpoint_id=entry_id, namespace=NAME, max_rows=1
        )
        if not rows:
            raise LookupError(f"the entry {entry_id} is unknown, or deleted")
        thread_id: str = rows[0]["thread_id"]
        return thread_id

    async def _copied(
        self, record: ConversationRecord, entries: Sequence[ConversationEntry]
    ) -> list[ConversationEntry]:
        """Returns what a new conversation continues from, which is in the thread of another."""
        first = entries[0].parent_id if entries else record.head_id
        try:
            return await self.read_history(first)
        except LookupError as error:
            raise ConversationConflict(record.conversation_id) from error

    async def _version(self, conversation_id: str, revision: str | None) -> int:
        """Returns the version of session state that a revision is."""
        if revision is None:
            return 0
        known = self._versions.get((conversation_id, revision))
        if known is None:
            record = await self.read_record(conversation_id)
            if record is None or record.revision != revision:
                raise ConversationConflict(conversation_id)
            known = self._versions[conversation_id, revision]
        return int(known)

    def _note(self, record: ConversationRecord, *entries: ConversationEntry) -> None:
        tips = [tip for tip in (record.head_id, *record.branches) if tip is not None]
        for entry_id in (*tips, *(entry.id for entry in entries)):
            self._threads[entry_id] = record.conversation_id


class _Known(OrderedDict[Any, Any]):
    """What was noted last, within bounds."""

    def __setitem__(self, key: Any, value: Any) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        while len(self) > MAX_KNOWN:
            self.popitem(last=False)


def _document(entry: ConversationEntry) -> str:
    [message] = ModelMessagesTypeAdapter.dump_python([entry.message], mode="json")
    return json_text({"kind": entry.kind, "message": message})


def _message(document: dict[str, Any]) -> ModelMessage:
    # Not validate_json, which refuses texts that it has made itself: those with a lone surrogate.
    [message] = ModelMessagesTypeAdapter.validate_python([document["message"]])
    return message
