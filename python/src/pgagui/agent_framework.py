"""Stores of Microsoft's Agent Framework: pip install "pgagui[agent-framework]".

PgaguiSnapshotStore needs agent-framework-ag-ui, too, which a program with an AG-UI endpoint has.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agent_framework import HistoryProvider, Message

from ._database import Rows
from ._sessions import document, last_only
from .store import AsyncStore

if TYPE_CHECKING:
    from agent_framework_ag_ui import AGUIThreadSnapshot

KEY = "agent-framework.snapshot"

SAVE = last_only(
    "agui.save_session_state(%(thread_id)s, %(key)s, %(document)s::json, overwrite => true,"
    " scope => %(scope)s)"
)
LOAD = "select document from agui.load_session_state(%(thread_id)s, %(key)s, scope => %(scope)s)"
REMOVE = last_only(
    "agui.remove_session_state(%(thread_id)s, %(key)s, overwrite => true, scope => %(scope)s)"
    " as version"
)
# No function lists the threads that have a key.
CLEAR = last_only(
    """(
        select count(
            agui.remove_session_state(thread_id, key, overwrite => true, scope => thread.scope)
        )
        from agui.session_key
        join agui.thread using (thread_key)
        where key = %(key)s and (thread.scope = %(scope)s::text) is not false
    )"""
)


class PgaguiHistoryProvider(HistoryProvider):
    """The messages of sessions, each save as a checkpoint in the thread with the id of the session.

        provider = PgaguiHistoryProvider(store)
        agent = Agent(client=…, context_providers=[provider])

    A save writes the new messages only. options are those of HistoryProvider.
    """

    def __init__(self, store: AsyncStore, source_id: str = "pgagui", **options: Any) -> None:
        super().__init__(source_id, **options)
        self._store = store
        self._namespace = f"agent-framework/{source_id}"

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **_: Any
    ) -> list[Message]:
        """Returns the messages of a session, the oldest first."""
        rows = await self._store._rows(
            "checkpoints", "document", thread_id=session_id or "default", namespace=self._namespace
        )
        return [
            Message.from_dict(message) for row in rows for message in row["document"]["messages"]
        ]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Adds messages to a session."""
        if messages:
            await self._store._value(
                "save_checkpoint", thread_id=session_id or "default",
                checkpoint_id=str(uuid.uuid4()),
                document=document({"messages": [message.to_dict() for message in messages]}),
                namespace=self._namespace,
            )  # fmt: skip


class PgaguiSnapshotStore:
    """The snapshots of AG-UI threads (AGUIThreadSnapshotStore), beside the log of each thread.

        add_agent_framework_fastapi_endpoint(
            app, agent, snapshot_store=PgaguiSnapshotStore(store), authorization_scope_resolver=…
        )

    The scope of a snapshot is the scope of pgagui: the tenant or user.
    """

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def save(self, *, scope: str, thread_id: str, snapshot: AGUIThreadSnapshot) -> None:
        """Replaces the snapshot of a thread."""
        await self._rows(SAVE, scope, thread_id, document=document(asdict(snapshot)))

    async def get(self, *, scope: str, thread_id: str) -> AGUIThreadSnapshot | None:
        """Returns the snapshot of a thread, or None."""
        from agent_framework_ag_ui import AGUIThreadSnapshot

        rows = await self._rows(LOAD, scope, thread_id)
        return AGUIThreadSnapshot(**rows[0]["document"]) if rows else None

    async def delete(self, *, scope: str, thread_id: str) -> bool:
        """Removes the snapshot of a thread. Returns whether there was one."""
        [row] = await self._rows(REMOVE, scope, thread_id)
        return bool(row["version"] > 0)

    async def clear(self, *, scope: str | None = None) -> None:
        """Removes the snapshots of a scope, or of all scopes that the role of the store sees."""
        if scope is not None:
            _check(scope, "scope")
        values = {"key": KEY, "scope": scope}
        await self._store._database.rows(CLEAR, values, scope or self._store.scope)

    async def _rows(self, text: str, scope: str, thread_id: str, **more: str) -> Rows:
        _check(scope, "scope")
        _check(thread_id, "thread_id")
        values = {"scope": scope, "thread_id": thread_id, "key": KEY, **more}
        return await self._store._database.rows(text, values, scope)


def _check(value: object, name: str) -> None:
    """Refuses what the store of Agent Framework in memory refuses."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string.")
    if not value:
        raise ValueError(f"{name} must be a non-empty string.")
