"""An agent of Pydantic AI whose conversation outgrows its window: one line compacts it.

    python examples/pydantic_ai_agent.py

The model is a script that runs here, without a network: it reads 40 files in a window of 12 000
tokens. In your own program, the model is named, and its window is known by its profile or name.
"""

from collections.abc import Sequence

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, UsageLimits
from pydantic_ai.models.function import AgentInfo, FunctionModel

from contextgauge.adapters.pydantic_ai import CompactRequests
from contextgauge.compaction import ModelCall

TASK = "Read all files of src, and never touch src/secrets.py."
FILES = [f"src/module_{number:02}.py" for number in range(40)]

requests: list[list[ModelMessage]] = []


def model(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Read every file, then report."""
    requests.append(messages)
    number = len(requests) - 1
    if number < len(FILES):
        path = FILES[number]
        return ModelResponse([ToolCallPart("read_file", {"path": path}, f"call {path}")])
    return ModelResponse([TextPart("All files are read.")])


def read_file(path: str) -> str:
    """Return the text of a file."""
    return f"# {path}\n" + "value = value + 1\n" * 120


def tokens(messages: Sequence[ModelMessage]) -> int:
    """Return an estimate."""
    parts = (part for each in messages for part in each.parts)
    return sum(len(str(getattr(part, "content", ""))) for part in parts) // 4


def main() -> None:
    """Run the agent until it answers without a call."""
    compaction = CompactRequests(call=ModelCall(window_tokens=12_000))
    agent = Agent(FunctionModel(model), tools=[read_file], capabilities=[compaction])
    result = agent.run_sync(TASK, usage_limits=UsageLimits(request_limit=100))
    history = result.all_messages()
    print(f"{len(history)} messages in the history: {tokens(history):,} tokens")
    print(f"largest request: {max(map(tokens, requests)):,} tokens")
    print("the task is in the last one:", TASK in str(requests[-1]))
    print(result.output)


if __name__ == "__main__":
    main()
