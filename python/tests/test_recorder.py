import asyncio
import json
import signal
import sys
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from ag_ui import core
from psycopg_pool import AsyncConnectionPool

from pgagui import AsyncStore, Closed, Error, NeedsPool, errors, repair_tool_calls, sse

from .conftest import (
    ROOT,
    collect,
    crash,
    finished,
    message,
    outage,
    pooler,
    run_input,
    started,
    until,
)


async def agent(*words, run="run-1", thread="trip", pause=0.0):
    yield started(run, thread)
    for event in message(*words, id=f"m-{run}"):
        yield event
        await asyncio.sleep(pause)
    yield finished(run, thread)


async def contents(store, thread="trip"):
    return [message["content"] for message in await store.messages(thread)]


async def test_a_block_records_the_words_of_the_user_and_of_the_agent(store):
    async with store.record(run_input()) as run:
        async for event in agent("Three ", "days"):
            await run.send(event)
        await run.flush()
        assert run.seq == 6 and run.unstored == []
    assert await contents(store) == ["Lisbon?", "Three days"]
    assert (await store.status("trip")).status == "finished"


async def test_tee_yields_what_is_stored(store):
    seen = []
    async for event in store.tee(run_input(), agent("Three ", "days")):
        assert (await store.events("trip"))[event.seq - 1].json == event.json
        seen.append(event)
    assert [event.seq for event in seen] == [1, 2, 3, 4, 5, 6]
    assert seen[2].data == {
        "type": "TEXT_MESSAGE_CONTENT",
        "messageId": "m-run-1",
        "delta": "Three ",
    }


async def test_the_second_run_continues_from_the_first_and_a_parent_can_be_named(store):
    for name, parent in [("a", None), ("b", None), ("c", "a"), ("root", "")]:
        async for _ in store.tee(run_input(name), agent("x", run=name), parent=parent):
            pass
    async for _ in store.tee(run_input("d", parentRunId="b"), agent("x", run="d")):
        pass
    parents = {run.run_id: run.parent_run_id for run in await store.runs("trip")}
    assert parents == {"a": None, "b": "a", "c": "a", "root": None, "d": "b"}


async def test_models_of_ag_ui_keep_null_in_patches_and_values(store):
    async def events():
        patch: list[Any] = [{"op": "replace", "path": "/b", "value": None}]
        yield core.RunStartedEvent(thread_id="trip", run_id="run-1")
        yield core.StateSnapshotEvent(snapshot={"a": None, "b": [1]})
        yield core.StateDeltaEvent(delta=patch)
        yield core.CustomEvent(name="note", value=None)
        yield core.RunFinishedEvent(thread_id="trip", run_id="run-1")

    given = core.RunAgentInput(
        thread_id="trip", run_id="run-1", state={}, tools=[], context=[], forwarded_props={},
        messages=[core.UserMessage(id="u1", content="Lisbon?")],
    )  # fmt: skip
    seen = [event.data async for event in store.tee(given, events())]
    assert seen[2]["delta"] == [{"op": "replace", "path": "/b", "value": None}]
    assert seen[3] == {"type": "CUSTOM", "name": "note", "value": None}
    assert await store.state("trip") == {"a": None, "b": None}
    assert await contents(store) == ["Lisbon?"]


async def test_an_agent_that_does_not_end_its_run_has_finished(store):
    async def events():
        yield started()

    seen = [event.type async for event in store.tee(run_input(), events())]
    assert seen == ["RUN_STARTED", "RUN_FINISHED"]


async def test_an_agent_that_fails_before_its_first_event(store, caplog):
    async def events():
        raise RuntimeError("no key for the model \udcff")
        yield

    seen = [event.data async for event in store.tee(run_input(), events())]
    assert [event["type"] for event in seen] == ["RUN_STARTED", "RUN_ERROR"]
    assert seen[1]["message"] == "no key for the model ?"
    assert (await store.status("trip")).status == "failed"
    assert await contents(store) == ["Lisbon?"]
    assert "RuntimeError" in caplog.text  # with its traceback


