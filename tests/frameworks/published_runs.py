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


def google_adk() -> None:
    """Answer in three runs, with two agents in parallel in each, and compact after the second."""
    from collections.abc import AsyncGenerator

    from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
    from google.adk.apps.app import App, EventsCompactionConfig
    from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
    from google.adk.models import BaseLlm, LlmRequest, LlmResponse
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.genai import types

    from contextgauge.hooks.google_adk import PublishingPlugin

    class Scripted(BaseLlm):
        size: int
        calls: int = 0

        async def generate_content_async(
            self,
            llm_request: LlmRequest,  # noqa: ARG002
            stream: bool = False,  # noqa: FBT002
        ) -> AsyncGenerator[LlmResponse, None]:
            self.calls += 1
            usage = types.GenerateContentResponseUsageMetadata(
                prompt_token_count=self.size + self.calls,
                cached_content_token_count=600,
                candidates_token_count=20,
            )
            content = types.Content(role="model", parts=[types.Part(text="Soon.")])
            if stream:
                yield LlmResponse(content=content, partial=True, usage_metadata=usage)
            yield LlmResponse(content=content, usage_metadata=usage, model_version="gemini-3-pro")

    def agent(name: str, size: int) -> LlmAgent:
        return LlmAgent(name=name, model=Scripted(model="scripted", size=size))

    both = ParallelAgent(name="both", sub_agents=[agent("one", 2_000), agent("two", 3_000)])
    compaction = EventsCompactionConfig(
        summarizer=LlmEventSummarizer(llm=Scripted(model="scripted", size=5_000)),
        compaction_interval=2,
        overlap_size=0,
    )
    app = App(
        name="shop",
        root_agent=SequentialAgent(name="shop", sub_agents=[agent("desk", 1_000), both]),
        plugins=[PublishingPlugin(Printing())],
        events_compaction_config=compaction,
    )

    async def run() -> None:
        sessions = InMemorySessionService()
        await sessions.create_session(app_name="shop", user_id="u", session_id="ticket-4711")
        runner = Runner(app=app, session_service=sessions)
        for text in ("Where is my parcel?", "And now?", "Still?"):
            message = types.Content(role="user", parts=[types.Part(text=text)])
            events = runner.run_async(user_id="u", session_id="ticket-4711", new_message=message)
            async for _ in events:
                pass

    asyncio.run(run())


def deepagents() -> None:  # noqa: C901 -- a whole agent
    """Give a subagent a task, and summarise in between."""
    from deepagents import create_deep_agent
    from deepagents.backends import StateBackend
    from deepagents.middleware.summarization import SummarizationMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver

    from contextgauge.hooks.langchain import PublishingHandler

    class Scripted(GenericFakeChatModel):
        profile: Any = {"max_input_tokens": 100_000}  # noqa: RUF012 -- a field

        def bind_tools(self, *_tools: Any, **_named: Any) -> "Scripted":
            return self

    def answer(size: int, call: dict[str, Any] | None = None) -> AIMessage:
        usage = {"input_tokens": size, "output_tokens": 20, "total_tokens": size + 20}
        calls = [] if call is None else [call]
        text = "" if call else "word " * 400
        return AIMessage(text, tool_calls=calls, usage_metadata=usage)

    def task(number: int) -> dict[str, Any]:
        own = {"description": f"Look at {number}.", "subagent_type": "reader"}
        return {"name": "task", "args": own, "id": f"c{number}"}

    def answers(first: int) -> Iterator[AIMessage]:
        for number in range(4):
            yield answer(first + 1_000 * number, task(number))
        yield answer(first + 9_000)

    def small() -> Iterator[AIMessage]:
        number = 0
        while True:
            number += 1
            yield answer(100 + number)

    def summaries() -> Iterator[AIMessage]:
        while True:
            yield answer(2_500)

    summarising = SummarizationMiddleware(
        Scripted(messages=summaries()),
        backend=StateBackend(),
        trigger=("messages", 5),
        keep=("messages", 2),
    )
    agent = create_deep_agent(
        Scripted(messages=answers(10_000)),
        middleware=[summarising],
        subagents=[
            {
                "name": "reader",
                "description": "Reads.",
                "system_prompt": "Read.",
                "model": Scripted(messages=small()),
            }
        ],
        checkpointer=InMemorySaver(),
    )
    options = {
        "callbacks": [PublishingHandler(Printing())],
        "configurable": {"thread_id": "thread-1"},
    }
    agent.invoke({"messages": [HumanMessage("Read all.", id="m1")]}, options)
    if not agent.get_state(options).values.get("_summarization_event"):
        raise SystemExit("nothing was summarised")


RUNS: dict[str, Callable[[], None]] = {
    "langchain": langchain,
    "langchain-failing": lambda: langchain(fails=True),
    "openai_agents": openai_agents,
    "pydantic_ai": pydantic_ai,
    "google_adk": google_adk,
    "deepagents": deepagents,
}

if __name__ == "__main__":
    RUNS[sys.argv[1]]()
