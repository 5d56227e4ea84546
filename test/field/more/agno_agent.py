"""Agno with a scripted model, behind its AG-UI interface. It asks by a tool that the page executes: a call without a result."""

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.os.interfaces.agui import AGUI
from agno.tools import tool

from script import app, reply, serve


class Scripted(Model):
    async def ainvoke_stream(self, messages, **kwargs):
        history = [(message.role, str(message.content or "")) for message in messages]
        async for part in reply(history):
            if isinstance(part, str):
                yield ModelResponse(role="assistant", content=part)
            else:
                id, name, arguments = part
                call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
                yield ModelResponse(role="assistant", tool_calls=[call])

    def invoke(self, *args, **kwargs):
        raise NotImplementedError

    ainvoke = invoke_stream = _parse_provider_response = invoke

    def _parse_provider_response_delta(self, response):
        return response


@tool
def look(at: str) -> str:
    """Looks."""
    return f"seen {at}"


@tool(external_execution=True)
def erase(at: str) -> str:
    """Erases, if the user agrees."""


@tool
def shatter(at: str) -> str:
    """Fails."""
    raise RuntimeError(f"no tool for {at}")


agent = Agent(name="scripted", model=Scripted(id="scripted"), tools=[look, erase, shatter], db=InMemoryDb(),
              add_history_to_context=True, telemetry=False)
app.add_api_route("/", AGUI(agent=agent).get_router().routes[0].endpoint, methods=["POST"])
serve()
