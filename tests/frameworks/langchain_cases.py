"""LangChain and LangGraph: run by `test_frameworks.py` where the packages are installed."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from contextgauge.adapters.langchain import CompactionMiddleware, LangchainCodec, pre_model_hook
from contextgauge.compaction import ModelCall
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.tool_results import fitting
from contextgauge.compaction.profiles import DEFAULT

WINDOW = 12_000
CALL = ModelCall(window_tokens=WINDOW)


@tool
def read_file(path: str) -> str:
    """Return the text of a file."""
    return f"# {path}\n" + "value = value + 1\n" * 120


class Scripted(GenericFakeChatModel):
    """A model that notes its requests."""

    requests: list[list[BaseMessage]] = []

    def bind_tools(self, *_tools: Any, **_named: Any) -> "Scripted":
        return self

    def _generate(self, messages: list[BaseMessage], *rest: Any, **named: Any) -> ChatResult:
        self.requests.append(messages)
        return super()._generate(messages, *rest, **named)


def answers(count: int = 40) -> Iterator[AIMessage]:
    for number in range(count):
        call = {"name": "read_file", "args": {"path": f"f{number}.py"}, "id": f"c{number}"}
        yield AIMessage("", tool_calls=[call])
    yield AIMessage("All read.")


def size(messages: Sequence[BaseMessage]) -> int:
    return sum(len(str(each.content)) for each in messages) // 4


def check(requests: Sequence[Sequence[BaseMessage]], task: str) -> None:
    """All requests fit, have the task, and results only with their calls."""
    assert max(map(size, requests)) < WINDOW - 4_000
    for request in requests:
        assert task in str(request)
        called: set[str | None] = set()
        for message in request:
            called |= {each["id"] for each in getattr(message, "tool_calls", [])}
            assert not isinstance(message, ToolMessage) or message.tool_call_id in called


def test_requests_fit_and_the_state_stays_whole() -> None:
    model = Scripted(messages=answers(), requests=[])
    middleware = CompactionMiddleware(call=CALL)
    agent = create_agent(model, [read_file], system_prompt="Careful.", middleware=[middleware])
    state = agent.invoke({"messages": [HumanMessage("Never f99!")]}, {"recursion_limit": 100})
    check(model.requests, "Never f99!")
    assert len(state["messages"]) == 82
    assert size(state["messages"]) > 2 * WINDOW - 4_000
    assert all(isinstance(request[0], SystemMessage) for request in model.requests)


def test_it_is_the_same_in_an_event_loop_and_with_the_models_own_window() -> None:
    model = Scripted(messages=answers(), requests=[], profile={"max_input_tokens": WINDOW})
    agent = create_agent(model, [read_file], middleware=[CompactionMiddleware()])
    given = {"messages": [HumanMessage("Never f99!")]}
    asyncio.run(agent.ainvoke(given, {"recursion_limit": 100}))
    check(model.requests, "Never f99!")


def test_a_thread_goes_on_in_another_process() -> None:
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t"}, "recursion_limit": 100}
    for turn in ("Never f99!", "Nicht auf main!"):
        model = Scripted(messages=answers(30), requests=[])
        middleware = CompactionMiddleware(call=CALL)
        agent = create_agent(model, [read_file], middleware=[middleware], checkpointer=saver)
        agent.invoke({"messages": [HumanMessage(turn)]}, config)
    check(model.requests, "Never f99!")
    check(model.requests, "Nicht auf main!")


def test_a_graph_of_ones_own_takes_the_hook() -> None:
    hook, seen = pre_model_hook(call=CALL), []

    def think(state: MessagesState) -> dict[str, Any]:
        seen.append(hook(state)["llm_input_messages"])
        return {"messages": [AIMessage("Yes. " * 500)]}

    graph = StateGraph(MessagesState).add_node("think", think).add_edge(START, "think")
    app = graph.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    for number in range(30):
        app.invoke({"messages": [HumanMessage(f"No. {number}: not on main!")]}, config)
    check(seen, "No. 0: not on main!")
    assert len(app.get_state(config).values["messages"]) == 60
    assert len(seen[-1]) < 59
    summaries = [each for each in seen[-1] if "lc_source" in each.additional_kwargs]
    assert [type(each) for each in summaries] == [HumanMessage]


def test_the_model_recalls_what_is_not_sent_any_more() -> None:
    def script() -> Iterator[AIMessage]:
        yield from list(answers())[:-1]
        arguments = {"text": "which key had f3.py?"}
        yield AIMessage("", tool_calls=[{"name": "recall", "args": arguments, "id": "r"}])
        yield AIMessage("All read.")

    @tool
    def read_file(path: str) -> str:
        """Return the text of a file."""
        key = "KEY = 'mauve-otter'\n" if path == "f3.py" else ""
        return f"# {path}\n{key}" + "value = value + 1\n" * 120

    model = Scripted(messages=script(), requests=[])
    agent = create_agent(
        model, [read_file], middleware=[CompactionMiddleware(call=CALL, recall=True)]
    )
    agent.invoke({"messages": [HumanMessage("Never f99!")]}, {"recursion_limit": 100})
    check(model.requests, "Never f99!")
    assert "mauve-otter" not in str(model.requests[-2])
    assert ": recall " in str(model.requests[-2])
    assert "mauve-otter" in str(model.requests[-1][-1].content)


def test_what_a_changed_message_does_not_change_stays() -> None:
    codec = LangchainCodec()
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "x" * 80}
    text, image = {"type": "text", "text": "long " * 900}, {"type": "image", "base64": "AAAA"}
    call = {"name": "edit", "args": {"text": "new " * 900}, "id": "c1", "type": "tool_call"}
    use = {"type": "tool_use", "id": "c1", "name": "edit", "input": call["args"]}
    given = [
        HumanMessage([text, image], id="u"),
        AIMessage([thinking, text, use], tool_calls=[call], id="a"),
        ToolMessage("done " * 900, tool_call_id="c1", id="t", artifact={"kept": 1}),
    ]
    messages = codec.read(given, ())
    assert all(one is other for one, other in zip(codec.write(messages), given, strict=True))
    assert [type(each).__name__ for each in messages[1].blocks] == ["Thinking", "Text", "ToolCall"]

    human, answer, result = codec.write(fitting(messages, 500, DEFAULT, ESTIMATE))
    assert [human.id, answer.id, result.id] == ["u", "a", "t"]
    assert isinstance(human.content, list)
    assert human.content[1] == image
    assert "characters left out" in human.content[0]["text"]  # type: ignore[index]
    assert isinstance(answer, AIMessage)
    assert answer.content[0] == thinking
    assert len(str(answer.tool_calls)) < 2_000
    assert answer.content[2]["input"] == answer.tool_calls[0]["args"]  # type: ignore[index]
    assert "characters left out" in str(result.content)
    assert isinstance(result, ToolMessage)
    assert (result.tool_call_id, result.artifact) == ("c1", {"kept": 1})
