"""LlamaIndex with a scripted model, behind its AG-UI router. It asks by a tool of the page: a call without a result."""

import json

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.protocols.ag_ui.router import AGUIWorkflowRouter, get_default_workflow_factory

from script import app, reply, serve


def turns(messages):
    for message in messages:
        is_result = message.role.value == "tool" or "tool_call_id" in message.additional_kwargs
        yield "tool" if is_result else message.role.value, message.blocks[0].text if message.blocks else ""


class Scripted(CustomLLM, FunctionCallingLLM):
    @property
    def metadata(self):
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True, model_name="scripted")

    def complete(self, *args, **kwargs):
        raise NotImplementedError

    stream_complete = _prepare_chat_with_tools = complete

    async def astream_chat_with_tools(self, tools, chat_history=None, **kwargs):
        async def responses():
            text, calls = "", []
            async for part in reply(list(turns(chat_history))):
                if isinstance(part, str):
                    text += part
                    yield ChatResponse(message=ChatMessage(role="assistant", content=text), delta=part)
                else:
                    calls.append(part)
            message = ChatMessage(role="assistant", content=text, additional_kwargs={"tool_calls": calls} if calls else {})
            yield ChatResponse(message=message)

        return responses()

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **kwargs):
        calls = response.message.additional_kwargs.get("tool_calls") or []
        return [ToolSelection(tool_id=id, tool_name=name, tool_kwargs=json.loads(arguments)) for id, name, arguments in calls]


def look(at: str) -> str:
    """Looks."""
    return f"seen {at}"


def erase(at: str) -> str:
    """Erases, if the user agrees."""


def shatter(at: str) -> str:
    """Fails."""
    raise RuntimeError(f"no tool for {at}")


new_workflow = get_default_workflow_factory(llm=Scripted(), backend_tools=[look, shatter], frontend_tools=[erase])
app.post("/")(AGUIWorkflowRouter(new_workflow).run)
serve()
