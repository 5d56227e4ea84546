"""Strands with a scripted model, behind its AG-UI adapter. It asks by an interrupt in RUN_FINISHED."""

import json

from ag_ui_strands import StrandsAgent, add_strands_fastapi_endpoint
from strands import Agent, ToolContext, tool
from strands.models import Model

from script import app, reply, serve


def turns(messages):
    for message in messages:
        for content in message["content"]:
            if "toolResult" in content:
                yield "tool", "".join(part.get("text", "") for part in content["toolResult"]["content"])
            elif "text" in content:
                yield message["role"], content["text"]


class Scripted(Model):
    def update_config(self, **config):
        pass

    def get_config(self):
        return {"model_id": "scripted"}

    def structured_output(self, *args, **kwargs):
        raise NotImplementedError

    async def stream(self, messages, *args, **kwargs):
        yield {"messageStart": {"role": "assistant"}}
        is_text, why = False, "end_turn"
        async for part in reply(list(turns(messages))):
            if isinstance(part, str):
                if not is_text:
                    yield {"contentBlockStart": {"start": {}}}
                is_text = True
                yield {"contentBlockDelta": {"delta": {"text": part}}}
                continue
            id, name, arguments = part
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": id, "name": name}}}}
            for piece in arguments[:4], arguments[4:]:
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": piece}}}}
            yield {"contentBlockStop": {}}
            why = "tool_use"
        if is_text:
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": why}}
        yield {"metadata": {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}}


@tool
def look(at: str) -> str:
    """Looks."""
    return f"seen {at}"


@tool(context=True)
def erase(at: str, tool_context: ToolContext) -> str:
    """Erases, if the user agrees."""
    answer = tool_context.interrupt("erase", reason=f"Erase {at}?")
    return f"the answer is {json.dumps(answer)}"


@tool
def shatter(at: str) -> str:
    """Fails."""
    raise RuntimeError(f"no tool for {at}")


agent = Agent(model=Scripted(), tools=[look, erase, shatter], callback_handler=None)
add_strands_fastapi_endpoint(app, StrandsAgent(agent, name="scripted"), "/")
serve()
