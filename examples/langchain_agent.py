"""An agent of LangChain whose conversation outgrows its window: one line compacts it.

    python examples/langchain_agent.py

The model is a script that runs here, without a network: it reads 40 files in a window of 12 000
tokens. In your own program, `Scripted()` is your model, which tells its window itself.
"""

from collections.abc import Iterator
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import tool

from contextgauge.adapters.langchain import CompactionMiddleware

TASK = "Read all files of src, and never touch src/secrets.py."
FILES = [f"src/module_{number:02}.py" for number in range(40)]


@tool
def read_file(path: str) -> str:
    """Return the text of a file."""
    return f"# {path}\n" + "value = value + 1\n" * 120


def answers() -> Iterator[AIMessage]:
    """Read every file, then report."""
    for path in FILES:
        call = {"name": "read_file", "args": {"path": path}, "id": f"call {path}"}
        yield AIMessage("", tool_calls=[call])
    yield AIMessage("All files are read.")


class Scripted(GenericFakeChatModel):
    """A model of 12 000 tokens that notes how large its requests are."""

    requests: list[list[BaseMessage]] = []  # noqa: RUF012 -- a field of a pydantic model

    def bind_tools(self, *_tools: Any, **_named: Any) -> "Scripted":
        """Take any tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *rest: Any, **named: Any) -> ChatResult:
        self.requests.append(messages)
        return super()._generate(messages, *rest, **named)


def tokens(messages: list[AnyMessage] | list[BaseMessage]) -> int:
    """Return an estimate."""
    return sum(len(str(each.content)) for each in messages) // 4


def main() -> None:
    """Run the agent until it answers without a call."""
    model = Scripted(messages=answers(), profile={"max_input_tokens": 12_000})
    agent = create_agent(model, [read_file], middleware=[CompactionMiddleware()])
    state = agent.invoke({"messages": [HumanMessage(TASK)]}, {"recursion_limit": 100})
    print(f"{len(state['messages'])} messages in the state: {tokens(state['messages']):,} tokens")
    print(f"largest request: {max(map(tokens, model.requests)):,} tokens")
    print("the task is in the last one:", TASK in str(model.requests[-1]))
    print(state["messages"][-1].content)


if __name__ == "__main__":
    main()