async def test_a_block_passes_its_exception_on(store):
    with pytest.raises(ZeroDivisionError):
        async with store.record(run_input()) as run:
            await run.send(started(), *message("Three"))
            1 / 0  # noqa: B018
    assert (await store.status("trip")).error_message == "division by zero"
    assert await contents(store) == ["Lisbon?", "Three"]


@pytest.mark.parametrize(
    "rubbish",
    [
        None, 7, [], "no JSON", b"\xff", "[]", "{}", '{"type":7}', {"type": ""},
        {"type": "A", "x": {1}},
        {"type": "A", "x": float("nan")}, '{"type":"A","x":NaN}', {"type": "A", "x": "\ud800"},
        {"type": "TEXT_MESSAGE_CONTENT", "message_id": "m", "delta": "x"}, object(),
        {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "tool_call_id": "t"}]},
    ],
)  # fmt: skip
async def test_rubbish_is_an_error_of_the_run(store, rubbish):
    async def events():
        yield started()
        yield rubbish

    seen = [event.data async for event in store.tee(run_input(), events())]
    assert [event["type"] for event in seen] == ["RUN_STARTED", "RUN_ERROR"], seen
    assert "(" in seen[1]["message"]  # it says what to do


async def test_what_the_database_refuses_is_one_clear_error(store):
    with pytest.raises(errors.RunIDInUse, match="other"):
        async with store.record(run_input()) as run:
            await run.send(started("other"))
            await asyncio.sleep(30)
    assert len(run.unstored) == 1
    async with store.record(run_input("run-2")):
        pass  # its claim was released


async def test_a_plain_iterator_is_refused(store):
    with pytest.raises(TypeError, match="async generator"):
        store.tee(run_input(), iter([]))


async def test_another_run_in_progress_and_a_repeated_request(store):
    async with store.record(run_input()):
        other = store.tee(run_input("run-2"), agent("x", run="run-2"))
        with pytest.raises(errors.RunInProgress) as caught:
            await other.begin()
        assert caught.value.status == 409 and caught.value.sqlstate == "UI006"
        assert not caught.value.retryable and caught.value.hint
    with pytest.raises(errors.RunIDInUse):
        await store.record(run_input()).begin()


async def test_queued_runs_have_their_turns_in_order(store):
    async with store.record(run_input()) as run:
        await run.send(started())
        waiting = []
        for name in ("run-2", "run-3", "run-4"):
            tee = store.tee(run_input(name), agent("x", run=name), on_concurrent_run="queue")
            waiting.append(asyncio.create_task(collect(tee)))
            await asyncio.sleep(0)
        left = asyncio.create_task(
            store.record(run_input("left"), on_concurrent_run="queue").begin()
        )
        await asyncio.sleep(0)
        left.cancel()
    ended = [(await events)[-1].type for events in waiting]
    assert ended == ["RUN_FINISHED"] * 3
    runs = await store.runs("trip")
    assert [run.run_id for run in runs] == ["run-1", "run-2", "run-3", "run-4"]
    assert [run.parent_run_id for run in runs] == [None, "run-1", "run-2", "run-3"]


async def test_a_run_supersedes_the_one_in_progress(store, address, opened):
    async with opened(address, check_every=0.05) as other:
        first = other.record(run_input())

        async def agent_of_the_other_process():
            async with first as run:
                await run.send(started())
                await asyncio.Event().wait()

        other_process = asyncio.create_task(agent_of_the_other_process())
        await until(lambda: first.seq == 1)
        tee = store.tee(run_input("run-2"), agent("x", run="run-2"), on_concurrent_run="supersede")
        assert (await collect(tee))[-1].type == "RUN_FINISHED"
        await other_process
        assert first.stop_reason == "superseded by another run"
    assert [run.status for run in await store.runs("trip")] == ["cancelled", "finished"]


