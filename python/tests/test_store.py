import asyncio
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg import conninfo
from sqlalchemy.ext.asyncio import create_async_engine

from pgagui import AsyncStore, Error, Position, Store, Unavailable, errors, sse

from .conftest import collect, finished, message, outage, run_input, started, until
from .test_recorder import agent


def test_without_asyncio(address):
    with Store(address) as store:
        begin, given = [started("r", "t"), *message("hi")], run_input("r", "t")
        seq = store.append("t", "r", begin, after_seq=0, input=given)
        assert store.append("t", "r", begin, after_seq=0, input=given) == seq == 4
        assert store.append("t", "r", [finished("r", "t")], after_seq=seq) == 5
        shown = store.restore("t")
        assert (shown.run_id, shown.seq, shown.status, shown.state) == ("r", 5, "finished", {})
        assert [message["content"] for message in shown.messages] == ["Lisbon?", "hi"]
        assert store.messages("t", at_seq=1)[-1]["role"] == "user"
        assert store.messages("t", at_time=datetime.now(timezone.utc)) == shown.messages
        assert [event["type"] for event in store.replay("t")][-1] == "RUN_FINISHED"
        assert store.head("t") == "r" and [run.run_id for run in store.runs("t")] == ["r"]
        assert [thread.thread_id for thread in store.threads()] == ["t"]
        assert store.interrupts("t") == [] and store.waiting() == []
        assert store.request_stop("t") == 0
        claim = store.claim("t", "r2", "me", input=run_input("r2", "t"))
        assert claim.parent_run_id == "r" and store.release_claim("t", "r2", "me")
        attached = store.attach("t")
        assert attached.position.seq == 5 and attached.events()[-1].position == attached.position
        assert attached.events()[0].seq is None
        assert store.in_scope("alice").threads() == []
        assert store.erase("t", "because").events == 5
        with pytest.raises(errors.ThreadErased) as caught:
            store.append("t", "r", [started("r", "t")])
        assert caught.value.status == 410
    with psycopg.connect(address) as connection:
        Store(connection).append("t2", "r", [started("r", "t2"), finished("r", "t2")])
        connection.rollback()
        assert Store(connection).threads() == []


def test_naive_times_and_bad_values_are_refused(address):
    with Store(address) as store:
        for call in (
            lambda: store.messages("t", at_time=datetime(2026, 1, 1)),
            lambda: store.threads(since=datetime(2026, 1, 1)),
            lambda: store.messages("a\0b"),
            lambda: store.threads(cursor="rubbish"),
            lambda: Position.of("-1"),
            lambda: Position.of("1-x"),
            lambda: Position.of("1-" + "9" * 30),
        ):
            with pytest.raises(errors.InvalidArgument):
                call()
        wrong: list[Any] = ["[]", {"type": "A"}, [{"type": "A", "thread_id": "t"}], [7]]
        for events in wrong:
            with pytest.raises(errors.InvalidEvents) as caught:
                store.append("t", "r", events)
            assert caught.value.sqlstate == "UI008" and caught.value.hint


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_engines_of_sqlalchemy(address, driver):
    server = {name: str(value) for name, value in conninfo.conninfo_to_dict(address).items()}
    url = sqlalchemy.URL.create(
        f"postgresql+{driver}", server["user"], server.get("password"), server["host"],
        int(server["port"]), server["dbname"],
    )  # fmt: skip
    engine = create_async_engine(url, pool_size=2, max_overflow=0, pool_timeout=0.1)
    async with AsyncStore(engine) as store:
        tee = store.tee(run_input(), agent(*map(str, range(50)), pause=0.01))
        await tee.begin()
        await until(lambda: tee.recording.seq > 5)
        async with outage(address):
            pass
        assert [event.seq for event in await collect(tee)] == list(range(1, 55))
        assert await store.state("trip") == {}
        async with engine.connect() as one, engine.connect():
            with pytest.raises(Unavailable) as caught:
                await store.threads()
            assert caught.value.retryable
            raw = await one.get_raw_connection()
            assert raw.driver_connection and not getattr(raw.driver_connection, "autocommit", False)
        assert await store.in_scope("alice").threads() == []
    await engine.dispose()
    nowhere = create_async_engine(f"postgresql+{driver}://127.0.0.1:1/x")
    with pytest.raises(Unavailable, match=r"refused|Connect call failed"):
        await AsyncStore(nowhere).threads()


