"""The stores of conversations that are measured: those of Python frameworks with their published defaults, and pgagui.

A store keeps one conversation after the other. `write` stores a turn, `restore` returns the messages as the framework
has them in Python, and `finish` is what a store's own upkeep does behind a turn, which is not in its time.
"""
import asyncio
import json
import sys
import time
from pathlib import Path

import psycopg

loop = asyncio.new_event_loop()
wait = loop.run_until_complete


class OpenAIAgents:
    """A turn is what the Runner saves: the input, then what each answer of the model brought."""
    def __init__(self, url):
        from sqlalchemy.ext.asyncio import create_async_engine
        self.engine = create_async_engine(url.replace("postgres://", "postgresql+psycopg://"))
        wait(self.session("setup").get_items())

    def session(self, thread):
        from agents.extensions.memory import SQLAlchemySession
        return SQLAlchemySession(thread, engine=self.engine, create_tables=thread == "setup")

    def begin(self, thread):
        self.current = self.session(thread)

    def write(self, turn):
        content = turn.question
        if turn.image:
            content = [{"type": "input_text", "text": content}, {"type": "input_image", "image_url": "data:image/png;base64," + turn.image}]
        saves = [[{"role": "user", "content": content}]]
        for call, arguments, result in turn.calls:
            saves.append([{"type": "function_call", "id": "fc_" + call, "call_id": call, "name": "search", "arguments": arguments},
                          {"type": "function_call_output", "call_id": call, "output": result}])
        saves.append([{"type": "message", "id": turn.answer_id, "role": "assistant", "status": "completed",
                       "content": [{"type": "output_text", "text": turn.answer, "annotations": []}]}])
        for items in saves:
            wait(self.current.add_items(items))

    def restore(self, thread):
        return wait(self.session(thread).get_items())


class Agno:
    """A turn is what an Agent saves at the end of a run: the session, and the run."""
    def __init__(self, url):
        from agno.db.postgres import PostgresDb
        self.db = PostgresDb(db_url=url.replace("postgres://", "postgresql+psycopg://"))

    def begin(self, thread):
        from agno.session import AgentSession
        self.session, self.runs = AgentSession(session_id=thread, agent_id="assistant", created_at=int(time.time())), 0

    def write(self, turn):
        from agno.media import Image
        from agno.models.message import Message
        from agno.run.agent import RunOutput
        from agno.run.base import RunStatus
        images = [Image(content=turn.image_bytes, mime_type="image/png")] if turn.image else None
        messages = [Message(id=turn.question_id, role="user", content=turn.question, images=images)]
        for call, arguments, result in turn.calls:
            messages += [Message(role="assistant", tool_calls=[{"id": call, "type": "function", "function": {"name": "search", "arguments": arguments}}]),
                         Message(role="tool", tool_call_id=call, tool_name="search", content=result)]
        messages.append(Message(id=turn.answer_id, role="assistant", content=turn.answer))
        run = RunOutput(run_id=turn.run, agent_id="assistant", session_id=self.session.session_id, content=turn.answer, messages=messages,
                        status=RunStatus.completed)
        self.db.upsert_session(self.session)
        self.db.upsert_run(run, self.session.session_id, run_index=self.runs)
        self.runs += 1

    def restore(self, thread):
        from agno.db.base import SessionType
        self.db._run_object_cache = type(self.db._run_object_cache)()  # as a process that has not seen the conversation
        return [message for run in self.db.get_session(thread, SessionType.AGENT).runs for message in run.messages]


class AgentFramework:
    """A turn is what the provider saves behind a run: its input and its answers, in one call."""
    def __init__(self, url):
        from agent_framework_community_postgres import PostgresPersistence
        self.hub = PostgresPersistence(application_id="bench", connection_string=url)
        wait(self.hub.migrate())
        self.history = self.hub.history_provider()

    def begin(self, thread):
        self.thread = thread

    def write(self, turn):
        from agent_framework import Content, Message
        contents = [turn.question]
        if turn.image:
            contents.append(Content.from_data(turn.image_bytes, "image/png"))
        messages = [Message("user", contents, message_id=turn.question_id)]
        for call, arguments, result in turn.calls:
            messages += [Message("assistant", [Content.from_function_call(call, "search", arguments=arguments)]),
                         Message("tool", [Content.from_function_result(call, result=result)])]
        messages.append(Message("assistant", [turn.answer], message_id=turn.answer_id))
        wait(self.history.save_messages(self.thread, messages))

    def restore(self, thread):
        return wait(self.history.get_messages(thread))


