"""OpenAI's Agents SDK: run by `test_frameworks.py` where the package is installed."""

import asyncio
import json
from typing import Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from contextgauge.adapters.openai_agents import compaction_filter
from contextgauge.compaction import ModelCall

WINDOW = 12_000


@function_tool
def read_file(path: str) -> str:
    """Return the text of a file."""
    return f"# {path}\n" + "value = value + 1\n" * 120


class Scripted(Model):
    """A model that reads `count` files in each run, and notes its requests."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.requests: list[list[dict[str, Any]]] = []

    async def get_response(self, *_rest: Any, input: Any, **_named: Any) -> ModelResponse:
        number = len(self.requests)
        self.requests.append(json.loads(json.dumps(input)))
        if (number + 1) % (self.count + 1):
            call = ResponseFunctionToolCall(
                type="function_call",
                name="read_file",
                arguments=json.dumps({"path": f"f{number}.py"}),
                call_id=f"c{number}",
            )
            return ModelResponse(output=[call], usage=Usage(), response_id=None)
        text = ResponseOutputText(type="output_text", text="All read.", annotations=[])
        message = ResponseOutputMessage(
            type="message", id="msg", role="assistant", status="completed", content=[text]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_rest: Any, **_named: Any) -> Any:
        raise NotImplementedError


def size(items: list[dict[str, Any]]) -> int:
    names = ("content", "arguments", "output")
    return sum(len(str(each.get(name, ""))) for each in items for name in names) // 4


def test_requests_fit_and_the_session_stays_whole_over_runs() -> None:
    model, session = Scripted(30), SQLiteSession("s")
    compacted = compaction_filter(call=ModelCall(window_tokens=WINDOW))
    config = RunConfig(call_model_input_filter=compacted, tracing_disabled=True)
    agent = Agent(name="reader", instructions="Careful.", model=model, tools=[read_file])
    turns = ["Never f99!", "Nicht auf main!"]
    for turn in turns:
        result = Runner.run_sync(agent, turn, max_turns=99, session=session, run_config=config)
        assert result.final_output == "All read."
    assert max(map(size, model.requests)) < WINDOW - 4_000
    assert all(turn in json.dumps(model.requests[-1]) for turn in turns)
    for request in model.requests:
        calls = {each["call_id"] for each in request if each.get("type") == "function_call"}
        results = {
            each["call_id"] for each in request if each.get("type") == "function_call_output"
        }
        assert results == calls
    assert len(asyncio.run(session.get_items())) == 2 * 62


def test_a_request_that_fits_is_sent_as_it_is() -> None:
    model = Scripted(3)
    compacted = compaction_filter(call=ModelCall(window_tokens=200_000))
    config = RunConfig(call_model_input_filter=compacted, tracing_disabled=True)
    agent = Agent(name="reader", model=model, tools=[read_file])
    result = Runner.run_sync(agent, "Read.", run_config=config)
    sent = json.loads(json.dumps(result.to_input_list()))
    assert model.requests[-1] == sent[:-1]
