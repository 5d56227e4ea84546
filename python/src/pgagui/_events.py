"""The text of an event or an input, made of a str, bytes, a dict or a model of ag_ui."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from ._members import CAMEL
from .errors import InvalidEvents

# Members of inputs and messages, which are in no event.
_CAMEL = CAMEL | {"forwarded_props": "forwardedProps", "tool_calls": "toolCalls"}

ENDS = ("RUN_FINISHED", "RUN_ERROR")

# json.dumps would make an encoder for each event.
_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def encode_event(event: Any) -> tuple[str, str]:
    """Returns the text and the type of an event."""
    text, value = _encode(event, "the event")
    kind = value.get("type")
    if not isinstance(kind, str) or not kind:
        raise InvalidEvents(
            f"the event {_short(text)} has no type",
            hint='It must be a JSON object with a string member "type", for example RUN_STARTED.',
        )
    return text, kind


def encode_events(events: Any) -> str:
    """Returns the text of a JSON array of events."""
    if isinstance(events, (str, bytes)) or _is_object(events) or not _is_list(events):
        raise InvalidEvents(
            f"the events are a {type(events).__name__}", hint="Give a list, of one event or more."
        )
    return "[" + ",".join(encode_event(event)[0] for event in events) + "]"


def encode_input(run_input: Any) -> tuple[str, dict[str, Any]]:
    """Returns the text of a RunAgentInput, and its members."""
    text, members = _encode(run_input, "the input")
    return text, dict(members)


def is_answer(members: Mapping[str, Any]) -> bool:
    """Whether an input answers a question: resume, or forwardedProps.command.resume."""
    command = member(member(members, "forwardedProps"), "command")
    return member(command, "resume") is not None or bool(members.get("resume"))


def member(value: Any, name: str) -> Any:
    """Returns a member of what may be an object. None: it has none."""
    return value.get(name) if _is_object(value) else None


def json_text(value: Any) -> str:
    """Returns the JSON of what a framework keeps, with escapes for what UTF-8 does not have."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace").decode()


def _encode(value: Any, what: str) -> tuple[str, Mapping[str, Any]]:
    try:
        if isinstance(value, (bytes, bytearray)):
            value = bytes(value).decode()
        if isinstance(value, str):
            value.encode()
            text, members = value, json.loads(value, parse_constant=_refuse, parse_int=float)
        else:
            if hasattr(value, "model_dump"):
                value = _dump(value)
            elif _is_object(value):
                _refuse_snake_case(value, what)
            text = _to_json(value)
            text.encode()
            members = value
    except (ValueError, TypeError, RecursionError) as error:  # UnicodeError is a ValueError
        raise InvalidEvents(
            f"{what} is no JSON in UTF-8: {error}",
            hint="Give JSON as str or bytes, a dict of values that JSON has, or a model of ag_ui.",
        ) from error
    if not _is_object(members):
        raise InvalidEvents(
            f"{what} is a {type(members).__name__}: {_short(text)}", hint="Give a JSON object."
        )
    return text, members


def _refuse(constant: str) -> Any:
    raise ValueError(f"JSON has no {constant}")


def _dump(model: Any) -> Any:
    """Returns a model with the names of AG-UI.

    Not with exclude_none, as the encoder of ag_ui does: that takes null out of JSON Patches and of
    CUSTOM events, too. Only optional fields that are not set are left out.
    """
    return _without_unset(model, model.model_dump(mode="json", by_alias=True))


def _without_unset(model: Any, dumped: Any) -> Any:
    fields = getattr(model.__class__, "model_fields", None)
    if not isinstance(dumped, str) and _is_list(dumped) and _is_list(model):
        return [_without_unset(*pair) for pair in zip(model, dumped, strict=True)]
    if fields is None or not _is_object(dumped):
        return dumped
    result = dict(dumped)
    for name, field in fields.items():
        key, value = field.serialization_alias or field.alias or name, getattr(model, name)
        if value is None and not field.is_required():
            result.pop(key, None)
        elif key in result:
            result[key] = _without_unset(value, result[key])
    return result


def _refuse_snake_case(value: Mapping[str, Any], what: str) -> None:
    for name in value:
        if name in _CAMEL:
            raise InvalidEvents(
                f'{what} has the member "{name}"',
                hint=f'AG-UI calls it "{_CAMEL[name]}": use that name,'
                " or model_dump(by_alias=True), or give the model itself.",
            )
    for message in value.get("messages") or ():
        if _is_object(message):
            _refuse_snake_case(message, "a message")


def _is_object(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, (dict, Mapping))  # a dict is told at once


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence)


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:100] + "…"
