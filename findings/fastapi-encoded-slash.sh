#!/usr/bin/env bash
# fastapi 0.165.0 with starlette 1.10.0 and httpx 0.28.1 (PyPI)
#
# Behaviour: an encoded slash (%2F) of a path is decoded before the route is chosen. So an id with a slash matches no route, although the
# client encoded it. With the converter "path" it matches, but then /threads/a%2Fb and /threads/a/b are one. Only raw_path of the scope,
# which is not decoded, tells them apart.
#
# Why it matters: net/http of Go, and RFC 3986, keep the two apart. A front end that calls encodeURIComponent(threadId) works with one
# back end and gets 404 from the other, for the threads alone whose id holds a slash (a URL, a path, "user/1").
#
# Output:
#   /threads/a%2Fb: 404 Not Found
#   /converted/a%2Fb: 200 a/b, raw path /converted/a%2Fb
#   /converted/a/b: 200 a/b, raw path /converted/a/b
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check starlette==1.10.0 fastapi==0.165.0 httpx==0.28.1
cat > "$dir/run.py" <<'END'
import asyncio

import httpx
from fastapi import FastAPI, Request

app = FastAPI()


@app.get("/threads/{thread_id}")
def read(thread_id: str):
    return thread_id


@app.get("/converted/{thread_id:path}")
def read_converted(thread_id: str, request: Request):
    return f"{thread_id}, raw path {request.scope['raw_path'].decode()}"


async def main():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as client:
        answers = {path: await client.get(path) for path in ("/threads/a%2Fb", "/converted/a%2Fb", "/converted/a/b")}
    for path, answer in answers.items():
        body = answer.json()
        print(f"{path}: {answer.status_code} {body if isinstance(body, str) else body['detail']}")
    assert [answer.status_code for answer in answers.values()] == [404, 200, 200]
    assert answers["/converted/a%2Fb"].json() == "a/b, raw path /converted/a%2Fb"
    assert answers["/converted/a/b"].json() == "a/b, raw path /converted/a/b"


asyncio.run(main())
END
"$dir/venv/bin/python" "$dir/run.py"
