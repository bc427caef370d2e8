"""Pydantic AI: run by `test_frameworks.py` where the package is installed."""

from typing import Any

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, UsageLimits
from pydantic_ai.messages import (
    ImageUrl,
    ModelRequest,
    SystemPromptPart,
    ThinkingPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from contextgauge.adapters.pydantic_ai import CompactRequests, PydanticCodec
from contextgauge.compaction import ModelCall
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.tool_results import fitting
from contextgauge.compaction.profiles import DEFAULT

WINDOW = 12_000


def read_file(path: str) -> str:
    """Return the text of a file."""
    return f"# {path}\n" + "value = value + 1\n" * 120


def contents(messages: list[ModelMessage]) -> list[str]:
    return [str(getattr(part, "content", "")) for each in messages for part in each.parts]


def test_requests_fit_and_the_history_stays_whole_over_runs() -> None:
    requests: list[list[ModelMessage]] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        requests.append(messages)
        assert info.instructions == "Sign it."
        number = len(requests)
        if number % 31:
            return ModelResponse([ToolCallPart("read_file", {"path": f"f{number}"}, f"c{number}")])
        return ModelResponse([TextPart("All read.")])

    compaction = CompactRequests(call=ModelCall(window_tokens=WINDOW))
    agent = Agent(
        FunctionModel(model),
        system_prompt="Careful.",
        instructions="Sign it.",
        tools=[read_file],
        capabilities=[compaction],
    )
    history: list[ModelMessage] = []
    for turn in ("Never f99!", "Nicht auf main!"):
        limits = UsageLimits(request_limit=99)
        history = agent.run_sync(turn, message_history=history, usage_limits=limits).all_messages()
    assert max(sum(map(len, contents(each))) // 4 for each in requests) < WINDOW - 4_000
    assert len(history) == 2 * 62
    for request in requests:
        assert contents(request)[0] == "Careful."
        parts: list[Any] = [part for each in request for part in each.parts]
        called = {each.tool_call_id for each in parts if isinstance(each, ToolCallPart)}
        assert called == {each.tool_call_id for each in parts if isinstance(each, ToolReturnPart)}
    last = "\n".join(contents(requests[-1]))
    assert "Never f99!" in last
    assert "Nicht auf main!" in last


def test_the_model_recalls_what_is_not_sent_any_more() -> None:
    requests: list[list[ModelMessage]] = []

    def model(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        requests.append(messages)
        number = len(requests)
        if number > 41:
            return ModelResponse([TextPart("All read.")])
        name, arguments = "read_file", {"path": f"f{number}.py"}
        if number > 40:
            name, arguments = "recall", {"text": "which key had f3.py?"}
        return ModelResponse([ToolCallPart(name, arguments, f"c{number}")])

    def read_file(path: str) -> str:
        key = "KEY = 'mauve-otter'\n" if path == "f3.py" else ""
        return f"# {path}\n{key}" + "value = value + 1\n" * 120

    compaction = CompactRequests(call=ModelCall(window_tokens=WINDOW), recall=True)
    agent = Agent(FunctionModel(model), tools=[read_file], capabilities=[compaction])
    agent.run_sync("Never f99!", usage_limits=UsageLimits(request_limit=99))
    assert "mauve-otter" not in "".join(contents(requests[-2]))
    assert ": recall " in "".join(contents(requests[-2]))
    assert "mauve-otter" in contents(requests[-1])[-1]


def test_what_a_changed_message_does_not_change_stays() -> None:
    codec = PydanticCodec()
    image = ImageUrl("https://example.com/a.png")
    thinking = ThinkingPart("Hm.", signature="x" * 80)
    given: list[ModelMessage] = [
        ModelRequest(
            [SystemPromptPart("Careful."), UserPromptPart(["long " * 900, image])],
            instructions="Sign it.",
        ),
        ModelResponse([thinking, ToolCallPart("edit", {"text": "new " * 900}, "c1")]),
        ModelRequest([ToolReturnPart("edit", "done " * 900, "c1", metadata={"kept": 1})]),
    ]
    messages = codec.read(given, ())
    assert [each.role for each in messages] == ["system", "user", "assistant", "tool"]
    assert codec.write(messages)[2:] == given[1:]
    system, prompt, answer, result = codec.write(fitting(messages, 500, DEFAULT, ESTIMATE))
    assert contents([system]) == ["Careful."]
    assert isinstance(prompt, ModelRequest)
    assert prompt.instructions == "Sign it."
    assert prompt.parts[0].content[1] == image  # type: ignore[union-attr, index]
    assert "characters left out" in contents([prompt])[0]
    assert answer.parts[0] == thinking
    assert len(str(answer.parts[1])) < 2_500
    assert isinstance(returned := result.parts[0], ToolReturnPart)
    assert "characters left out" in str(returned.content)
    assert (returned.tool_call_id, returned.metadata) == ("c1", {"kept": 1})
