"""OpenAI's Agents SDK: hooks of a run.

with Publisher(when_full="drop_oldest") as publisher:
    hooks = PublishingHooks(publisher, session_id=session.session_id)
    await Runner.run(agent, "Where is my parcel?", session=session, hooks=hooks)
"""

from typing import Any

from agents import Agent, ModelResponse, RunContextWrapper, RunHooks

from contextgauge.hooks.calls import CallUsage, PublishesMessages, SessionCalls


class PublishingHooks(RunHooks[Any]):
    """Publishes what the models of a run are called with, as one session."""

    def __init__(self, publisher: PublishesMessages, session_id: str) -> None:
        self._calls = SessionCalls(publisher)
        self._session_id = session_id
        self._number = 0

    async def on_llm_end(  # noqa: D102 -- the SDK's
        self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse
    ) -> None:
        self._number += 1
        usage, model = response.usage, agent.model
        name = model if isinstance(model, str) else getattr(model, "model", None)
        counts = CallUsage(
            usage.input_tokens,
            read=usage.input_tokens_details.cached_tokens,
            output=usage.output_tokens,
        )
        call = response.response_id or f"{self._session_id}-{self._number}"
        self._calls.answered(
            self._session_id, call, name if isinstance(name, str) else None, counts
        )
