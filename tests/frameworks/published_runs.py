"""Runs of agents with the hooks of `contextgauge.hooks`: prints what they publish, a line each.

python tests/frameworks/published_runs.py langchain
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any


class Printing:
    """A publisher that prints."""

    def publish(self, message: object, *, session_id: str | None = None) -> None:
        sys.stdout.write(json.dumps({"key": session_id, "message": message}) + "\n")


def langchain(*, fails: bool = False) -> None:  # noqa: C901 -- a whole agent
    """Read three files, and summarise in between."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.outputs import ChatResult
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver

    from contextgauge.hooks.langchain import PublishingHandler

    @tool
    def read_file(path: str) -> str:
        """Return the text of a file."""
        return f"# {path}"

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, *_tools: Any, **_named: Any) -> "Scripted":
            return self

    class Slow(Scripted):
        def _generate(self, *arguments: Any, **named: Any) -> ChatResult:
            time.sleep(0.05)
            return super()._generate(*arguments, **named)

    class Broken(Scripted):
        def _generate(self, *_: Any, **__: Any) -> ChatResult:
            raise ConnectionError("no secret of the provider")

    def answers() -> Iterator[AIMessage]:
        for number in range(3):
            call = {"name": "read_file", "args": {"path": f"{number}.py"}, "id": f"c{number}"}
            usage = {
                "input_tokens": 1_000 * (number + 1),
                "output_tokens": 20,
                "total_tokens": 1_000 * (number + 1) + 20,
                "input_token_details": {"cache_read": 600, "cache_creation": 100},
            }
            own = {"model_name": "claude-sonnet-5"}
            yield AIMessage("", tool_calls=[call], usage_metadata=usage, response_metadata=own)
        yield AIMessage("All are read.")

    def summary() -> Iterator[AIMessage]:
        usage = {"input_tokens": 2_500, "output_tokens": 90, "total_tokens": 2_590}
        while True:
            yield AIMessage("Two files are read.", usage_metadata=usage)

    summarising = (Broken if fails else Slow)(messages=summary())
    agent = create_agent(
        Scripted(messages=answers()),
        [read_file],
        middleware=[
            SummarizationMiddleware(summarising, trigger=("messages", 5), keep=("messages", 2))
        ],
        checkpointer=InMemorySaver(),
    )
    options = {
        "callbacks": [PublishingHandler(Printing())],
        "configurable": {"thread_id": "thread-1"},
    }
    try:
        agent.invoke({"messages": [HumanMessage("Read all files.", id="m1")]}, options)
    except ConnectionError:
        if not fails:
            raise


def openai_agents() -> None:
    """Answer twice in one session."""
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText
    from openai.types.responses.response_usage import InputTokensDetails

    from contextgauge.hooks.openai_agents import PublishingHooks

    class Scripted(Model):
        calls = 0

        async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
            self.calls += 1
            text = ResponseOutputText(annotations=[], text="Soon.", type="output_text")
            answer = ResponseOutputMessage(
                id="o1", content=[text], role="assistant", status="completed", type="message"
            )
            usage = Usage(
                requests=1,
                input_tokens=5_000 * self.calls,
                output_tokens=30,
                input_tokens_details=InputTokensDetails(cached_tokens=4_000, cache_write_tokens=0),
            )
            return ModelResponse([answer], usage, f"resp_{self.calls}")

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    agent = Agent("support", model=Scripted())
    hooks = PublishingHooks(Printing(), "ticket-4711")
    for text in ("Where is my parcel?", "And now?"):
        asyncio.run(
            Runner.run(agent, text, hooks=hooks, run_config=RunConfig(tracing_disabled=True))
        )


def pydantic_ai() -> None:
    """Answer twice in one session, the second time with the history of the first."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel
    from pydantic_ai.usage import RequestUsage

    from contextgauge.hooks.pydantic_ai import publish_run

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        usage = RequestUsage(
            input_tokens=1_000 * len(messages), cache_read_tokens=400, output_tokens=12
        )
        return ModelResponse([TextPart("Soon.")], usage=usage, model_name="gpt-4")

    agent = Agent(FunctionModel(answer))
    history: list[ModelMessage] = []
    for text in ("Where is my parcel?", "And now?"):
        result = agent.run_sync(text, message_history=history)
        publish_run(Printing(), "ticket-4711", result.new_messages())
        history = result.all_messages()


RUNS: dict[str, Callable[[], None]] = {
    "langchain": langchain,
    "langchain-failing": lambda: langchain(fails=True),
    "openai_agents": openai_agents,
    "pydantic_ai": pydantic_ai,
}

if __name__ == "__main__":
    RUNS[sys.argv[1]]()
