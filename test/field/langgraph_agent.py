"""LangGraph with a scripted model, behind its AG-UI adapter. It asks by an interrupt, which its adapter sends as CUSTOM on_interrupt."""

from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

from script import app, reply, serve

roles = {"human": "user", "ai": "assistant"}


class Scripted(BaseChatModel):
    _llm_type = "scripted"

    def _generate(self, *args, **kwargs):
        raise NotImplementedError

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        index = 0
        async for part in reply([(roles.get(m.type, m.type), str(m.text)) for m in messages]):
            if isinstance(part, str):
                yield ChatGenerationChunk(message=AIMessageChunk(part))
                continue
            id, name, args = part
            for piece in {"id": id, "name": name, "args": ""}, {"args": args[:4]}, {"args": args[4:]}:
                chunk = {"id": None, "name": None, "index": index} | piece
                yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[chunk]))
            index += 1


@tool
def look(at: str) -> str:
    """Looks."""
    return f"seen {at}"


@tool
def erase(at: str) -> str:
    """Erases, if the user agrees."""
    return f"the answer is {interrupt({'message': f'Erase {at}?'})}"


@tool
def shatter(at: str) -> str:
    """Fails."""
    raise RuntimeError(f"no tool for {at}")


class State(MessagesState):
    turns: int
    tools: list


tools = ToolNode([look, erase, shatter], handle_tool_errors=False)


async def answer(state):
    if "node" in state["messages"][-1].text.split():
        raise RuntimeError("the node is out of order")
    return {"messages": [await Scripted().ainvoke(state["messages"])], "turns": state.get("turns", 0) + 1}


def after(state):
    calls = state["messages"][-1].tool_calls
    return "tools" if calls and all(call["name"] in tools.tools_by_name for call in calls) else END


graph = StateGraph(State).add_node("answer", answer).add_node("tools", tools)
graph = graph.add_edge(START, "answer").add_conditional_edges("answer", after, ["tools", END]).add_edge("tools", "answer")
agent = LangGraphAgent(name="scripted", graph=graph.compile(checkpointer=InMemorySaver()), emit_raw_events=False)
add_langgraph_fastapi_endpoint(app, agent)
serve()
