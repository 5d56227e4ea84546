"""Pydantic AI with a scripted model, behind its AG-UI adapter. It asks by an interrupt in RUN_FINISHED."""

from pydantic_ai import Agent
from pydantic_ai.messages import TextPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.requests import Request

from script import app, reply, serve


def turns(messages):
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                yield "tool", str(part.content)
            elif isinstance(part, UserPromptPart):
                yield "user", part.content if isinstance(part.content, str) else str(part.content[0])
            elif isinstance(part, TextPart):
                yield "assistant", part.content


async def stream(messages, info):
    index = 0
    async for part in reply(list(turns(messages))):
        if isinstance(part, str):
            yield part
            continue
        id, name, arguments = part
        yield {index: DeltaToolCall(name=name, json_args=arguments[:4], tool_call_id=id)}
        yield {index: DeltaToolCall(json_args=arguments[4:])}
        index += 1


agent = Agent(FunctionModel(stream_function=stream), output_type=[str, DeferredToolRequests])


@agent.tool_plain
def look(at: str) -> str:
    """Looks."""
    return f"seen {at}"


@agent.tool_plain(requires_approval=True)
def erase(at: str) -> str:
    """Erases, if the user agrees."""
    return f"erased {at}"


@agent.tool_plain
def shatter(at: str) -> str:
    """Fails."""
    raise RuntimeError(f"no tool for {at}")


@app.post("/")
async def run(request: Request):
    return await AGUIAdapter.dispatch_request(request, agent=agent)


serve()
