"""Tries all of pgagui_http.py, and append_http.py, with the server at $PGAGUI_URL, whose agent "assistant" greets."""

import asyncio
import os
import sys

from append_http import agent, record
from pgagui_http import Client, Refused, Session

client = Client(os.environ["PGAGUI_URL"], os.environ.get("PGAGUI_TOKEN"))

events = list(client.run("assistant", "trip/1", [{"id": "u1", "role": "user", "content": "Hello"}], run_id="run-1"))
assert events[0].data["type"] == "RUN_STARTED" and events[-1].data["type"] == "RUN_FINISHED", events
assert [event.seq for event in events] == list(range(1, len(events) + 1)), events

rest = list(client.follow("trip/1", after=events[1].position))
assert [event.data for event in rest] == [event.data for event in events[2:]], rest
assert client.conversation("trip/1")["messages"][0]["content"] == "Hello"
assert client.conversation("trip/1", run_id="run-1", at_seq=1)["messages"][-1]["role"] == "user"

begin, end = {"type": "RUN_STARTED"}, {"type": "RUN_FINISHED"}
for _ in range(2):  # the second call repeats the first
    assert client.append("trip/1", "run-2", [begin, end], after_seq=0) == len(events) + 2
try:
    client.append("trip/1", "run-3", [begin, end], after_seq=7)
    sys.exit("a run that does not exist was continued")
except Refused as refusal:
    assert refusal.status == 409 and refusal.sqlstate == "UI017", refusal.problem
assert [thread["threadId"] for thread in client.threads()] == ["trip/1"]
client.stop("trip/1")


class Losing(Client):
    """Loses the answer to every other call."""

    calls = 0

    def append(self, *arguments, **names):
        seq = super().append(*arguments, **names)
        self.calls += 1
        if self.calls % 2:
            raise ConnectionResetError
        return seq


losing = Losing(client.url, client.token)
assert record(losing, "recorded", "run-1", agent("recorded", "run-1"), batch=2) == 6 and losing.calls == 6
assert client.conversation("recorded")["messages"][0]["content"] == "Three days in Lisbon"
client.erase("recorded")


async def sessions() -> None:
    session = Session("s1", client)
    assert await session.get_items() == [] and await session.pop_item() is None
    await session.add_items([{"role": "user", "content": "é\u2028"}, {"role": "assistant", "content": [1, None, 0.5]}])
    await session.add_items([{"role": "user", "content": "more"}])
    assert [item["content"] for item in await session.get_items()] == ["é\u2028", [1, None, 0.5], "more"]
    assert [item["content"] for item in await session.get_items(limit=1)] == ["more"]
    assert (await session.pop_item())["content"] == "more"
    assert len(await session.get_items()) == 2
    await session.clear_session()
    assert await session.get_items() == []
    await session.add_items([1])
    assert await session.get_items() == [1]
    many = list(range(2500))  # more than a page
    await session.add_items(many)
    assert await session.get_items() == [1, *many]


asyncio.run(sessions())
client.erase("trip/1")
try:
    client.conversation("trip/1")
    sys.exit("an erased thread was read")
except Refused as refusal:
    assert refusal.status in (404, 410), refusal.problem
print("ok")
