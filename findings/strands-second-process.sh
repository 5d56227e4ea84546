#!/usr/bin/env bash
# strands-agents 1.62.0 (PyPI), its session manager over files
#
# Behaviour: a session manager numbers the messages of an agent by itself, from what it read when the agent was made. If two processes
# continue a session, the second one writes its messages over those of the first, without an error.
#
# Why it matters: one would guess that a message that was stored stays, or that the second writer is refused. A user who sends from two
# tabs, to two processes, loses an answer that the page has shown. A store that does as the interface says loses it, too.
#
# Output:
#   stored by the first process: Rome?, seen
#   stored after the second: Oslo?, seen
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check strands-agents==1.62.0
cat > "$dir/run.py" <<'END'
import sys

from strands import Agent
from strands.models import Model
from strands.session import FileSessionManager


class Scripted(Model):
    def update_config(self, **config):
        pass

    def get_config(self):
        return {"model_id": "scripted"}

    def structured_output(self, *args, **kwargs):
        raise NotImplementedError

    async def stream(self, *args, **kwargs):
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": "seen"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def process():
    manager = FileSessionManager("trip", storage_dir=sys.argv[1])
    return Agent(agent_id="a", model=Scripted(), callback_handler=None, session_manager=manager)


def stored():
    manager = FileSessionManager("trip", storage_dir=sys.argv[1])
    return [kept.message["content"][0]["text"] for kept in manager.list_messages("trip", "a")]


first, second = process(), process()
first("Rome?")
print("stored by the first process:", ", ".join(stored()))
second("Oslo?")
print("stored after the second:", ", ".join(stored()))
assert stored() == ["Oslo?", "seen"]
END
"$dir/venv/bin/python" -W ignore "$dir/run.py" "$dir/sessions"