def test_engines_of_sqlalchemy_without_asyncio(address):
    query = {name: str(value) for name, value in conninfo.conninfo_to_dict(address).items()}
    url = sqlalchemy.URL.create("postgresql+psycopg", query=query)
    engine = sqlalchemy.create_engine(url)
    with Store(engine) as store:
        store.append("t", "r", [started("r", "t"), finished("r", "t")])
        assert store.in_scope("").status("t").status == "finished"
        assert store.in_scope("alice").threads() == []
    engine.dispose()
    with pytest.raises(TypeError, match=r"postgresql\+psycopg"):
        Store(sqlalchemy.create_engine("sqlite://"))


def test_a_position_is_its_text():
    time = datetime(2026, 11, 30, 1, 2, 3, 123457, tzinfo=timezone.utc)
    place = Position(17, time)
    assert str(place) == "17-1796000523123457" and Position.of(str(place)) == place
    assert Position.of("17") == Position.of(17) == Position(17) and Position.of("") == Position()


async def test_what_is_wrong_with_a_database_is_said_at_once(empty, address):
    began = asyncio.get_running_loop().time()
    with pytest.raises(Error) as caught:
        await AsyncStore(empty).open()
    assert "pgagui migrate up" in str(caught.value), caught.value
    nowhere = psycopg.conninfo.make_conninfo(address, port=1)
    with pytest.raises(Unavailable) as caught:
        await AsyncStore(nowhere).open()
    assert caught.value.retryable and "refused" in str(caught.value)
    with pytest.raises(Error), Store(nowhere):
        pass
    missing = psycopg.conninfo.make_conninfo(address, dbname="missing")
    with pytest.raises(Error, match="missing"):
        await AsyncStore(missing).open()
    with pytest.raises(Error, match="not open"):
        await AsyncStore(address).threads()
    with pytest.raises(TypeError, match="int is no address"):
        Store(7)
    assert asyncio.get_running_loop().time() - began < 5


async def test_a_reload_in_mid_answer_in_another_process(store, address, opened):
    tee = store.tee(run_input(), agent(*["word "] * 40, pause=0.02))
    await tee.begin()
    await until(lambda: tee.recording.seq > 10)
    async with opened(address) as other:
        seen = await collect(other.connect("trip"))
        seqs = [event.seq for event in seen if event.seq is not None]
        assert seqs == list(range(seqs[0], 45)) and seqs[0] > 10
        assert seen[0].type == "RUN_STARTED" and seen[-1].type == "RUN_FINISHED"
        text = "".join(event.data.get("delta", "") for event in seen)
        assert text == "word " * 40 or len(text) > 100
        rest = await collect(other.connect("trip", after=str(seen[-3].position)))
        assert rest == seen[-2:]
        assert await collect(other.connect("nothing")) == []
        with pytest.raises(errors.UnknownThread):
            await collect(other.follow("nothing"))


async def test_many_followers_share_a_poll(store):
    async with store.record(run_input()) as run:
        await run.send(started())
        await run.flush()
        followers = [asyncio.create_task(collect(store.follow("trip"))) for _ in range(200)]
        await until(lambda: len(store._live.poller._waiting) == 200)
        polls = [task for task in asyncio.all_tasks() if "Poller._run" in repr(task)]
        assert len(polls) == 1
        await run.send(*message("Three ", "days"))
    for seen in await asyncio.gather(*followers):
        assert [event.seq for event in seen] == [1, 2, 3, 4, 5, 6]
    await until(lambda: store._live.poller._task.done())


async def test_a_reload_before_the_first_event(store):
    async with store.record(run_input()) as run:
        readers = [
            asyncio.create_task(collect(events))
            for events in (store.connect("trip"), store.follow("trip", run_id="run-1"))
        ]
        polls = []
        poll = store._live.poller._poll

        async def counted(items):
            polls.append(items)
            return await poll(items)

        store._live.poller._poll = counted
        await until(lambda: len(polls) > 3)
        await run.send(started(), *message("Three"))
    for reader in readers:
        assert [event.seq for event in await reader] == [1, 2, 3, 4, 5]
    claimed = store.record(run_input("run-2", "other"))
    await claimed.begin()
    reader = asyncio.create_task(collect(store.connect("other")))
    await until(lambda: store._live.poller._waiting)
    async with claimed:
        pass
    assert [event.type for event in await reader] == ["RUN_STARTED", "RUN_FINISHED"]