async def test_a_queued_run_is_refused_after_its_time(store):
    async with store.record(run_input()) as run:
        await run.send(started())
        late = store.record(run_input("run-2"), on_concurrent_run="queue", queue_timeout=0.1)
        with pytest.raises(errors.RunInProgress):
            await late.begin()
    with pytest.raises(errors.InvalidArgument, match="on_concurrent_run is 'wait'"):
        store.record(run_input("run-2"), on_concurrent_run="wait")
    assert [run.run_id for run in await store.runs("trip")] == ["run-1"]


TOOL_RESULTS = json.loads((ROOT / "protocol/testdata/tool_results.json").read_text())


@pytest.mark.parametrize("case", TOOL_RESULTS, ids=[case["name"] for case in TOOL_RESULTS])
def test_calls_of_tools_get_results(case):
    assert [message["id"] for message in repair_tool_calls(case)] == case["want"]


async def test_a_stop_cancels_the_agent_and_closes_what_is_open(store):
    cancelled = []

    async def events():
        yield started()
        yield {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"}
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    tee = store.tee(run_input(), events())
    seen = []
    async for event in tee:
        seen.append(event.data)
        if len(seen) == 2:
            assert await store.request_stop("trip", reason="enough") == 1
    assert [event["type"] for event in seen[2:]] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert seen[-1]["outcome"] == {"type": "cancelled"}
    assert cancelled and tee.recording.stop_reason == "enough"
    assert (await store.status("trip")).status == "cancelled"


async def test_the_end_that_a_stop_writes_is_not_taken_for_that_of_another_writer(address, opened):
    async with opened(address, check_every=0.002) as store:  # heartbeats come at any time
        for run in (f"run-{n}" for n in range(30)):

            async def agent(run=run):
                yield started(run)
                await asyncio.sleep(60)

            tee = store.tee(run_input(run), agent())
            await anext(tee)
            await store.request_stop("trip")
            assert (await collect(tee))[-1].data["outcome"] == {"type": "cancelled"}


async def test_the_code_behind_a_stopped_block_continues(store):
    async with store.record(run_input()) as run:
        await store.request_stop("trip", "run-1")  # of the claim: nothing is sent yet
        await asyncio.sleep(60)
    assert run.stop_reason == ""
    if sys.version_info >= (3, 11):
        assert asyncio.current_task().cancelling() == 0
    await asyncio.sleep(0.01)
    assert (await store.status("trip")).status == "cancelled"


async def test_an_agent_may_send_its_last_words_after_a_stop(store):
    async with store.record(run_input()) as run:
        await run.send(started())
        await store.request_stop("trip")
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await run.send(*message("Stopped."), finished())
    assert await contents(store) == ["Lisbon?", "Stopped."]
    assert (await store.status("trip")).status == "finished"


async def test_a_cancelled_block_is_cut_off(store):
    async def block():
        async with store.record(run_input()) as run:
            await run.send(started(), *message("Three"))
            await asyncio.sleep(60)

    task = asyncio.create_task(block())
    await until(lambda: exists(store))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await until(lambda: ended(store))).cut_off_reason == "its task was cancelled"


async def exists(store, run="run-1"):
    try:
        return await store.status("trip", run)
    except errors.NotFound:
        return None


async def ended(store, run="run-1"):
    status = await exists(store, run)
    return status if status and status.status != "running" else None


async def test_a_client_that_leaves_does_not_end_the_run(store):
    async def client():
        async for _ in sse(store.tee(run_input(), agent(*["word "] * 20, pause=0.01))):
            pass

    task = asyncio.create_task(client())
    await until(lambda: exists(store))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await until(lambda: ended(store))).status == "finished"
    assert await contents(store) == ["Lisbon?", "word " * 20]


async def test_a_slow_client_reads_from_the_log(store, monkeypatch):
    monkeypatch.setattr("pgagui._recorder.MAX_KEPT_BYTES", 2000)
    words = [f"{i} " for i in range(400)]
    tee = store.tee(run_input(), agent(*words, pause=0.0005))
    seen = []
    async for event in tee:
        seen.append(event)
        assert tee._bytes <= 2000 + (64 << 10)
        if len(seen) in (1, 150):
            seq = tee.recording.seq
            await until(lambda seq=seq: tee.recording.seq > seq + 60 or tee._agent.done())
    assert [event.seq for event in seen] == list(range(1, 405))
    assert [event.json for event in seen] == [event.json for event in await store.events("trip")]


