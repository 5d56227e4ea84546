"""What is of asyncpg alone. test_store and test_recorder run over both drivers."""

import json

import asyncpg
import pytest

from pgagui import AsyncStore, Closed, Error, NeedsPool, Store, Unavailable, errors

from .conftest import collect, finished, pool_of_asyncpg, run_input, started
from .test_recorder import agent, contents


async def codecs(connection):
    for kind in ("json", "jsonb"):
        await connection.set_type_codec(
            kind, schema="pg_catalog", encoder=json.dumps, decoder=json.loads
        )


async def test_codecs_of_the_caller_do_not_matter(address):
    begin = started() | {"name": "ü"}
    snapshot = {"type": "STATE_SNAPSHOT", "snapshot": "a text"}
    async with pool_of_asyncpg(address, init=codecs) as pool, AsyncStore(pool) as store:
        await store.append("trip", "run-1", [begin, snapshot], after_seq=0, input=run_input())
        assert await store.state("trip") == "a text"
        assert await contents(store) == ["Lisbon?"]
        [event, _] = await store.events("trip")
        assert event.data == begin and '"ü"' in event.json
        [thread] = await store.threads(metadata="{}")
        assert thread.metadata == {}
        assert (await store.attach("trip")).events()[-1].seq == 2


async def test_a_connection_is_the_transaction_of_the_caller(address):
    async with pool_of_asyncpg(address) as pool:
        async with pool.acquire() as connection:
            store = AsyncStore(connection)
            with pytest.raises(NeedsPool):
                store.record(run_input())
            transaction = connection.transaction()
            await transaction.start()
            for scope in ("", "alice"):
                await store.in_scope(scope).append("trip", "run-1", [started(), finished()])
            await transaction.rollback()
            for scope in ("", "alice"):
                with pytest.raises(errors.UnknownThread):
                    await store.in_scope(scope).messages("trip")
            await store.in_scope("alice").append("trip", "run-1", [started(), finished()])
        with pytest.raises(Closed, match="released"):
            await store.messages("trip")
        assert len(await AsyncStore(pool).in_scope("alice").threads()) == 1
    with pytest.raises(Closed):
        await AsyncStore(pool).messages("trip")


async def test_errors_have_the_same_classes(address):
    async with pool_of_asyncpg(address) as pool:
        store = AsyncStore(pool)
        for call in (
            lambda: store.messages("t", at_seq=2**70),  # refused by asyncpg
            lambda: store.messages("t\udcff"),
            lambda: store.threads(cursor="rubbish"),  # refused by the database
        ):
            with pytest.raises(errors.InvalidArgument) as caught:
                await call()
            assert not caught.value.retryable
        with pytest.raises(errors.UnknownThread) as unknown:
            await store.messages("trip")
        assert unknown.value.sqlstate == "UI001" and unknown.value.status == 404
    with pytest.raises(Error, match="not initialized"):
        await AsyncStore(pool_of_asyncpg(address)).threads()
    nowhere = asyncpg.create_pool(host="127.0.0.1", port=1, min_size=0)
    async with nowhere:
        with pytest.raises(Unavailable):
            await AsyncStore(nowhere).threads()
    async with pool_of_asyncpg(address) as pool, pool.acquire() as connection:
        with pytest.raises(TypeError, match="Connection"):
            Store(connection)  # it has no asyncio


async def test_a_pooler_that_loses_prepared_statements(pooled):
    """PgBouncer before 1.21, and a pool that prepares statements."""
    async with pool_of_asyncpg(pooled, statement_cache_size=100) as pool, AsyncStore(pool) as store:
        try:
            for i in range(20):
                await collect(store.tee(run_input(thread=f"t{i}"), agent("x", thread=f"t{i}")))
        except errors.PreparedStatement as error:
            assert "statement_cache_size=0" in str(error) and not error.retryable
        else:
            pytest.skip("this PgBouncer keeps prepared statements")
