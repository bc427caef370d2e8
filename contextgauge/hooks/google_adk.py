"""Google's Agent Development Kit: a plugin of an app.

    with Publisher(when_full="drop_oldest") as publisher:
        app = App(name="shop", root_agent=agent, plugins=[PublishingPlugin(publisher)])
        runner = Runner(app=app, session_service=sessions)

A session is one of the kit's. Agents that see the whole conversation count as one; those that run
in a branch of their own, in parallel or as a tool, count as subagents. The kit compacts events
after a run: that is published with the session's next call.
"""

from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.session import Session

from contextgauge.hooks.calls import CallUsage, PublishesMessages, SessionCalls
from contextgauge.normalise.usage import gemini_output


class PublishingPlugin(BasePlugin):
    """Publishes what the models of an app's agents are called with, and compactions of events."""

    def __init__(self, publisher: PublishesMessages, name: str = "contextgauge") -> None:
        super().__init__(name)
        self._calls = SessionCalls(publisher)
        self._answers = 0

    async def before_model_callback(  # noqa: D102 -- the kit's
        self,
        *,
        callback_context: CallbackContext,
        llm_request: LlmRequest,  # noqa: ARG002
    ) -> None:
        session, branch = callback_context.session, _branch_of(callback_context)
        self._compactions(session)
        ids = (
            event.id
            for event in session.events
            if event.branch == branch
            and event.actions.compaction is None
            and (event.author == "user" or event.get_function_responses())
        )
        self._calls.asked(session.id, ids, branch)

    async def after_model_callback(  # noqa: D102
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> None:
        if llm_response.partial:
            return  # a piece of an answer, whose counts come with its end
        self._answers += 1
        session, branch = callback_context.session, _branch_of(callback_context)
        call = f"{callback_context.invocation_id}-{self._answers}"
        usage = _usage_of(llm_response.usage_metadata)
        self._calls.answered(session.id, call, llm_response.model_version, usage, branch)

    def _compactions(self, session: Session) -> None:
        """Publish the session's compactions; the same again, by its id, counts once."""
        for event in session.events:
            if event.actions.compaction is not None and self._calls.is_new(session.id, event.id):
                usage = _usage_of(event.usage_metadata)
                self._calls.compacted(session.id, event.id, usage, ended_s=event.timestamp)


def _branch_of(context: CallbackContext) -> str | None:
    branch: str | None = context.get_invocation_context().branch
    return branch


def _usage_of(usage: Any) -> CallUsage:  # noqa: ANN401 -- google.genai's, or None
    if usage is None:
        return CallUsage(None)
    output = gemini_output(
        usage.candidates_token_count,
        usage.thoughts_token_count,
        prompt=usage.prompt_token_count,
        tool=usage.tool_use_prompt_token_count,
        total=usage.total_token_count,
    )
    return CallUsage(usage.prompt_token_count, read=usage.cached_content_token_count, output=output)
