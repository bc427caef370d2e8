"""LangChain and LangGraph: a middleware of `create_agent`, and a hook before the model of a graph.

    agent = create_agent(model, tools, middleware=[CompactionMiddleware()])

The state keeps all messages, and so does its checkpointer; only requests are compacted.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.tools import ToolRuntime, tool
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from contextgauge.adapters.conversations import (
    IMAGE_TOKENS,
    RECALL_DESCRIPTION,
    RECALL_NAME,
    FollowedConversations,
    ObjectCodec,
)
from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.engine.request_size import NO_CALL, ModelCall
from contextgauge.compaction.messages import (
    ApiUsage,
    Block,
    Image,
    Message,
    Opaque,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from contextgauge.compaction.stateless import finished

_CALLS = {
    "tool_use": ("input", "id"),
    "tool_call": ("args", "id"),
    "function_call": ("arguments", "call_id"),
}
"""Parts that are calls: where each has its arguments, and its id."""


class CompactionMiddleware(AgentMiddleware):
    """Sends a compacted conversation where the whole one would not fit.

    `compactor` has the profile and the summariser. The window is that of `call`, else of the
    model's profile, else of its name; system prompt and tools are the request's. With `recall`
    the model gets a tool of this name for what is not sent any more.
    """

    def __init__(
        self,
        compactor: Compactor | None = None,
        *,
        call: ModelCall = NO_CALL,
        recall: bool = False,
    ) -> None:
        super().__init__()
        self._call = call
        self._conversations = FollowedConversations[Any](LangchainCodec, compactor, recall=recall)
        self.tools = [self._recall_tool()] if recall else []

    def _recall_tool(self) -> BaseTool:
        @tool(RECALL_NAME, description=RECALL_DESCRIPTION)
        def recalled(
            runtime: ToolRuntime,
            id: str | None = None,  # noqa: A002 -- the tool's
            file: str | None = None,
            text: str | None = None,
            offset: int = 0,
        ) -> str:
            arguments = {"id": id, "file": file, "text": text, "offset": offset}
            return self._conversations.recalled(runtime.state["messages"], arguments)

        return recalled

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with what fits."""
        return handler(finished(self._compacted(request)))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Call the model with what fits."""
        return await handler(await self._compacted(request))

    async def _compacted(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        call = _call_of(request, self._call)
        return request.override(messages=await self._conversations.request(request.messages, call))


def pre_model_hook(
    compactor: Compactor | None = None, *, call: ModelCall = NO_CALL
) -> Callable[[Mapping[str, Any]], dict[str, list[AnyMessage]]]:
    """Return a node for `create_react_agent(…, pre_model_hook=…)`, or a graph of your own.

    It reads `messages` of the state and returns `llm_input_messages`. `call` names the model or
    its window.
    """
    conversations = FollowedConversations[Any](LangchainCodec, compactor)

    def compacted(state: Mapping[str, Any]) -> dict[str, list[AnyMessage]]:
        return {"llm_input_messages": finished(conversations.request(state["messages"], call))}

    return compacted


def _call_of(request: ModelRequest[Any], call: ModelCall) -> ModelCall:
    """Return the call with what the request has and the caller does not say."""
    profile = getattr(request.model, "profile", None) or {}
    name = getattr(request.model, "model_name", None) or getattr(request.model, "model", None)
    tools = [
        each if isinstance(each, dict) else convert_to_openai_tool(each) for each in request.tools
    ]
    return replace(
        call,
        system=call.system or request.system_prompt or "",
        tools=call.tools or tuple(json.dumps(each, default=str) for each in tools),
        model=call.model or (name if isinstance(name, str) else None),
        window_tokens=call.window_tokens or profile.get("max_input_tokens"),
    )


class LangchainCodec(ObjectCodec[BaseMessage]):
    """Messages of LangChain."""

    def message_of(self, item: BaseMessage, id_: str) -> Message:
        """Return the message of an object: its content, then its calls."""
        if isinstance(item, ToolMessage):
            content = tuple(
                each if isinstance(each, Text | Image | Opaque) else Opaque("part", 0)
                for each in map(_block, _parts(item))
            )
            is_error = item.status == "error"
            result = ToolResult(item.tool_call_id, content, item.name, is_error)
            return Message("tool", (result,), id_)
        blocks: list[Block] = [_block(each) for each in _parts(item)]
        usage = None
        if isinstance(item, AIMessage):
            blocks += [
                ToolCall(each["id"] or "", each["name"], json.dumps(each["args"], default=str))
                for each in item.tool_calls
            ]
            if (counts := item.usage_metadata) is not None:
                usage = ApiUsage(counts["input_tokens"], counts["output_tokens"])
        return Message(_role(item), tuple(blocks), id_, usage)

    def compaction_of(self, text: str) -> BaseMessage:
        """Return a message of the user, marked as LangChain marks its own summaries."""
        return HumanMessage(text, additional_kwargs={"lc_source": "summarization"})

    def changed(self, item: BaseMessage, blocks: dict[int, Block]) -> BaseMessage:
        """Return a copy with other texts, results and arguments."""
        if isinstance(item, ToolMessage):
            (result,) = blocks.values()
            return item.model_copy(update={"content": getattr(result, "text", "")})
        calls = [each for each in blocks.values() if isinstance(each, ToolCall)]
        arguments: dict[Any, Any] = {each.id: json.loads(each.arguments) for each in calls}
        content: list[Any] = []
        places = count()
        is_text = isinstance(item.content, str)
        for part in _parts(item) if is_text else item.content:
            if _repeats_call(part):
                content.append(_changed_call(part, arguments))
            elif (block := blocks.get(next(places))) is not None:
                content.append(_changed_part(part, block))
        update: dict[str, Any] = {"content": "".join(content) if is_text else content}
        if isinstance(item, AIMessage):
            update["tool_calls"] = [
                {**each, "args": arguments.get(each["id"], each["args"])}
                for each in item.tool_calls
            ]
        return item.model_copy(update=update)


def _parts(item: BaseMessage) -> list[Any]:
    """Return the parts of a content, but those that repeat a call."""
    if isinstance(item.content, str):
        return [item.content] if item.content else []
    return [each for each in item.content if not _repeats_call(each)]


def _repeats_call(part: Any) -> bool:  # noqa: ANN401 -- a text, or an object with any fields
    """Whether a part is a call that the message has among its `tool_calls` too."""
    return isinstance(part, dict) and part.get("type") in _CALLS


def _changed_call(part: Any, arguments: dict[Any, Any]) -> Any:  # noqa: ANN401 -- as above
    name, key = _CALLS[part["type"]]
    if part.get(key) not in arguments:
        return part
    given = arguments[part[key]]
    return {**part, name: json.dumps(given) if isinstance(part.get(name), str) else given}


def _block(part: str | dict[str, Any]) -> Block:
    if isinstance(part, str):
        return Text(part)
    kind = str(part.get("type"))
    size = len(json.dumps(part, default=str))
    if kind in {"text", "text-plain"} and isinstance(part.get("text"), str):
        return Text(part["text"])
    if kind in {"thinking", "reasoning", "redacted_thinking"}:
        return Thinking("", size)
    if kind in {"image", "image_url", "input_image"}:
        return Image(IMAGE_TOKENS, str(part.get("mime_type") or "image"))
    return Opaque(kind, size)


def _changed_part(part: Any, block: Block) -> Any:  # noqa: ANN401 -- as above
    if not isinstance(block, Text):
        return part
    return block.text if isinstance(part, str) else {**part, "text": block.text}


def _role(item: BaseMessage) -> Role:
    if isinstance(item, SystemMessage):
        return "system"
    return "assistant" if isinstance(item, AIMessage) else "user"
