"""Runs the stores of Python frameworks beside pgagui, for the phase peers of the benchmark.

It reads commands from stdin, one a line, and writes one line for each to stdout, as peers.mjs does:

  {"do":"versions"}                                  those of Python and of the packages
  {"do":"stores"}                                    the names of the stores
  {"do":"open","store":S,"url":U,"image":B,"turns":T,"text":F}
                                                     a store in the database U, of conversations with or without an image
  {"do":"fill","store":S,"image":B,"conversations":N}
                                                     writes N conversations: "bytes" is what each added on disk, behind a vacuum
  {"do":"round","store":S,"image":B,"reads":N}       writes one and reads it N times: "write" and "restore" are milliseconds
                                                     of a turn and of a read, "statements" those of the last turn
"""
import base64
import importlib.metadata
import json
import os
import platform
import random
import re
import statistics
import sys
import tempfile
import time

import psycopg

from stores import STORES

connections = []
construct = psycopg.BaseConnection.__init__


def remember(connection, pgconn):
    construct(connection, pgconn)
    connections.append(pgconn)


psycopg.BaseConnection.__init__ = remember


def statements(work):
    """How many statements work sends: the messages Query and Execute of the protocol, whatever the framework does above."""
    with tempfile.TemporaryFile() as log:
        traced = [connection for connection in connections if connection.status == psycopg.pq.ConnStatus.OK]
        for connection in traced:
            connection.trace(log.fileno())
        work()
        for connection in traced:
            connection.untrace()
        log.seek(0)
        fields = [line.split(b"\t") for line in log]  # time, F for what the client sends, length, message
        return sum(field[1] == b"F" and field[3].strip() in (b"Query", b"Execute") for field in fields if len(field) > 3)


def plain(text):
    """The letters of a text, however its quotes are escaped."""
    return re.sub(r"\W", "", text)


class Turn:
    """What is new in a turn: a question, two calls of a tool or an image, and an answer of 1 KB in 40 tokens."""
    def __init__(self, source, text, image):
        def words(size):
            at = source.randrange(len(text) - size)
            return text[at:at + size]

        def new():
            return "%032x" % source.getrandbits(128)

        self.run, self.question_id, self.answer_id = new(), new(), new()
        self.question, self.answer = words(80), words(1000)
        self.calls = [] if image is not None else [(new(), json.dumps({"q": words(30)}), words(200)) for _ in range(2)]
        self.call_ids = [(new(), new()) for _ in self.calls]
        self.image_bytes = source.randbytes(786432) if image else None  # 1 MiB in base64
        self.image = base64.b64encode(self.image_bytes).decode() if image else None

    def events(self, thread):
        events = [{"type": "RUN_STARTED", "threadId": thread, "runId": self.run}]
        for (call, arguments, result), (parent, message) in zip(self.calls, self.call_ids):
            events += [{"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "search", "parentMessageId": parent},
                       {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": arguments[:10]},
                       {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": arguments[10:]},
                       {"type": "TOOL_CALL_END", "toolCallId": call},
                       {"type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": call, "content": result, "role": "tool"}]
        events.append({"type": "TEXT_MESSAGE_START", "messageId": self.answer_id, "role": "assistant"})
        events += [{"type": "TEXT_MESSAGE_CONTENT", "messageId": self.answer_id, "delta": self.answer[i:i + 25]} for i in range(0, 1000, 25)]
        return events + [{"type": "TEXT_MESSAGE_END", "messageId": self.answer_id}, {"type": "RUN_FINISHED", "threadId": thread, "runId": self.run}]

    def answers(self):
        messages = []
        for (call, arguments, result), (parent, message) in zip(self.calls, self.call_ids):
            messages += [{"id": parent, "role": "assistant", "toolCalls": [{"id": call, "type": "function", "function": {"name": "search", "arguments": arguments}}]},
                         {"id": message, "role": "tool", "toolCallId": call, "content": result}]
        return messages + [{"id": self.answer_id, "role": "assistant", "content": self.answer}]


class Bench:
    """A store of one kind of conversation, in a database of its own."""
    def __init__(self, store, url, image, turns, text):
        with open(text, encoding="utf-8") as file:
            self.text = " ".join(file.read().split())
        self.image, self.turns, self.source, self.count = image, turns, random.Random(1), 0
        self.store = STORES[store](url)
        self.admin = psycopg.connect(url, autocommit=True)

    def conversation(self):
        """Writes one. Returns its name, the milliseconds of a turn, the statements of the last turn, its messages and how its answer begins."""
        self.count += 1
        thread, times, sent, messages = f"conversation {self.count}", [], 0, 0
        self.store.begin(thread)
        for number in range(self.turns):
            # None: a conversation without images, with calls.
            turn = Turn(self.source, self.text, None if not self.image else number == 0)
            begin = time.perf_counter()
            if number == self.turns - 1:
                sent = statements(lambda: self.store.write(turn))
            else:
                self.store.write(turn)
                times.append(1000 * (time.perf_counter() - begin))
            messages += 2 + 2 * len(turn.calls)
            if hasattr(self.store, "finish"):
                self.store.finish(number)
        return thread, statistics.mean(times), sent, messages, turn.answer[:20]

    def size(self):
        self.admin.execute("vacuum")
        return self.admin.execute("""select sum(pg_total_relation_size(c.oid))::float8 from pg_class c
            where relkind = 'r' and relnamespace not in (select oid from pg_namespace where nspname like 'pg\\_%' or nspname = 'information_schema')""").fetchone()[0]

    def fill(self, conversations):
        self.conversation()  # makes what is there once: first pages, tables
        before = self.size()
        for _ in range(conversations):
            self.conversation()
        return {"bytes": (self.size() - before) / conversations}

    def round(self, reads):
        thread, write, sent, messages, begin_of_answer = self.conversation()
        times = []
        for _ in range(reads):
            begin = time.perf_counter()
            restored = self.store.restore(thread)
            times.append(1000 * (time.perf_counter() - begin))
        if len(restored) != messages or plain(begin_of_answer) not in plain(str(getattr(restored[-1], "text", restored[-1]))):
            raise ValueError(f"{len(restored)} messages came back, not {messages}, or the last one is another")
        return {"write": write, "restore": statistics.median(times), "statements": sent}


benches = {}


def answer(do, store=None, image=False, **rest):
    if do == "versions":
        names = ["openai-agents", "agno", "agent-framework-core", "community-agent-framework-postgres", "langgraph", "langgraph-checkpoint-postgres", "psycopg"]
        return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in names}
    if do == "stores":
        return {"stores": list(STORES)}
    if do == "open":
        benches[store, image] = Bench(store, image=image, **rest)
        return {}
    return getattr(benches[store, image], do)(**rest)


answers, sys.stdout = sys.stdout, sys.stderr  # frameworks may print
for line in sys.stdin:
    try:
        result = answer(**json.loads(line))
    except Exception as failure:
        result = {"error": f"{type(failure).__name__}: {failure}"[:500]}
    print(json.dumps(result), file=answers, flush=True)
os._exit(0)  # without waiting for the frameworks' pools
