#!/usr/bin/env bash
# pydantic 2.14.4 (PyPI), beside Python's json
#
# Behaviour: half of a character outside the basic plane, which JavaScript cuts strings into and JSON writes as \ud83d, passes json.loads
# and a field of type str in Python mode. validate_json refuses the same text, and dump_json refuses the model.
#
# Why it matters: one would guess that a model takes the same JSON by model_validate(json.loads(text)) and by model_validate_json(text).
# A front end that cuts text at a number of units makes such strings. A program that parses requests in the one way and writes the models
# again, or reads them in the other way, fails at the second step, behind the place where the request was accepted.
#
# Output:
#   model_validate(json.loads(text)): '\ud83d'
#   model_validate_json(text): ValidationError
#   model_dump_json(): PydanticSerializationError
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check pydantic==2.14.4
cat > "$dir/run.py" <<'END'
import json

from pydantic import BaseModel


class Message(BaseModel):
    content: str


def error(call):
    try:
        return repr(call())
    except ValueError as failure:
        return type(failure).__name__


text = r'{"content": "\ud83d"}'
message = Message.model_validate(json.loads(text))
seen = [
    ("model_validate(json.loads(text))", ascii(message.content)),
    ("model_validate_json(text)", error(lambda: Message.model_validate_json(text))),
    ("model_dump_json()", error(message.model_dump_json)),
]
for name, result in seen:
    print(f"{name}: {result}")
assert [result for _, result in seen] == [r"'\ud83d'", "ValidationError", "PydanticSerializationError"]
END
"$dir/venv/bin/python" "$dir/run.py"
