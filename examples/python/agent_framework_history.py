# A HistoryProvider of Microsoft's Agent Framework receives the new messages of each run, so they go to the log: one run with a CUSTOM
# event for each message. A save costs as much as the new messages, however long the session is. The id of the thread has a prefix,
# because the stream of the agent may be stored under the id of the session. It needs psycopg2 and a role with agui_writer.
import asyncio
import json
import uuid

from agent_framework import HistoryProvider, Message
from psycopg2.pool import ThreadedConnectionPool


class PostgresHistoryProvider(HistoryProvider):
    """The messages of sessions in the log of pgagui."""

    EVENT = "agent-framework.message"

    def __init__(self, url, source_id="pgagui", scope="", **options):
        super().__init__(source_id, **options)
        self._pool = ThreadedConnectionPool(0, 32, url)
        self._scope = scope

    def _thread(self, session_id):
        return f"history/{self.source_id}/{session_id}"

    async def get_messages(self, session_id, *, state=None, **kwargs):
        rows = await self._call(
            "select payload::text from agui.events(%s, scope => %s) where type = 'CUSTOM'", self._thread(session_id), self._scope
        )
        events = (json.loads(payload) for (payload,) in rows)
        return [Message.from_dict(event["value"]) for event in events if event["name"] == self.EVENT]

    async def save_messages(self, session_id, messages, *, state=None, **kwargs):
        thread, run = self._thread(session_id), str(uuid.uuid4())
        names = {"threadId": thread, "runId": run}
        values = [{"type": "CUSTOM", "name": self.EVENT, "value": message.to_dict()} for message in messages]
        events = [{"type": "RUN_STARTED", **names}, *values, {"type": "RUN_FINISHED", **names}]
        # after_seq makes it safe to repeat the call with the same run, if its answer is lost.
        statement = "select agui.append(%s, %s, %s::json, after_seq => 0, scope => %s)"
        await self._call(statement, thread, run, json.dumps(events, allow_nan=False), self._scope)

    async def _call(self, statement, *values):
        def call():
            connection = self._pool.getconn()
            try:
                with connection, connection.cursor() as cursor:
                    cursor.execute("select set_config('agui.scope', %s, true)", [self._scope])
                    cursor.execute(statement, values)
                    return cursor.fetchall()
            except connection.Error as error:
                if error.pgcode in ("UI001", "UI002"):  # the session has no messages yet
                    return []
                raise
            finally:
                self._pool.putconn(connection)

        return await asyncio.to_thread(call)
