"""Sessions of Strands in PostgreSQL: pip install "pgagui[strands]".

They are beside the log of the thread with the id of the session: session, agents and groups of
agents as session state, each message as a checkpoint.
"""

from __future__ import annotations

from typing import Any

from strands.multiagent import MultiAgentBase
from strands.session import RepositorySessionManager, SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage

from ._sessions import document, last_only
from .store import Store

NAME = "strands"  # of the session, and of its checkpoints as a run: they are removed by it

SAVE = last_only(
    "agui.save_session_state(%(thread)s, %(key)s, %(document)s::json, overwrite => true,"
    " scope => %(scope)s)"
)

MESSAGE = (
    "agui.put_checkpoint(%(thread)s, %(id)s, %(document)s::json, run_id => %(name)s,"
    " namespace => %(namespace)s, scope => %(scope)s)"
)
IS_THERE = (
    "exists (select from agui.checkpoint_contents(%(thread)s, %(id)s, %(namespace)s,"
    " scope => %(scope)s))"
)
CREATE = f"select case when not {IS_THERE} then {MESSAGE} end as number"
UPDATE = f"select {MESSAGE}"

LIST = """select document
from agui.checkpoints(%(thread)s, %(namespace)s, scope => %(scope)s)
order by checkpoint_id
limit %(limit)s
offset %(offset)s"""

DELETE = last_only(
    """(
        select count(
            agui.remove_session_state(%(thread)s, key, overwrite => true, scope => %(scope)s)
        )
        from agui.session_states(%(thread)s, scope => %(scope)s)
        where key = %(name)s or starts_with(key, %(name)s || '/')
    ) as documents,
    agui.remove_run_checkpoints(array[%(name)s], %(thread)s, scope => %(scope)s)"""
)


class PgaguiSessionManager(RepositorySessionManager, SessionRepository):
    """The session of an agent of Strands, in the database of a store.

        with Store("postgresql://…") as store:
            agent = Agent(model=…, session_manager=PgaguiSessionManager("trip", store))

    It is a Store without asyncio, because Strands calls its session managers so. A message is one
    statement, and so is a change of the agent's state. An agent that continues a session while
    another process does is refused with its next message, and does not replace that of the other.
    """

    def __init__(self, session_id: str, store: Store) -> None:
        self._store = store
        self._created: dict[tuple[str, str], str] = {}
        super().__init__(session_id=session_id, session_repository=self)

    def create_session(self, session: Session, **_: Any) -> Session:
        """Creates a session."""
        if self.read_session(session.session_id) is not None:
            raise SessionException(f"Session {session.session_id} already exists")
        self._save(session.session_id, NAME, session.to_dict())
        return session

    def read_session(self, session_id: str, **_: Any) -> Session | None:
        """Returns a session, or None."""
        found = self._load(session_id, NAME)
        return None if found is None else Session.from_dict(found)

    def delete_session(self, session_id: str, **_: Any) -> None:
        """Deletes a session with its agents and messages. The log of the thread stays."""
        [row] = self._rows(DELETE, session_id, name=NAME)
        self._created.clear()
        if not row["documents"]:
            raise SessionException(f"Session {session_id} does not exist")

    def create_agent(self, session_id: str, session_agent: SessionAgent, **_: Any) -> None:
        """Adds an agent to a session."""
        id = session_agent.agent_id
        self._created[session_id, id] = session_agent.created_at
        self._save(session_id, f"{NAME}/agent/{id}", session_agent.to_dict())

    def read_agent(self, session_id: str, agent_id: str, **_: Any) -> SessionAgent | None:
        """Returns an agent, or None."""
        found = self._load(session_id, f"{NAME}/agent/{agent_id}")
        if found is None:
            return None
        self._created[session_id, agent_id] = found["created_at"]
        return SessionAgent.from_dict(found)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **_: Any) -> None:
        """Replaces an agent. It keeps its created_at."""
        id = session_agent.agent_id
        if (session_id, id) not in self._created and self.read_agent(session_id, id) is None:
            raise SessionException(f"Agent {id} in session {session_id} does not exist")
        session_agent.created_at = self._created[session_id, id]
        self._save(session_id, f"{NAME}/agent/{id}", session_agent.to_dict())

    def create_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **_: Any
    ) -> None:
        """Adds a message."""
        [row] = self._message(CREATE, session_id, agent_id, session_message)
        if row["number"] is None:
            raise SessionException(
                f"Agent {agent_id} in session {session_id} has another message"
                f" {session_message.message_id}: another process continues the session"
            )

    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **_: Any
    ) -> SessionMessage | None:
        """Returns a message, or None."""
        rows = self._store._rows(
            "checkpoint_contents", "kind, body", thread_id=session_id,
            checkpoint_id=_id(message_id), namespace=_namespace(agent_id),
        )  # fmt: skip
        found = [SessionMessage.from_dict(row["body"]) for row in rows if row["kind"] == "document"]
        return found[0] if found else None

    def update_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **_: Any
    ) -> None:
        """Replaces a message, of which nothing is left. It keeps its created_at."""
        previous = self.read_message(session_id, agent_id, session_message.message_id)
        if previous is None:
            raise SessionException(f"Message {session_message.message_id} does not exist")
        session_message.created_at = previous.created_at
        self._message(UPDATE, session_id, agent_id, session_message)

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **_: Any
    ) -> list[SessionMessage]:
        """Returns the messages of an agent, the oldest first."""
        rows = self._rows(
            LIST, session_id, namespace=_namespace(agent_id), limit=limit, offset=offset
        )
        return [SessionMessage.from_dict(row["document"]) for row in rows]

    def create_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **_: Any) -> None:
        """Adds the state of a group of agents."""
        self._save(session_id, f"{NAME}/group/{multi_agent.id}", multi_agent.serialize_state())

    def read_multi_agent(
        self, session_id: str, multi_agent_id: str, **_: Any
    ) -> dict[str, Any] | None:
        """Returns the state of a group of agents, or None."""
        return self._load(session_id, f"{NAME}/group/{multi_agent_id}")

    def update_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **_: Any) -> None:
        """Replaces the state of a group of agents."""
        self.create_multi_agent(session_id, multi_agent)

    def _load(self, session_id: str, key: str) -> dict[str, Any] | None:
        rows = self._store._rows("load_session_state", "document", thread_id=session_id, key=key)
        return rows[0]["document"] if rows else None

    def _save(self, session_id: str, key: str, value: Any) -> None:
        self._rows(SAVE, session_id, key=key, document=document(value))

    def _message(
        self, text: str, session_id: str, agent_id: str, message: SessionMessage
    ) -> list[dict[str, Any]]:
        return self._rows(
            text, session_id, id=_id(message.message_id), namespace=_namespace(agent_id),
            name=NAME, document=document(message.to_dict()),
        )  # fmt: skip

    def _rows(self, text: str, session_id: str, **values: Any) -> list[dict[str, Any]]:
        scope = self._store.scope
        return self._store._database.rows(
            text, values | {"thread": session_id, "scope": scope}, scope
        )


def _namespace(agent_id: str) -> str:
    return f"{NAME}/{agent_id}"


def _id(message_id: int) -> str:
    """In the order of the numbers."""
    return f"{message_id:010}"
