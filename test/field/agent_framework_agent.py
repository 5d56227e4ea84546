"""Microsoft Agent Framework with a scripted model, behind its AG-UI adapter. It asks by an interrupt in RUN_FINISHED."""

from agent_framework import Agent, BaseChatClient, ChatResponse, ChatResponseUpdate, Content, FunctionInvocationLayer, ResponseStream, tool
from agent_framework_ag_ui import add_agent_framework_fastapi_endpoint

from script import app, reply, serve


def turns(messages):
    for message in messages:
        for content in message.contents:
            if content.type == "function_result":
                yield "tool", str(content.result)
            elif content.type == "text":
                yield str(message.role), content.text


class Scripted(FunctionInvocationLayer, BaseChatClient):
    def _inner_get_response(self, *, messages, stream, options, **kwargs):
        return ResponseStream(self.updates(list(turns(messages))), finalizer=ChatResponse.from_updates)

    async def updates(self, history):
        async for part in reply(history):
            if isinstance(part, str):
                content = Content.from_text(part)
            else:
                id, name, arguments = part
                content = Content.from_function_call(id, name, arguments=arguments)
            yield ChatResponseUpdate(role="assistant", contents=[content])


@tool
def look(at: str) -> str:
    """Looks."""
    return f"seen {at}"


@tool(approval_mode="always_require")
def erase(at: str) -> str:
    """Erases, if the user agrees."""
    return f"erased {at}"


@tool
def shatter(at: str) -> str:
    """Fails."""
    raise RuntimeError(f"no tool for {at}")


agent = Agent(name="scripted", client=Scripted(), instructions="Say what the script says.", tools=[look, erase, shatter])
add_agent_framework_fastapi_endpoint(app, agent, single_user=True)
serve()
