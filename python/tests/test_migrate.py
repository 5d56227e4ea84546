import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

from pgagui import AsyncStore, Error, Store, WrongSchema, migrate
from pgagui._psycopg import SCHEMA

from .conftest import PROGRAM, ROOT, execute, finished, started


def run(*command, address, code=0):
    done = subprocess.run(
        command, env=os.environ | {"DATABASE_URL": address}, capture_output=True, text=True,
        cwd=ROOT / "python" / "src",
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def python(*arguments, address, code=0):
    return run(sys.executable, "-m", "pgagui", *arguments, address=address, code=code)


def test_the_schema_is_that_of_the_program(empty, template, server):
    assert "no schema agui" in python("migrate", "status", address=empty)
    assert f"installed the schema agui, version {SCHEMA}" in python("migrate", "up", address=empty)
    assert python("migrate", "status", address=empty) == f"version {SCHEMA}, up to date\n"
    assert f"version {SCHEMA}, up to date" in run(PROGRAM, "migrate", "status", address=empty)
    assert "already" in run(PROGRAM, "migrate", "up", address=empty)
    assert "already" in python("migrate", "up", address=empty)
    of_go = conninfo.make_conninfo(server, dbname=template)
    assert python("migrate", "status", address=of_go) == f"version {SCHEMA}, up to date\n"
    for address in (empty, of_go):
        with psycopg.connect(address) as connection:
            version = connection.execute("select version, dirty from agui.schema_migrations")
            assert version.fetchall() == [(SCHEMA, False)]
    with Store(empty) as store:
        assert store.append("t", "r", [started("r", "t"), finished("r", "t")]) == 2


def test_an_upgrade_keeps_what_is_stored(empty):
    steps = json.loads(Path(migrate.__file__).with_name("migrations.json").read_text())[
        "migrations"
    ]
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("create schema agui")
        for step in steps[:2]:
            migrate._step(connection, step["up"], step["version"])
        connection.execute(
            "select agui.append('t', 'r', %s)",
            [json.dumps([started("r", "t"), finished("r", "t")])],
        )
    with pytest.raises(WrongSchema, match="version 2") as caught:
        Store(empty).open()
    assert "migrate up" in caught.value.hint
    assert migrate.status(empty).can_upgrade
    before = migrate.up(empty)
    assert (before.version, before.latest) == (2, SCHEMA)
    assert "up to date" in run(PROGRAM, "migrate", "status", address=empty)
    with Store(empty) as store:
        assert store.status("t").status == "finished"


def test_processes_that_install_at_once(empty):
    with ThreadPoolExecutor(4) as pool:
        commands = [(sys.executable, "-m", "pgagui"), (PROGRAM,)] * 2
        said = list(pool.map(lambda c: run(*c, "migrate", "up", address=empty), commands))
    # The program reads what it says before it has the lock, so two may say that they installed.
    assert all("installed the schema" in text or "already" in text for text in said), said
    assert python("migrate", "status", address=empty) == f"version {SCHEMA}, up to date\n"
    with psycopg.connect(empty) as connection:
        rows = connection.execute("select version, dirty from agui.schema_migrations").fetchall()
        assert rows == [(SCHEMA, False)]


async def test_what_it_cannot_work_with_is_refused(address, empty, pooled):
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("create function agui.mine() returns int language sql return 1")
        assert migrate.status(address).problem is None  # what others add is theirs
        connection.execute("drop function agui.head(text, text) cascade")
        assert "changed by hand: " in python("migrate", "status", address=address, code=5)
        assert "changed by hand: " in python("migrate", "up", address=address, code=1)
        newer = SCHEMA + 1
        connection.execute(
            "create or replace function agui_internal.installed(out version int,"
            " out fingerprint text, out objects text[], out serves int)"
            f" language sql immutable as $$ select {newer}, 'x', '{{}}'::text[], {newer} $$"
        )
    assert "newer pgagui" in python("migrate", "up", address=address, code=1)
    assert f"version {newer}" in python("migrate", "status", address=address, code=5)
    with pytest.raises(WrongSchema, match="newer"):
        await AsyncStore(address).open()
    assert "pooler in transaction mode" in python("migrate", "up", address=pooled, code=1)
    said = python("migrate", "up", address="postgresql://127.0.0.1:1/x", code=1)
    assert "refused" in said and said.count("\n") == 1
    execute(empty, "create schema agui; create table agui.batch ()")
    assert "another build" in python("migrate", "up", address=empty, code=1)


def test_a_migration_that_fails_changes_nothing(empty):
    execute(empty, "create schema agui; create table agui.thread ()")
    with pytest.raises(Error, match=r"migration install: .*thread") as caught:
        migrate.up(empty)
    assert caught.value.sqlstate == "42P07"
    assert migrate.status(empty).version == 0
    with psycopg.connect(empty) as connection:
        found = connection.execute("select to_regnamespace('agui_internal')").fetchone()
        assert found == (None,)
