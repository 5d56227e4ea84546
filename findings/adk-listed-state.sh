#!/usr/bin/env bash
# google-adk 2.13.0 (PyPI), its sessions in memory and in a database (SQLite)
#
# Behaviour: the documentation of ListSessionsResponse says that events and states of its sessions are not set. Both services set the
# state, merged with the state of user and app. Only the events are left out.
#
# Why it matters: a service that is written to that text returns empty states, and a program that takes the titles of a list from them
# shows none. A back end that passes the list on to a browser sends every state with it.
#
# Output:
#   documented: The events and states are not set within each Session object.
#   InMemorySessionService: state {'app:model': 'm', 'title': 'Weather', 'user:name': 'Ada'}, 0 events
#   DatabaseSessionService: state {'app:model': 'm', 'title': 'Weather', 'user:name': 'Ada'}, 0 events
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check 'google-adk[db]==2.13.0' aiosqlite==0.22.1
cat > "$dir/run.py" <<'END'
import asyncio
import sys

from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.adk.sessions.base_session_service import ListSessionsResponse
from google.genai.types import Content, Part

STATE = {"title": "Weather", "user:name": "Ada", "app:model": "m"}


async def main():
    documented = ListSessionsResponse.__doc__.strip().splitlines()[-1].strip()
    print("documented:", documented)
    assert "states are not set" in documented
    for service in InMemorySessionService(), DatabaseSessionService(f"sqlite+aiosqlite:///{sys.argv[1]}"):
        session = await service.create_session(app_name="a", user_id="u", session_id="s", state=STATE)
        await service.append_event(session, Event(author="user", content=Content(parts=[Part(text="Rain?")])))
        (listed,) = (await service.list_sessions(app_name="a", user_id="u")).sessions
        print(f"{type(service).__name__}: state {dict(sorted(listed.state.items()))}, {len(listed.events)} events")
        assert listed.state == STATE and not listed.events


asyncio.run(main())
END
"$dir/venv/bin/python" -W ignore "$dir/run.py" "$dir/sessions.db"
