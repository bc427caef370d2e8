"""An agent of OpenAI's Agents SDK whose conversation outgrows its window: one line compacts it.

    python examples/openai_agents_agent.py

The model is a script that runs here, without a network: it reads 40 files in a window of 12 000
tokens. In your own program, the agent's model is named, and its window is known by the name.
"""

import json
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from contextgauge.adapters.openai_agents import compaction_filter
from contextgauge.compaction import ModelCall

TASK = "Read all files of src, and never touch src/secrets.py."
FILES = [f"src/module_{number:02}.py" for number in range(40)]


@function_tool
def read_file(path: str) -> str:
    """Return the text of a file."""
    return f"# {path}\n" + "value = value + 1\n" * 120


class Scripted(Model):
    """A model that reads every file, then reports; it notes its requests."""

    def __init__(self) -> None:
        self.requests: list[list[Any]] = []

    async def get_response(self, *_rest: Any, input: Any, **_named: Any) -> ModelResponse:  # noqa: A002 -- the SDK's name
        """Answer the next request."""
        number = len(self.requests)
        self.requests.append(input)
        if number < len(FILES):
            path = FILES[number]
            call = ResponseFunctionToolCall(
                type="function_call",
                name="read_file",
                arguments=json.dumps({"path": path}),
                call_id=f"call {path}",
            )
            return ModelResponse(output=[call], usage=Usage(), response_id=None)
        text = ResponseOutputText(type="output_text", text="All files are read.", annotations=[])
        message = ResponseOutputMessage(
            type="message", id="msg", role="assistant", status="completed", content=[text]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_rest: Any, **_named: Any) -> Any:
        """Stream nothing."""
        raise NotImplementedError


def tokens(items: list[Any]) -> int:
    """Return an estimate."""
    names = ("content", "arguments", "output")
    return sum(len(str(each.get(name, ""))) for each in items for name in names) // 4


def main() -> None:
    """Run the agent until it answers without a call."""
    model = Scripted()
    agent = Agent(name="reader", model=model, tools=[read_file])
    compacted = compaction_filter(call=ModelCall(window_tokens=12_000))
    config = RunConfig(call_model_input_filter=compacted, tracing_disabled=True)
    result = Runner.run_sync(agent, TASK, max_turns=100, run_config=config)
    items = result.to_input_list()
    print(f"{len(items)} items in the run: {tokens(items):,} tokens")
    print(f"largest request: {max(map(tokens, model.requests)):,} tokens")
    print("the task is in the last one:", TASK in str(model.requests[-1]))
    print(result.final_output)


if __name__ == "__main__":
    main()