async def test_an_outage_before_the_run_begins(address, caplog, opened):
    async with opened(address, check_every=0.1, max_bytes=50_000) as store:

        async def events():
            yield started()
            for word in range(100):
                yield {"type": "CUSTOM", "name": "x", "value": f"{word} " + "x" * 1000}

        tee = store.tee(run_input(), events())
        async with outage(address):
            claiming = asyncio.create_task(tee.begin())
            await until(lambda: "claim run" in caplog.text)  # it is retried
        await claiming
        seen = await collect(tee)
        assert [event.seq for event in seen] == list(range(1, 103))


async def test_an_outage_loses_nothing_and_stores_nothing_twice(address, opened):
    async with opened(address, check_every=0.2, max_bytes=20_000) as store:

        async def events(run):
            yield started(run)
            for word in range(300):
                await asyncio.sleep(0.005)
                yield {"type": "CUSTOM", "name": "x", "value": f"{word} " + "x" * 200}

        tees = [store.tee(run_input(f"run-{i}", f"run-{i}"), events(f"run-{i}")) for i in range(5)]
        clients = [asyncio.create_task(collect(tee)) for tee in tees]

        def waiting():
            return [sum(map(len, tee.recording.unstored)) for tee in tees]

        await until(lambda: all(tee.recording.seq > 10 for tee in tees))
        async with outage(address):
            await until(lambda: min(waiting()) > 19_600)  # the buffers are full, the agents wait
            assert max(waiting()) <= 20_000
        for i, seen in enumerate(await asyncio.gather(*clients)):
            assert [event.seq for event in seen] == list(range(1, 303))
            values = [event.data["value"].split()[0] for event in seen[1:-1]]
            assert values == [str(word) for word in range(300)]
            log = await store.events(f"run-{i}")
            assert [event.json for event in log] == [event.json for event in seen]
            assert (await store.status(f"run-{i}")).status == "finished"


async def test_the_server_crashes_while_runs_are_recorded(address, opened):
    async with opened(address, check_every=0.2) as store:
        tees = [
            store.tee(
                run_input(f"r{i}", f"t{i}"),
                agent(*map(str, range(200)), run=f"r{i}", thread=f"t{i}", pause=0.01),
            )
            for i in range(20)
        ]
        clients = [asyncio.create_task(collect(tee)) for tee in tees]
        for behind in (20, 100):
            await until(lambda behind=behind: all(tee.recording.seq > behind for tee in tees))
            await crash(address)
        for i, seen in enumerate(await asyncio.gather(*clients)):
            assert [event.seq for event in seen] == list(range(1, 205))
            assert [event.json for event in await store.events(f"t{i}")] == [e.json for e in seen]


async def test_through_a_pooler_in_transaction_mode(pooled, opened):
    async with opened(pooled) as store:
        stores = [store, store.in_scope("alice")]
        followers = [asyncio.create_task(collect(one.follow("t7", stay=True))) for one in stores]
        tees = [
            one.tee(run_input("r", f"t{i}"), agent(*"abc", run="r", thread=f"t{i}", pause=0.01))
            for one in stores
            for i in range(20)
        ]
        for seen in await asyncio.gather(*map(collect, tees)):
            assert [event.seq for event in seen] == [1, 2, 3, 4, 5, 6, 7]
        for one in stores:
            assert await contents(one, "t7") == ["Lisbon?", "abc"]
            assert len(await one.threads()) == 20
    for follower in followers:
        with pytest.raises(Closed):
            await follower


