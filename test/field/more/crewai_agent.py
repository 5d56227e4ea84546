"""CrewAI with a scripted model, behind its AG-UI endpoint. It asks by CUSTOM on_interrupt, which resume answers."""

import json
import os
import tempfile

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false",
                  CREWAI_STORAGE_DIR=tempfile.mkdtemp(), LITELLM_LOCAL_MODEL_COST_MAP="true")

import litellm
from ag_ui_crewai import (CopilotKitState, add_crewai_flow_fastapi_endpoint, agui_feedback_provider, copilotkit_emit_tool_result,
                          copilotkit_stream)
from crewai.flow.flow import Flow, listen, router, start
from crewai.flow.human_feedback import human_feedback

from script import app, reply, serve


def turns(messages):
    for message in messages:
        content = message.get("content") or ""
        yield message["role"], content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


class Scripted(litellm.CustomLLM):
    async def astreaming(self, model, messages, *args, **kwargs):
        chunk = {"text": "", "is_finished": False, "finish_reason": "", "index": 0, "tool_use": None, "usage": None}
        why, index = "stop", 0
        async for part in reply(list(turns(messages))):
            if isinstance(part, str):
                yield {**chunk, "text": part}
                continue
            id, name, arguments = part
            for piece in {"name": name, "arguments": arguments[:4]}, {"name": None, "arguments": arguments[4:]}:
                yield {**chunk, "tool_use": {"id": id, "type": "function", "index": index, "function": piece}}
            why, index = "tool_calls", index + 1
        yield {**chunk, "is_finished": True, "finish_reason": why}


litellm.custom_provider_map = [{"provider": "scripted", "custom_handler": Scripted()}]


def look(at):
    return f"seen {at}"


def shatter(at):
    raise RuntimeError(f"no tool for {at}")


class Chat(Flow[CopilotKitState]):
    @start()
    async def answer(self):
        while True:
            response = await copilotkit_stream(await litellm.acompletion(model="scripted/model", messages=self.state.messages, stream=True))
            message = response.choices[0].message.model_dump()
            self.state.messages.append({**message, "id": response.id})
            calls = [(call["id"], call["function"]) for call in message.get("tool_calls") or []]
            if not calls or calls[0][1]["name"] not in ("look", "shatter"):
                return calls[0][1]["name"] if calls else ""
            for id, function in calls:
                await self.result(id, globals()[function["name"]](**json.loads(function["arguments"])))

    @router(answer)
    def after(self, name):
        return "asks" if name == "erase" else "ends"

    @listen("asks")
    @human_feedback(message="Erase it?", provider=agui_feedback_provider)
    def ask(self):
        return "erase"

    @listen(ask)
    async def go_on(self, asked):
        await self.result(self.state.messages[-1]["tool_calls"][0]["id"], f"the answer is {asked.feedback}")
        return await self.answer()

    async def result(self, id, content):
        self.state.messages.append({"role": "tool", "tool_call_id": id, "content": content, "id": f"result-{id}"})
        await copilotkit_emit_tool_result(id, content, message_id=f"result-{id}")


add_crewai_flow_fastapi_endpoint(app, Chat(), "/")
serve()
