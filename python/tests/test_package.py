import subprocess
import sys
import venv

from .conftest import ROOT

PYTHON = ROOT / "python"


def test_generated_files_are_up_to_date():
    sys.path.insert(0, str(PYTHON))
    import generate

    for name, path in generate.TWINS.items():
        assert generate.twin(name) == (generate.SOURCE / path).read_text(), (
            "run: python generate.py"
        )


def test_the_import_brings_no_framework_and_no_driver():
    """A driver comes with the first store that uses it: psycopg doubles the time of the import."""
    code = "import sys, pgagui; print(*sys.modules)"
    python = [sys.executable, "-c", code]
    out = subprocess.run(python, check=True, cwd=PYTHON / "src", capture_output=True, text=True)
    names = {name.partition(".")[0] for name in out.stdout.split()}
    assert "pgagui" in names
    others = {"pydantic", "ag_ui", "fastapi", "starlette", "sqlalchemy", "asyncpg", "psycopg"}
    assert not names & others, names & others


PROGRAM = """
import sys, pgagui
from pgagui import Store
assert "site-packages" in pgagui.__file__
with Store(sys.argv[1]) as store:
    ids = {"threadId": "t", "runId": "r"}
    events = [{"type": "RUN_STARTED", **ids}, {"type": "RUN_FINISHED", **ids}]
    print(store.append("t", "r", events), store.status("t").status)
"""


def test_what_is_built_works_in_an_empty_environment(address, tmp_path):
    def run(*command):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    # The wheel is built of the sdist, so both are whole.
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, PYTHON)
    [wheel] = tmp_path.glob("*.whl")
    venv.create(tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    pins = ["--quiet", "--disable-pip-version-check", "--constraint", PYTHON / "requirements.txt"]
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", *pins, f"{wheel}[binary]")
    assert run(python, "-c", PROGRAM, address) == "2 finished\n"
    assert list((tmp_path / "venv").glob("lib/*/site-packages/pgagui-*/licenses/LICENSE"))
    status = run(python, "-m", "pgagui", "migrate", "status", "--database-url", address)
    assert "up to date" in status
    (tmp_path / "wrong.py").write_text("from pgagui import Store\n\nn: int = Store('').threads()\n")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", python, "--cache-dir",
         PYTHON / ".mypy_cache", "wrong.py"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert 'has type "list[Thread]"' in checked.stdout, checked.stdout


def test_the_license_is_that_of_the_repository():
    assert (PYTHON / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