async def test_psycopg_alone_goes_through_a_pooler(pooled):
    """With the setting that docs/operations.md names."""

    async def write(thread):
        async with await psycopg.AsyncConnection.connect(
            pooled, autocommit=True, prepare_threshold=None
        ) as connection:
            seq = 0
            for event in [started("r", thread), *message(*"abcdefgh"), finished("r", thread)]:
                found = await connection.execute(
                    "select agui.append(%s, 'r', %s::json, after_seq => %s)",
                    [thread, json.dumps([event]), seq],
                )
                [(seq,)] = await found.fetchall()
            return seq

    assert set(await asyncio.gather(*(write(f"t{i}") for i in range(8)))) == {12}


async def test_through_a_pooler_in_statement_mode(address):
    """It has no transactions, which a scope needs."""
    with pooler(address, "statement") as pooled:
        async with AsyncStore(pooled) as store:
            seen = await collect(store.tee(run_input(), agent("Three")))
            assert [event.seq for event in seen] == [1, 2, 3, 4, 5]
            alice = store.in_scope("alice")
            with pytest.raises(Error, match="pool_mode = transaction") as caught:
                await collect(alice.tee(run_input(), agent("Three")))
            assert caught.value.sqlstate == "08P01" and not caught.value.retryable
        async with await psycopg.AsyncConnection.connect(pooled) as one:
            with pytest.raises(Error, match="pool_mode = transaction"):
                await AsyncStore(one).threads()


async def test_an_answer_that_is_lost_is_asked_for_once_more(store, monkeypatch):
    calls = store._live.calls("", 30)
    append = type(calls)._append
    lost: list[int] = []

    async def losing(self, *arguments, **more):
        seq = await append(self, *arguments, **more)
        if len(lost) < 3:
            lost.append(seq)
            raise Error("lost", retry="transient")
        return seq

    monkeypatch.setattr(type(calls), "_append", losing)
    seen = [
        event.seq async for event in store.tee(run_input(), agent("Three ", "days", pause=0.03))
    ]
    assert seen == [1, 2, 3, 4, 5, 6] and len(lost) == 3
    assert len(await store.events("trip")) == 6


WORKER = """
import asyncio, json, os, sys
sys.path.insert(0, sys.argv[3])
from pgagui import AsyncStore

async def events(run):
    yield {"type": "RUN_STARTED", "threadId": run, "runId": run}
    yield {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
    for word in range(10**6):
        await asyncio.sleep(0.01)
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": f"{word} "}

async def client(store, run):
    given = {"threadId": run, "runId": run, "messages": []}
    async for event in store.tee(given, events(run)):
        os.write(1, f"{run} {event.seq}\\n".encode())

async def main():
    async with AsyncStore(sys.argv[1]) as store:
        await asyncio.gather(*(client(store, f"run-{i}") for i in range(int(sys.argv[2]))))

asyncio.run(main())
"""


