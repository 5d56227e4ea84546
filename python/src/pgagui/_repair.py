"""Results for the calls of tools that have none."""

from __future__ import annotations

from typing import Any

from ._events import encode_input, is_answer


def repair_tool_calls(run_input: Any) -> list[dict[str, Any]]:
    """Returns the messages of a RunAgentInput, in which each call of a tool has a result.

    Most providers of models refuse a conversation with a call that has none: its run was stopped,
    or the user wrote a message instead of approving. Such a call gets the result "interrupted". If
    the input answers a question (resume, or forwardedProps.command.resume), the calls of the last
    message are left to the agent. Record the input as it came, and give the agent these messages.
    """
    _, members = encode_input(run_input)
    messages: list[dict[str, Any]] = members.get("messages") or []
    calls = [[call["id"] for call in message.get("toolCalls") or ()] for message in messages]
    have = {message.get("toolCallId") for message in messages}
    last = max((i for i, ids in enumerate(calls) if ids), default=-1) if is_answer(members) else -1
    repaired: list[dict[str, Any]] = []
    lacking: list[dict[str, Any]] = []
    for i, message in enumerate(messages):
        if message.get("role") != "tool":
            repaired += lacking
            lacking = []
        repaired.append(message)
        if i == last:
            continue
        for call in calls[i]:
            if call not in have:
                have.add(call)
                result = {"id": f"{call}-interrupted", "role": "tool", "toolCallId": call}
                lacking.append(result | {"content": "interrupted"})
    return repaired + lacking
