"""PgaguiSessionManager does what Strands' FileSessionManager does, with the same calls."""

import os
import subprocess
import sys
import time
from typing import Any

import psycopg
import pytest
from strands import Agent, ToolContext, tool
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.models import Model
from strands.multiagent import GraphBuilder
from strands.session import FileSessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from pgagui import Store
from pgagui.strands import PgaguiSessionManager

from .conftest import finished, message, started
from .survives import survives

pytestmark = pytest.mark.filterwarnings("ignore")  # of strands-agents and its packages


@pytest.fixture(params=["pgagui", "file"])
def another(request, address, tmp_path):
    """Makes a manager of a session, each time as another process would have it."""
    with Store(address) as store:
        if request.param == "file":
            yield lambda id="s": FileSessionManager(id, storage_dir=str(tmp_path))
        else:
            yield lambda id="s": PgaguiSessionManager(id, store)


def text(words, id):
    content: Any = {"role": "user", "content": [{"text": words}]}
    return SessionMessage.from_message(content, id)


def agent_of(name="a", **state):
    return SessionAgent(name, state, {})


def test_the_calls_of_a_repository(another):
    manager = another()
    session = manager.read_session("s")
    assert session == manager.session and session.session_type == SessionType.AGENT
    assert manager.read_session("other") is None and manager.read_agent("s", "a") is None
    with pytest.raises(SessionException):
        manager.create_session(Session("s", SessionType.AGENT))
    for call in manager.update_agent, manager.create_agent:
        agent = agent_of(x=1, data=b"\x00\xff")
        if call == manager.update_agent:
            with pytest.raises(SessionException):
                call("s", agent)
        else:
            call("s", agent)
    later = another()
    assert later.read_agent("s", "a") == agent
    changed = agent_of(x=2)
    created = agent.created_at
    later.update_agent("s", changed)
    assert changed.created_at == created and manager.read_agent("s", "a") == changed
    assert another().list_messages("s", "a") == [] and manager.read_message("s", "a", 0) is None
    messages = [text(str(i), i) for i in range(12)]
    for one in messages:
        manager.create_message("s", "a", one)
    assert later.read_message("s", "a", 11) == messages[11]
    assert later.list_messages("s", "a") == messages
    assert later.list_messages("s", "a", offset=10) == messages[10:]
    assert later.list_messages("s", "a", limit=3, offset=1) == messages[1:4]
    assert later.list_messages("s", "a", limit=0) == []
    redacted = text("secret", 3)
    redacted.redact_message = {"role": "user", "content": [{"text": "…"}]}
    later.update_message("s", "a", redacted)
    assert redacted.created_at == messages[3].created_at
    assert manager.read_message("s", "a", 3) == redacted
    with pytest.raises(SessionException):
        manager.update_message("s", "a", text("none", 12))
    another("t")
    manager.delete_session("s")
    with pytest.raises(SessionException):
        manager.delete_session("s")
    assert manager.read_session("s") is None and manager.read_session("t") is not None
    assert manager.read_agent("s", "a") is None and manager.read_message("s", "a", 1) is None
    with pytest.raises(SessionException):
        manager.update_agent("s", agent)
    another().create_agent("s", agent_of())
    assert another().list_messages("s", "a") == []


class Scripted(Model):
    """Calls the tool that the user names, and says what it has seen."""

    def update_config(self, **config):
        pass

    def get_config(self):
        return {"model_id": "scripted"}

    def structured_output(self, *args, **kwargs):
        raise NotImplementedError

    async def stream(self, messages, *args, **kwargs):
        blocks = [block for one in messages if one["role"] == "user" for block in one["content"]]
        turns = sum("text" in block for block in blocks)
        last = messages[-1]["content"][-1]
        yield {"messageStart": {"role": "assistant"}}
        if last.get("text") in ("look", "erase", "hang"):
            use = {"toolUseId": f"c{len(messages)}", "name": last["text"]}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"at": "Rome"}'}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
        else:
            said = last["text"] if "text" in last else last["toolResult"]["content"][0]["text"]
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": f"{said}, turn {turns}"}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}


@tool(context=True)
def look(at: str, tool_context: ToolContext) -> str:
    """Looks."""
    state = tool_context.agent.state
    state.set("looks", (state.get("looks") or 0) + 1)
    return f"seen {at}"


@tool(context=True)
def erase(at: str, tool_context: ToolContext) -> str:
    """Erases, if the user agrees."""
    return f"{tool_context.interrupt('erase', reason=f'Erase {at}?')}, erased"


@tool
def hang(at: str) -> str:
    """Never ends."""
    print("hanging", flush=True)
    time.sleep(1e6)
    return ""


def agent_with(manager, **more):
    return Agent(
        agent_id="a", model=Scripted(), tools=[look, erase, hang], callback_handler=None,
        session_manager=manager, **more,
    )  # fmt: skip


