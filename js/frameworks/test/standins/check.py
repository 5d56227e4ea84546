"""Uses the classes of examples/python/agent_framework_*.py, given as files, as the framework does."""

import asyncio
import os
import runpy
import sys

from agent_framework import Message
from agent_framework_ag_ui import AGUIThreadSnapshot

names = {name: value for path in sys.argv[1:] for name, value in runpy.run_path(path).items()}
url = os.environ["DATABASE_URL"]


async def snapshots():
    store = names["PostgresSnapshotStore"](url)
    assert await store.get(scope="a", thread_id="t") is None
    assert await store.delete(scope="a", thread_id="t") is False
    first = AGUIThreadSnapshot(
        messages=[{"id": "u1", "role": "user", "content": "Grüße \ud83d \u0000 'x' %s"}],
        state={"n": 1.5},
        interrupt=[{"id": "i"}],
        session_state={"private": [None, True]},
    )
    await store.save(scope="a", thread_id="t", snapshot=first)
    assert await store.get(scope="a", thread_id="t") == first
    assert await store.get(scope="b", thread_id="t") is None
    second = AGUIThreadSnapshot(messages=[])
    await store.save(scope="a", thread_id="t", snapshot=second)
    await store.save(scope="b", thread_id="t", snapshot=first)
    assert await store.get(scope="a", thread_id="t") == second
    assert await store.delete(scope="a", thread_id="t") is True
    assert await store.delete(scope="a", thread_id="t") is False
    assert await store.get(scope="a", thread_id="t") is None
    await store.save(scope="a", thread_id="t", snapshot=second)
    await store.clear(scope="a")
    assert await store.get(scope="a", thread_id="t") is None
    assert await store.get(scope="b", thread_id="t") == first
    await asyncio.gather(*(store.save(scope="a", thread_id=f"t{i}", snapshot=first) for i in range(40)))
    await store.clear()
    found = await asyncio.gather(*(store.get(scope="a", thread_id=f"t{i}") for i in range(40)))
    assert found == [None] * 40
    assert await store.get(scope="b", thread_id="t") is None


async def history():
    provider = names["PostgresHistoryProvider"](url, scope="a", load_messages=True)
    assert await provider.get_messages("s") == []
    await provider.save_messages("s", [Message("user", "one"), Message("assistant", "two")])
    await provider.save_messages("s", [Message("user", "three")], state={})
    found = await provider.get_messages("s")
    assert [(message.role, message.text) for message in found] == [("user", "one"), ("assistant", "two"), ("user", "three")]
    assert await names["PostgresHistoryProvider"](url, scope="b").get_messages("s") == []
    assert await provider.get_messages("other") == []


asyncio.run(snapshots())
asyncio.run(history())
