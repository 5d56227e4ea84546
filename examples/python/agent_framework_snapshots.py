# Snapshots for the AG-UI endpoint of Microsoft's Agent Framework (AGUIThreadSnapshotStore). Each save writes the whole snapshot, and its
# session_state is in no stream, so snapshots go into session state. It needs psycopg2 and a role with agui_writer. psycopg2 writes
# parameters into the text of a statement, so PostgreSQL logs the documents of statements that fail. With psycopg 3 it does not.
#
# The scope of a snapshot is the scope of pgagui: the tenant. clear alone reads two tables, because no function lists the keys of many
# threads. Tables may change with any version, unlike functions and views, so test clear before an upgrade. Without a scope it needs a
# role that sees all scopes.
import asyncio
import json
from dataclasses import asdict

from agent_framework_ag_ui import AGUIThreadSnapshot
from psycopg2.pool import ThreadedConnectionPool


class PostgresSnapshotStore:
    """Snapshots of AG-UI threads as session state, one document for each scope and thread."""

    KEY = "agent-framework.snapshot"

    def __init__(self, url):
        self._pool = ThreadedConnectionPool(0, 32, url)  # asyncio.to_thread uses 32 threads at most

    async def save(self, *, scope, thread_id, snapshot):
        await self._call(
            scope,
            "select agui.save_session_state(%s, %s, %s::json, overwrite => true, scope => %s)",
            thread_id, self.KEY, json.dumps(asdict(snapshot), allow_nan=False), scope,
        )

    async def get(self, *, scope, thread_id):
        row = await self._call(
            scope, "select document::text from agui.load_session_state(%s, %s, scope => %s)", thread_id, self.KEY, scope
        )
        return AGUIThreadSnapshot(**json.loads(row[0])) if row else None

    async def delete(self, *, scope, thread_id):
        statement = "select agui.remove_session_state(%s, %s, overwrite => true, scope => %s)"
        (version,) = await self._call(scope, statement, thread_id, self.KEY, scope)
        return version > 0

    async def clear(self, *, scope=None):
        await self._call(
            scope,
            """select count(agui.remove_session_state(thread_id, key, overwrite => true, scope => thread.scope))
            from agui.session_key join agui.thread using (thread_key)
            where key = %s and thread.scope = coalesce(%s, thread.scope)""",
            self.KEY, scope,
        )

    async def _call(self, scope, statement, *values):
        def call():
            connection = self._pool.getconn()
            try:
                with connection, connection.cursor() as cursor:  # one transaction
                    cursor.execute("select set_config('agui.scope', %s, true)", [scope or ""])  # for row-level security
                    cursor.execute(statement, values)
                    return cursor.fetchone()
            finally:
                self._pool.putconn(connection)

        return await asyncio.to_thread(call)