def said(result):
    return result.message["content"][0]["text"]


@survives("Strands", "messages", "state")
def test_an_agent_that_continues_in_another_process(another):
    assert said(agent_with(another())("Rome?")) == "Rome?, turn 1"
    assert said(agent_with(another())("look")) == "seen Rome, turn 2"
    agent = agent_with(another())
    assert said(agent("look")) == "seen Rome, turn 3" and agent.state.get("looks") == 2
    assert len(agent.messages) == len(agent_with(another()).messages) == 10
    assert [message["role"] for message in agent.messages[:2]] == ["user", "assistant"]


async def test_an_agent_with_asyncio(another):
    assert said(await agent_with(another()).invoke_async("Rome?")) == "Rome?, turn 1"
    assert said(await agent_with(another()).invoke_async("Oslo?")) == "Oslo?, turn 2"


@survives("Strands", "interrupts")
def test_a_question_that_another_process_answers(another):
    asked = agent_with(another())("erase")
    assert asked.stop_reason == "interrupt" and asked.interrupts[0].reason == "Erase Rome?"
    answer = {"interruptResponse": {"interruptId": asked.interrupts[0].id, "response": "yes"}}
    assert said(agent_with(another())([answer])) == "yes, erased, turn 1"


def test_a_conversation_that_is_cut(another):
    def window():
        return SlidingWindowConversationManager(window_size=4)

    for i in range(5):
        agent_with(another(), conversation_manager=window())(f"{i}?")
    agent = agent_with(another(), conversation_manager=window())
    assert [one["content"][0]["text"] for one in agent.messages] == [
        "3?", "3?, turn 3", "4?", "4?, turn 3"
    ]  # fmt: skip
    assert len(another().list_messages("s", "a")) == 10


def test_a_graph_that_continues_in_another_process(another):
    def graph():
        builder = GraphBuilder()
        for name in "one", "two":
            builder.add_node(Agent(model=Scripted(), name=name, callback_handler=None), name)
        builder.add_edge("one", "two")
        builder.set_session_manager(another())
        return builder.build()

    assert graph()("Rome?").status.value == "completed"
    state = another().read_multi_agent("s", graph().id)
    assert sorted(state["completed_nodes"]) == ["one", "two"]
    assert graph()("Oslo?").status.value == "completed"


def test_of_two_processes_the_second_does_not_replace_a_message(address):
    with Store(address) as store:
        one, two = (agent_with(PgaguiSessionManager("s", store)) for _ in range(2))
        one("Rome?")
        with pytest.raises(SessionException, match="another process continues the session"):
            two("Oslo?")
        kept = PgaguiSessionManager("s", store).list_messages("s", "a")
        assert [one.message["content"][0]["text"] for one in kept] == ["Rome?", "Rome?, turn 1"]


def test_what_is_deleted_is_deleted_and_the_log_stays(address):
    with Store(address) as store:
        store.append("s", "r", [started("r", "s"), *message("hi"), finished("r", "s")])
        manager = PgaguiSessionManager("s", store)
        agent = agent_with(manager)
        for _ in range(3):
            agent("look")
        assert PgaguiSessionManager("s", store.in_scope("x")).list_messages("s", "a") == []
        count = (
            "select (select count(*) from agui.session_state where document is not null)"
            " + (select count(*) from agui.checkpoint where document is not null) as n"
        )
        assert store._database.rows(count, {}, "")[0]["n"] == 2 + 12 + 1  # one of the other scope
        manager.delete_session("s")
        assert store._database.rows(count, {}, "")[0]["n"] == 1
        assert len(store.messages("s")) == 1


def test_a_turn_with_a_tool_is_five_statements(address, monkeypatch):
    with Store(address) as store:
        agent = agent_with(PgaguiSessionManager("s", store))
        agent("Rome?")
        statements = []
        execute = store._database._execute

        def counted(connection, text, *rest):
            statements.append(text)
            return execute(connection, text, *rest)

        monkeypatch.setattr(store._database, "_execute", counted)
        agent("look")
        # Four messages, and the state of the agent.
        assert len(statements) == 5


def work(address):
    with Store(address) as store:
        agent = agent_with(PgaguiSessionManager("s", store))
        agent("Rome?")
        agent("hang")


@survives("Strands", "process killed")
def test_a_killed_process_and_another_that_continues(address):
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c",
         "import sys; from tests.test_strands import work; work(sys.argv[1])", address],
        stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"hanging\n"
    process.kill()
    process.communicate()
    with Store(address) as store:
        agent = agent_with(PgaguiSessionManager("s", store))
        assert [one["role"] for one in agent.messages] == ["user", "assistant"] * 2
        # Strands itself answers the call that has no result.
        assert said(agent("Oslo?")).endswith("turn 3")
    with psycopg.connect(address) as connection:
        assert connection.execute("select problem from agui.verify('s')").fetchall() == []
