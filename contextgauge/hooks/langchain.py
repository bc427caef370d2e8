"""LangChain and LangGraph: a callback handler.

    with Publisher(when_full="drop_oldest") as publisher:
        handler = PublishingHandler(publisher)
        agent.invoke(state, {"callbacks": [handler], "configurable": {"thread_id": "t-1"}})

A thread is a session. Calls of a graph inside of the agent's, as of a subagent, count as its own:
give such a graph a handler with a session of its own. Calls of a summarising middleware are
compactions: LangChain marks them with `lc_source` in their metadata. Calls of other middleware,
which choose tools for example, are not of the conversation.
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from contextgauge.hooks.calls import CallUsage, PublishesMessages, SessionCalls

_SUMMARISING: Final = "summarization"


class PublishingHandler(BaseCallbackHandler):
    """Publishes what the models of an agent are called with.

    `session_id` names the session of calls without a thread. Without both, each run is a session.
    """

    def __init__(self, publisher: PublishesMessages, session_id: str | None = None) -> None:
        super().__init__()
        self._calls = SessionCalls(publisher)
        self._session_id = session_id
        self._roots: dict[UUID, UUID] = {}
        self._running: dict[UUID, tuple[str, object]] = {}
        """Sessions of the calls that are under way, and what each is for."""

    def on_chain_start(  # noqa: D102 -- LangChain's
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        if parent_run_id is not None:
            self._roots[run_id] = self._roots.get(parent_run_id, parent_run_id)

    def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **_: Any) -> None:  # noqa: D102
        self._roots.pop(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:  # noqa: D102
        self._roots.pop(run_id, None)

    def on_chat_model_start(  # noqa: D102
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        own = metadata or {}
        root = run_id if parent_run_id is None else self._roots.get(parent_run_id, parent_run_id)
        session = str(own.get("thread_id") or self._session_id or root)
        source = own.get("lc_source")
        self._running[run_id] = session, source
        if source == _SUMMARISING:
            self._calls.compacting(session, str(run_id))
        elif source is None:
            asked = (each for group in messages for each in group)
            ids = (
                each.id
                for each in asked
                if isinstance(each, HumanMessage | ToolMessage)
                and "lc_source" not in each.additional_kwargs  # a summary, a notice
            )
            self._calls.asked(session, ids)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:  # noqa: D102
        session, source = self._running.pop(run_id, (None, None))
        if session is None:
            return
        answer = _answer_in(response)
        usage = CallUsage(None) if answer is None else _usage_of(answer)
        if source == _SUMMARISING:
            self._calls.compacted(session, str(run_id), usage)
        elif source is None:
            model = None if answer is None else _model_of(answer)
            self._calls.answered(session, str(run_id), model, usage)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:  # noqa: D102
        session, source = self._running.pop(run_id, (None, None))
        if session is not None and source == _SUMMARISING:
            self._calls.failed(session, str(run_id), error)


def _answer_in(response: LLMResult) -> AIMessage | None:
    for group in response.generations:
        for each in group:
            if isinstance(each, ChatGeneration) and isinstance(each.message, AIMessage):
                return each.message
    return None


def _usage_of(answer: AIMessage) -> CallUsage:
    usage: Mapping[str, Any] = answer.usage_metadata or {}
    details = usage.get("input_token_details") or {}
    return CallUsage(
        usage.get("input_tokens"),
        read=details.get("cache_read"),
        written=details.get("cache_creation"),
        output=usage.get("output_tokens"),
    )


def _model_of(answer: AIMessage) -> str | None:
    own = answer.response_metadata
    name = own.get("model_name") or own.get("model")
    return name if isinstance(name, str) else None