class LangGraph:
    """A turn is an invocation of the usual agent's graph, whose nodes return what was recorded: a model and tools."""
    def __init__(self, url):
        from langgraph.checkpoint.postgres import PostgresSaver
        from langgraph.graph import END, START, MessagesState, StateGraph
        self.context = PostgresSaver.from_conn_string(url)
        self.saver = self.context.__enter__()
        self.saver.setup()
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [self.script.pop(0)]})
        graph.add_node("tools", lambda state: {"messages": [self.script.pop(0)]})
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
        graph.add_edge("tools", "model")
        self.graph = graph.compile(checkpointer=self.saver)

    def begin(self, thread):
        self.config = {"configurable": {"thread_id": thread}}

    def write(self, turn):
        from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
        content = turn.question
        if turn.image:
            content = [{"type": "text", "text": content}, {"type": "image_url", "image_url": {"url": "data:image/png;base64," + turn.image}}]
        self.script = []
        for call, arguments, result in turn.calls:
            self.script += [AIMessage("", tool_calls=[{"id": call, "name": "search", "args": json.loads(arguments)}]), ToolMessage(result, tool_call_id=call)]
        self.script.append(AIMessage(turn.answer, id=turn.answer_id))
        self.graph.invoke({"messages": [HumanMessage(content, id=turn.question_id)]}, self.config)

    def restore(self, thread):
        return self.saver.get_tuple({"configurable": {"thread_id": thread}}).checkpoint["channel_values"]["messages"]


class Pgagui:
    """A turn is a run in four calls of agui.append, or one for each event."""
    def __init__(self, url, whole=False, compacted=False, settled=False, each=False):
        self.connection = psycopg.connect(url, autocommit=True)
        self.whole, self.compacted, self.settled, self.each = whole, compacted, settled, each

    def begin(self, thread):
        self.thread, self.messages = thread, []

    def input(self, turn):
        content = turn.question
        if turn.image:
            content = [{"type": "text", "text": content}, {"type": "image", "source": {"type": "data", "mimeType": "image/png", "value": turn.image}}]
        question = {"id": turn.question_id, "role": "user", "content": content}
        self.messages.append(question)
        return {"threadId": self.thread, "runId": turn.run, "state": {}, "messages": self.messages if self.whole else [question],
                "tools": [], "context": [], "forwardedProps": {}}

    def write(self, turn):
        sent = self.input(turn)
        events = turn.events(self.thread)
        size = 1 if self.each else -(-len(events) // 4)
        seq, sent = None, json.dumps(sent)
        for i in range(0, len(events), size):
            seq = self.call("select agui.append(%s, %s, %s::json, %s, %s::json)", self.thread, turn.run, json.dumps(events[i:i + size]), seq, None if i else sent)
        self.messages += turn.answers()

    def finish(self, number):
        if self.settled:
            self.call("select agui.settle(%s)", self.thread)
        if self.compacted:
            self.connection.execute("call agui.compact()")
            if number % 5 == 4:
                self.vacuum()

    def vacuum(self):  # as autovacuum would, but in a conversation of minutes
        self.connection.execute("vacuum agui.run_input, agui.input_part, agui.batch, agui.run, agui.thread, agui.snapshot, agui.message_version")

    def restore(self, thread):
        return self.call("select agui.restore(%s)", thread)["messages"]

    def call(self, statement, *values):
        return self.connection.execute(statement, values).fetchone()[0]


class Recorded(Pgagui):
    """A turn is a run that the Python package records: it claims the run, stores its events in two calls, and settles the thread behind it."""
    def __init__(self, url, history="fill"):
        sys.path.append(str(Path(__file__).parents[3] / "python" / "src"))
        from pgagui import AsyncStore
        super().__init__(url)
        self.store, self.history = AsyncStore(url), history
        wait(self.store.open())

    def write(self, turn):
        wait(self.record(turn))
        self.messages += turn.answers()

    async def record(self, turn):
        async with self.store.record(self.input(turn), history=self.history) as run:
            for event in turn.events(self.thread):
                await run.send(event)

    def finish(self, number):
        if tasks := self.store._live._tasks:
            wait(asyncio.wait(tasks))


def pgagui(**options):
    return lambda url: Pgagui(url, **options)


STORES = {
    "OpenAI Agents SQLAlchemySession (messages only)": OpenAIAgents,
    "Agno PostgresDb (messages only)": Agno,
    "Agent Framework community-postgres (messages only)": AgentFramework,
    "LangGraph PostgresSaver (graph included)": LangGraph,
    "pgagui, new messages only, compacted": pgagui(compacted=True),
    "pgagui, whole input, compacted": pgagui(whole=True, compacted=True),
    "pgagui, new messages only, settled behind each run": pgagui(settled=True),
    "pgagui, whole input, settled behind each run": pgagui(whole=True, settled=True),
    "pgagui, new messages only, before compaction": pgagui(),
    "pgagui, whole input, before compaction": pgagui(whole=True),
    "pgagui, new messages only, recorded in Python": Recorded,
    "pgagui, new messages only, recorded in Python without a branch point": lambda url: Recorded(url, history=None),
    "pgagui, new messages only, each event a call": pgagui(each=True, compacted=True),
}
