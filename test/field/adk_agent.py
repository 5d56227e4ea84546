"""Google ADK with a scripted model, behind its AG-UI adapter. It asks by a tool that runs long: a call without a result."""

from ag_ui_adk import ADKAgent, AGUIToolset, add_adk_fastapi_endpoint
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools import LongRunningFunctionTool
from google.genai import types

from script import app, reply, serve


def turns(contents):
    for content in contents:
        for part in content.parts or []:
            if part.function_response:
                yield "tool", str(part.function_response.response.get("result", part.function_response.response))
            elif part.text:
                yield "user" if content.role == "user" else "assistant", part.text


class Scripted(BaseLlm):
    async def generate_content_async(self, request, stream=False):
        text, calls = "", []
        async for part in reply(list(turns(request.contents))):
            if isinstance(part, str):
                text += part
                yield LlmResponse(content=types.ModelContent(part), partial=True)
            else:
                id, name, _ = part
                calls.append(types.Part(function_call=types.FunctionCall(id=id, name=name, args={"at": "it"})))
        yield LlmResponse(content=types.ModelContent([types.Part(text=text)] if text else calls), partial=False)


def look(at: str) -> str:
    """Looks."""
    return f"seen {at}"


def erase(at: str) -> None:
    """Erases, if the user agrees."""


def shatter(at: str) -> str:
    """Fails."""
    raise RuntimeError(f"no tool for {at}")


agent = LlmAgent(name="scripted", model=Scripted(model="scripted"), instruction="Say what the script says.",
                 tools=[look, LongRunningFunctionTool(erase), shatter, AGUIToolset()])
add_adk_fastapi_endpoint(app, ADKAgent(adk_agent=agent, app_name="field", user_id="user", emit_messages_snapshot=True))
serve()
