"""LangChain and LangGraph: a callback handler.

    with Publisher(when_full="drop_oldest") as publisher:
        handler = PublishingHandler(publisher)
        agent.invoke(state, {"callbacks": [handler], "configurable": {"thread_id": "t-1"}})

A thread is a session. Calls below a tool's run are those of a subagent, as of deepagents' `task`:
each such run is a chain of the session. Calls that write a summary are compactions: LangChain and
deepagents mark them with `lc_source` in their metadata. Calls of other middleware, which choose
tools for example, are not of the conversation.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from contextgauge.hooks.calls import CallUsage, PublishesMessages, SessionCalls

_SUMMARISING: Final = "summarization"


class _RunPlace(NamedTuple):
    """Where a run is: below which first one, and below which tool's run."""

    root: UUID
    chain: str | None = None


class _RunningCall(NamedTuple):
    """A call of a model that is under way, and what it is for."""

    session: str
    chain: str | None
    source: object
    is_of_tool: bool


class PublishingHandler(BaseCallbackHandler):
    """Publishes what the models of an agent are called with.

    `session_id` names the session of calls without a thread. Without both, each run is a session.
    """

    def __init__(self, publisher: PublishesMessages, session_id: str | None = None) -> None:
        super().__init__()
        self._calls = SessionCalls(publisher)
        self._session_id = session_id
        self._places: dict[UUID, _RunPlace] = {}
        self._callers: dict[UUID, str | None] = {}
        """The chains whose tools are running."""
        self._running: dict[UUID, _RunningCall] = {}

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
            self._places[run_id] = self._below(parent_run_id)

    def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **_: Any) -> None:  # noqa: D102
        self._places.pop(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:  # noqa: D102
        self._places.pop(run_id, None)

    def on_tool_start(  # noqa: D102
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        caller = _RunPlace(run_id) if parent_run_id is None else self._below(parent_run_id)
        self._callers[run_id] = caller.chain
        self._places[run_id] = caller._replace(chain=str(run_id))

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:  # noqa: D102
        self._end_tool(run_id)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:  # noqa: D102
        self._end_tool(run_id)

    def _end_tool(self, run_id: UUID) -> None:
        self._places.pop(run_id, None)
        self._callers.pop(run_id, None)

    def _below(self, run_id: UUID) -> _RunPlace:
        return self._places.get(run_id) or _RunPlace(run_id)

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
        place = _RunPlace(run_id) if parent_run_id is None else self._below(parent_run_id)
        session = str(own.get("thread_id") or self._session_id or place.root)
        source, chain = own.get("lc_source"), place.chain
        is_of_tool = source == _SUMMARISING and parent_run_id in self._callers
        if is_of_tool and parent_run_id is not None:  # a tool with which an agent compacts itself
            chain = self._callers[parent_run_id]
        self._running[run_id] = _RunningCall(session, chain, source, is_of_tool)
        if source == _SUMMARISING:
            if chain is None:
                self._calls.compacting(session, str(run_id))
        elif source is None:
            asked = (each for group in messages for each in group)
            ids = (
                each.id
                for each in asked
                if isinstance(each, HumanMessage | ToolMessage)
                and "lc_source" not in each.additional_kwargs  # a summary, a notice
            )
            self._calls.asked(session, ids, chain)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:  # noqa: D102
        running = self._running.pop(run_id, None)
        if running is None:
            return
        session, chain, source, is_of_tool = running
        answer = _answer_in(response)
        usage = CallUsage(None) if answer is None else _usage_of(answer)
        if source == _SUMMARISING:
            trigger = None if is_of_tool else "auto"
            self._calls.compacted(session, str(run_id), usage, chain, trigger=trigger)
        elif source is None:
            model = None if answer is None else _model_of(answer)
            self._calls.answered(session, str(run_id), model, usage, chain)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:  # noqa: D102
        running = self._running.pop(run_id, None)
        if running is not None and running.source == _SUMMARISING and running.chain is None:
            self._calls.failed(running.session, str(run_id), error)


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
