"""A session of the OpenAI Agents SDK, beside the log of the thread of the same id.

pip install "pgagui[openai-agents]"
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any

from agents import Agent, RunState, SessionSettings, TResponseInputItem
from agents.memory.session_settings import resolve_session_limit

from ._database import Rows
from ._events import json_text
from .store import AsyncStore

# Of the checkpoint that the items are writes of, in the words of agui.put_checkpoint.
NAME = "openai-agents"
# The first item of a call. Places below zero can be replaced.
FIRST_PLACE = -(1 << 30)
RUN_STATE = "openai-agents run state"


class PgaguiSession:
    """The history of a conversation for the Runner: a Session of the SDK.

        async with AsyncStore("postgresql://…") as store:
            await Runner.run(agent, "Lisbon?", session=PgaguiSession("trip", store))

    Each call is one statement, which brings the new items alone; pop_item takes two. Any number of
    processes may add to a session. Items come back in the order of the calls; of two processes at
    the same time, in that of their clocks. The limit of session_settings counts the newest items.

    A run that waits for an approval is kept by save_run_state.
    """

    def __init__(
        self, session_id: str, store: AsyncStore, *, session_settings: SessionSettings | None = None
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = session_settings or SessionSettings()
        self._store = store
        self._last = ""  # the greatest id of a call that is known

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Returns the items, or the newest of them, in their order."""
        items = [row["body"] for row in await self._items()]
        most = resolve_session_limit(limit, self.session_settings)
        return items if most is None else items[len(items) - max(0, min(most, len(items))) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items."""
        if items:
            # Behind all that this process has seen, whatever its clock says.
            number = max(time.time_ns(), int(self._last[:20] or 0) + 1)
            self._last = f"{number:020} {uuid.uuid4()}"
            await self._write(self._last, range(FIRST_PLACE, FIRST_PLACE + len(items)), items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the newest item, and returns it."""
        rows = await self._items()
        if not rows:
            return None
        await self._write(rows[-1]["task_id"], [rows[-1]["place"]], [None])
        item: TResponseInputItem = rows[-1]["body"]
        return item

    async def clear_session(self) -> None:
        """Removes all items. The log of the thread stays."""
        await self._store._value(
            "remove_run_checkpoints", run_ids=[NAME], thread_id=self.session_id
        )

    async def save_run_state(self, state: RunState[Any, Any] | None, **how: Any) -> None:
        """Keeps a run that waits for an approval: `result.to_state()`. None: there is none now.

        how: what RunState.to_json takes.
        """
        await self._store._value(
            "save_session_state", thread_id=self.session_id, key=RUN_STATE,
            document=json_text(None if state is None else state.to_json(**how)), overwrite=True,
        )  # fmt: skip

    async def load_run_state(
        self, initial_agent: Agent[Any], **how: Any
    ) -> RunState[Any, Agent[Any]] | None:
        """Returns the run that waits for an approval, to be given to the Runner as its input.

        how: what RunState.from_json takes.
        """
        rows = await self._store._rows(
            "load_session_state", "document", thread_id=self.session_id, key=RUN_STATE
        )
        if not rows or rows[0]["document"] is None:
            return None
        return await RunState.from_json(initial_agent, rows[0]["document"], **how)

    async def _items(self) -> Rows:
        rows = await self._store._rows(
            "checkpoint_contents", "kind, task_id, place, body", thread_id=self.session_id,
            checkpoint_id=NAME, namespace=NAME,
        )  # fmt: skip
        written = [row for row in rows if row["kind"] == "write"]
        if written:
            self._last = max(self._last, written[-1]["task_id"])
        return [row for row in written if row["body"] is not None]

    async def _write(
        self, call: str, places: Sequence[int], items: Sequence[TResponseInputItem | None]
    ) -> None:
        # The checkpoint is put each time: another process may have cleared the session.
        await self._store._database.rows(
            "select agui.put_checkpoint(%(thread)s, %(name)s, '{}', run_id => %(name)s,"
            " namespace => %(name)s, scope => %(scope)s),"
            " agui.put_checkpoint_writes(%(thread)s, %(name)s, %(call)s, %(channels)s::text[],"
            " %(types)s::text[], %(items)s::json, %(places)s::int[], namespace => %(name)s,"
            " scope => %(scope)s)",
            {
                "thread": self.session_id,
                "name": NAME,
                "call": call,
                "channels": ["items"] * len(items),
                "types": ["json"] * len(items),
                "items": json_text(items),
                "places": list(places),
                "scope": self._store.scope,
            },
            self._store.scope,
        )