async def test_a_killed_worker_loses_nothing_that_it_has_shown(store, tmp_path, address):
    path = tmp_path / "worker.py"
    path.write_text(WORKER)
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        await connection.execute("select agui.set_setting('heartbeat_lease', '1 second')")
    worker = await asyncio.create_subprocess_exec(
        sys.executable, str(path), address, "50", str(ROOT / "python" / "src"),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert worker.stdout
    shown: dict[str, int] = {}
    while len(shown) < 50 or min(shown.values()) < 20:
        run, seq = (await asyncio.wait_for(worker.stdout.readline(), 60)).decode().split()
        shown[run] = int(seq)
    worker.send_signal(signal.SIGKILL)
    rest, _ = await worker.communicate()
    for line in rest.decode().splitlines():
        run, seq = line.split()
        shown[run] = int(seq)
    for run, last in shown.items():
        log = await store.events(run)
        assert len(log) >= last, run
        words = [event.data["delta"] for event in log[2:]]
        assert words == [f"{word} " for word in range(len(words))]
    # Its lease ends: then the next run takes its place, and closes it.
    reader = asyncio.create_task(collect(store.follow("run-0", run_id="run-0")))
    next_run = store.tee(run_input("next", "run-0"), agent("x", run="next", thread="run-0"))

    async def takes_its_place():
        with suppress(errors.RunInProgress):
            await next_run.begin()
            return True

    await until(takes_its_place)
    assert (await collect(next_run))[-1].type == "RUN_FINISHED"
    assert [event.type for event in await reader][-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert (await store.status("run-0", "run-0")).status == "cut_off"


async def test_a_run_that_was_cut_off_fails_its_agent(store):
    with pytest.raises(errors.RunCutOff):
        async with store.record(run_input()) as run:
            await run.send(started())
            await run.flush()
            await store.abandon("trip", "run-1", "operator")
            await asyncio.sleep(60)


async def test_closing_the_store_ends_its_runs_and_leaves_no_task(address, opened):
    async with opened(address) as store:

        async def stubborn():
            yield started()
            for _ in range(3):
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)
            yield finished()

        tee = store.tee(run_input(), agent("x", pause=60))
        await tee.begin()
        other = store.tee(run_input(thread="other"), stubborn())
        await other.begin()
        follower = asyncio.create_task(collect(store.follow("trip", stay=True)))
        await until(lambda: tee.recording.seq and other.recording.seq)
    with pytest.raises(Closed):
        await follower
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with pytest.raises(Closed):
        await store.record(run_input("run-2")).begin()
    async with opened(address) as store:
        assert (await store.status("trip")).cut_off_reason == "its process was shut down"


async def test_a_run_that_ended_is_settled_without_a_job(address, opened):
    async with opened(address) as store:
        for thread in ("one", "two"):
            words = ["text of 16 bytes" * 64] * 100
            await collect(store.tee(run_input(thread=thread), agent(*words, thread=thread)))
    with psycopg.connect(address) as connection:
        runs = connection.execute("select log_bytes is not null from agui.run").fetchall()
    assert runs == [(True,), (True,)]


async def test_a_pool_of_the_user_is_used_as_it_is(address):
    pool = AsyncConnectionPool(address, open=False, min_size=1, max_size=2)
    await pool.open()
    store = AsyncStore(pool)
    async for _ in store.tee(run_input(), agent("x")):
        pass
    async with pool.connection() as connection:
        assert connection.autocommit is False
    await store.close()
    async with AsyncStore(pool) as again:
        assert await contents(again) == ["Lisbon?", "x"]
    await pool.close()
    with pytest.raises(Closed):
        await store.messages("trip")
    with pytest.raises(Closed):
        await AsyncStore(pool).record(run_input("run-2")).begin()


async def test_a_connection_is_the_transaction_of_the_caller(address):
    async with await psycopg.AsyncConnection.connect(address) as connection:
        store = AsyncStore(connection)
        with pytest.raises(NeedsPool):
            store.record(run_input())
        await store.append("trip", "run-1", [started(), finished()], after_seq=0)
        await connection.rollback()
        with pytest.raises(errors.UnknownThread):
            await store.messages("trip")
        await connection.rollback()
    with pytest.raises(Closed):
        await store.messages("trip")


async def test_events_of_many_runs_have_one_heartbeat_task(store):
    blocks = [store.record(run_input(f"r{i}", thread=f"t{i}")) for i in range(20)]
    for block in blocks:
        await block.__aenter__()
    beating = [task for task in asyncio.all_tasks() if "_keep_beating" in repr(task)]
    assert len(beating) == 1
    for block in blocks:
        await block.__aexit__(None, None, None)
    assert {(await store.status(f"t{i}")).status for i in range(20)} == {"finished"}


async def test_json_is_stored_byte_for_byte(store):
    text = '{"type": "CUSTOM",\n "name":"x", "value": [1.0, 1e2, 12345678901234567890, "\\u00e9"]}'
    text = text.replace("]", ', "é\u2028"]')
    async with store.record(run_input()) as run:
        await run.send(started(), text, text.encode())
    assert [event.json for event in await store.events("trip")][1:3] == [text, text]
    frames = await collect(sse(store.follow("trip", after=1)))
    assert frames[0].split(b"\n")[1:4] == [
        b"data: " + line.encode() for line in text.split("\n")
    ] + [b""]
    assert json.loads(frames[2].split(b"data: ")[1])["type"] == "RUN_FINISHED"
