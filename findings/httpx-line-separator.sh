#!/usr/bin/env bash
# httpx 0.28.1 (PyPI), with httpx-sse 0.4.3 and ag-ui-protocol 1.0.0
#
# Behaviour: Response.iter_lines ends a line at U+2028, U+2029 and U+0085. The encoder of ag-ui-protocol writes these characters of a
# text as they are, as JSON allows, and server-sent events end a line only at CR and LF. So who reads a stream with iter_lines gets
# half an event. httpx-sse on the same response gets the whole one.
#
# Why it matters: a model that quotes text of a web page or a PDF sends U+2028 now and then. A proxy, a recorder or a test that reads
# the stream of an agent with the client's own function for lines fails at that event alone, far from the cause.
#
# Output:
#   U+2028: iter_lines: 2 lines, the first is JSON: False; httpx-sse: 1 event, its text is complete: True
#   U+2029: iter_lines: 2 lines, the first is JSON: False; httpx-sse: 1 event, its text is complete: True
#   U+0085: iter_lines: 2 lines, the first is JSON: False; httpx-sse: 1 event, its text is complete: True
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check httpx==0.28.1 httpx-sse==0.4.3 ag-ui-protocol==1.0.0
cat > "$dir/run.py" <<'END'
import json

import httpx
from ag_ui.core import TextMessageContentEvent
from ag_ui.encoder import EventEncoder
from httpx_sse import connect_sse


def is_json(line):
    try:
        json.loads(line.removeprefix("data: "))
    except ValueError:
        return False
    return True


for character in "\u2028\u2029\u0085":
    text = f"one line{character}another"
    frame = EventEncoder().encode(TextMessageContentEvent(message_id="m", delta=text)).encode()
    answer = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=frame)
    with httpx.Client(transport=httpx.MockTransport(lambda _: answer)) as client:
        with client.stream("GET", "http://agent/") as response:
            lines = [line for line in response.iter_lines() if line]
        with connect_sse(client, "GET", "http://agent/") as source:
            events = [json.loads(event.data) for event in source.iter_sse()]
    is_complete = [event["delta"] for event in events] == [text]
    print(f"U+{ord(character):04X}: iter_lines: {len(lines)} lines, the first is JSON: {is_json(lines[0])};",
          f"httpx-sse: {len(events)} event, its text is complete: {is_complete}")
    assert len(lines) == 2 and not is_json(lines[0])
    assert is_complete
END
"$dir/venv/bin/python" "$dir/run.py"
