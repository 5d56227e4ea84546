#!/usr/bin/env bash
# langgraph-checkpoint 4.3.2 and langgraph-checkpoint-postgres 3.2.0 (PyPI)
#
# Behaviour: BaseCheckpointSaver declares copy_thread, delete_for_runs and prune, each with an asynchronous twin. Its methods raise
# NotImplementedError without a text. No saver that LangGraph ships has copy_thread or delete_for_runs. The saver in memory lacks prune,
# which the one for PostgreSQL has.
#
# Why it matters: these are what a product needs to fork a conversation, to take a run back, and to bound what is stored. A test on the
# saver in memory says nothing about them, a type checker accepts the calls, and the error names neither the method nor the saver.
#
# Output:
#   copy_thread: InMemorySaver False, PostgresSaver False, AsyncPostgresSaver False
#   delete_for_runs: InMemorySaver False, PostgresSaver False, AsyncPostgresSaver False
#   prune: InMemorySaver False, PostgresSaver True, AsyncPostgresSaver True
#   InMemorySaver().copy_thread("a", "b"): NotImplementedError()
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check \
    langgraph-checkpoint==4.3.2 langgraph-checkpoint-postgres==3.2.0 'psycopg[binary]==3.3.9'
cat > "$dir/run.py" <<'END'
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

savers = InMemorySaver, PostgresSaver, AsyncPostgresSaver
expected = {"copy_thread": [False] * 3, "delete_for_runs": [False] * 3, "prune": [False, True, True]}
for method, has in expected.items():
    own = [getattr(saver, method) is not getattr(BaseCheckpointSaver, method) for saver in savers]
    print(f"{method}:", ", ".join(f"{saver.__name__} {is_own}" for saver, is_own in zip(savers, own)))
    assert own == has
try:
    InMemorySaver().copy_thread("a", "b")
except NotImplementedError as error:
    print('InMemorySaver().copy_thread("a", "b"):', repr(error))
    assert str(error) == ""
else:
    raise SystemExit("copy_thread works")
END
"$dir/venv/bin/python" "$dir/run.py"