async def test_followers_wait_while_the_database_is_away(address, caplog, opened):
    async with opened(address, check_every=0.2) as store:
        tee = store.tee(run_input(), agent(*["word "] * 100, pause=0.02))
        await tee.begin()
        await until(lambda: tee.recording.seq > 3)
        follower = asyncio.create_task(collect(store.follow("trip", run_id="run-1")))
        await until(lambda: store._live.poller._waiting)
        async with outage(address):
            await until(lambda: "poll" in caplog.text)  # it is retried
        assert [event.seq for event in await follower] == list(range(1, 105))


async def test_a_rewound_log_is_noticed(store):
    async for _ in store.tee(run_input(), agent("x")):
        pass
    [*_, last] = await store.events("trip")
    for wrong in (Position(99), Position(last.seq, last.recorded_at - timedelta(seconds=1))):
        with pytest.raises(errors.LogRewound):
            await collect(store.follow("trip", after=wrong))
        page = [event.type for event in await collect(store.connect("trip", after=wrong))]
        assert page[:2] == ["RUN_STARTED", "MESSAGES_SNAPSHOT"] and page[-1] == "RUN_FINISHED"


async def test_scopes_are_kept_apart(store):
    alice = store.in_scope("alice")
    async for _ in alice.tee(run_input(), agent("x")):
        pass
    assert [event.type for event in await collect(alice.follow("trip"))][-1] == "RUN_FINISHED"
    with pytest.raises(errors.UnknownThread):
        await store.messages("trip")


async def test_a_quiet_stream_has_comments(store):
    async with store.record(run_input()) as run:
        await run.send(started())
        await run.flush()
        comment, frames = b": ping\n\n", sse(store.follow("trip"), ping=0.05)
        while (frame := await anext(frames)) == comment:
            pass  # the first poll takes its time
        assert frame.startswith(b"id: 1-")
        assert await anext(frames) == comment
        await frames.aclose()


async def test_a_conversation_larger_than_a_frame_comes_in_parts(store):
    for thread, sizes in (("many", [4] * 5), ("large", [1, 11, 1])):
        said = [
            event
            for n, size in enumerate(sizes)
            for event in message("x" * (size << 20), id=f"m{n}")
        ]
        await store.append(
            thread, "run-1", [started(thread=thread), *said, finished(thread=thread)]
        )
    history = await collect(store.connect("many"))
    assert max(len(event.json) for event in history) < 10 << 20
    assert sum(event.json.count("x" * (4 << 20)) for event in history) == 5
    assert [event.seq for event in history if event.seq] == [17] == [history[-1].seq]
    assert history[-1].type == "RUN_FINISHED"

    history = await collect(store.connect("large"))
    assert sum(event.json.count("x" * (1 << 20)) for event in history) == 2
    assert history[-1].type == "RUN_ERROR" and history[-1].data["code"] == "MESSAGE_TOO_LARGE"


async def test_a_page_resumes_in_the_run_that_it_names(store):
    ends, positions = {}, {}
    for run, parent in (("root", ""), ("left", "root"), ("right", "root")):
        events = [started(run), *message(run, id=run), finished(run)]
        ends[run] = await store.append("trip", run, events, parent=parent)
        for event in await store.events("trip", run):
            positions[event.seq] = event.position

    async def resumed(seq, run):
        return await collect(store.connect("trip", after=positions[seq], run_id=run))

    rest = [event.seq for event in await resumed(ends["left"] - 2, "left")]
    assert rest == [ends["left"] - 1, ends["left"]]
    assert await resumed(ends["left"], "left") == []
    before, *rest = await resumed(ends["root"] - 1, "left")
    assert (before.seq, before.run_id) == (ends["root"], "root")
    assert [rest[0].type, rest[-1].type] == [
        "RUN_STARTED",
        "RUN_FINISHED",
    ] and "right" not in "".join(each.json for each in rest)
    for seen, run in (("right", "left"), ("left", "root")):
        assert [event.type for event in await resumed(ends[seen], run)][1] == "MESSAGES_SNAPSHOT"
