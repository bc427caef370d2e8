"""Pydantic AI: a capability that compacts requests.

    agent = Agent(model, capabilities=[CompactRequests()])

The run's history keeps all messages.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from pydantic_ai import messages as parts
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset

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


@dataclass
class CompactRequests(AbstractCapability[Any]):
    """Sends a compacted conversation where the whole one would not fit.

    `compactor` has the profile and the summariser. The window is that of `call`, else of the
    model's profile, else of its name; instructions and tools are the request's. With `recall` the
    model gets a tool of this name for what is not sent any more.
    """

    compactor: Compactor | None = None
    call: ModelCall = NO_CALL
    recall: bool = False
    _conversations: FollowedConversations[parts.ModelMessage] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Begin without conversations."""
        self._conversations = FollowedConversations(
            PydanticCodec, self.compactor, recall=self.recall
        )

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """Return the tool `recall` where it is wanted."""
        if not self.recall:
            return None

        def recalled(
            ctx: RunContext[Any],
            id: str | None = None,  # noqa: A002 -- the tool's
            file: str | None = None,
            text: str | None = None,
            offset: int = 0,
        ) -> str:
            arguments = {"id": id, "file": file, "text": text, "offset": offset}
            return self._conversations.recalled(ctx.messages, arguments)

        tools = FunctionToolset[Any]()
        tools.add_function(recalled, name=RECALL_NAME, description=RECALL_DESCRIPTION)
        return tools

    async def before_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 -- of the protocol
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Send what fits."""
        call = _call_of(request_context, self.call)
        messages = await self._conversations.request(request_context.messages, call)
        return replace(request_context, messages=messages)


def _call_of(request: ModelRequestContext, call: ModelCall) -> ModelCall:
    """Return the call with what the request has and the caller does not say."""
    given = request.model_request_parameters
    tools = (
        json.dumps(
            {
                "name": each.name,
                "description": each.description,
                "parameters": each.parameters_json_schema,
            },
            default=str,
        )
        for each in (*given.function_tools, *given.output_tools)
    )
    system = "\n".join(each.content for each in given.instruction_parts or ())
    return replace(
        call,
        system=call.system or system,
        tools=call.tools or tuple(tools),
        model=call.model or request.model.model_name,
        window_tokens=call.window_tokens or request.model.profile.get("context_window"),
    )


class PydanticCodec(ObjectCodec[parts.ModelMessage]):
    """Messages of Pydantic AI. Requests are read in pieces: a system prompt stays, others leave."""

    def read(self, items: Sequence[parts.ModelMessage], after: Sequence[Message]) -> list[Message]:
        """Return a message for each piece."""
        return super().read([piece for item in items for piece in _pieces(item)], after)

    def message_of(self, item: parts.ModelMessage, id_: str) -> Message:
        """Return the message of a response, or of a piece of a request."""
        if isinstance(item, parts.ModelResponse):
            used = item.usage
            usage = ApiUsage(used.input_tokens, used.output_tokens) if used.input_tokens else None
            return Message("assistant", tuple(map(_block, item.parts)), id_, usage)
        if isinstance(first := item.parts[0], parts.UserPromptPart):
            return Message("user", tuple(map(_content, _contents(first))), id_)
        return Message(_role(first), tuple(map(_block, item.parts)), id_)

    def compaction_of(self, text: str) -> parts.ModelMessage:
        """Return a prompt."""
        return parts.ModelRequest([parts.UserPromptPart(text)])

    def changed(self, item: parts.ModelMessage, blocks: dict[int, Block]) -> parts.ModelMessage:
        """Return a copy with other texts, results and arguments."""
        copied: Any = item  # of either class
        first = item.parts[0]
        changed: list[Any] = []
        if isinstance(first, parts.UserPromptPart):
            contents = [
                block.text if isinstance(block, Text) else each
                for place, each in enumerate(_contents(first))
                if (block := blocks.get(place)) is not None
            ]
            is_text = isinstance(first.content, str) and contents
            changed = [replace(first, content=contents[0] if is_text else contents)]  # type: ignore[arg-type]
        else:
            pairs = ((part, blocks.get(place)) for place, part in enumerate(item.parts))
            changed = [_changed_part(part, block) for part, block in pairs if block is not None]
        copy: parts.ModelMessage = replace(copied, parts=changed)
        return copy


def _pieces(item: parts.ModelMessage) -> list[parts.ModelMessage]:
    """Return a request's prompts one by one, and what else is in it by kind."""
    if isinstance(item, parts.ModelResponse):
        return [item] if item.parts else []
    kinds = [
        f"{_role(each)}{place if isinstance(each, parts.UserPromptPart) else ''}"
        for place, each in enumerate(item.parts)
    ]
    if len(set(kinds)) == 1:
        return [item]
    groups = groupby(zip(kinds, item.parts, strict=True), key=lambda pair: pair[0])
    return [replace(item, parts=[part for _, part in group]) for _, group in groups]


def _role(part: Any) -> Role:  # noqa: ANN401 -- one of some twenty classes
    if isinstance(part, parts.UserPromptPart):
        return "user"
    if isinstance(part, parts.BaseToolReturnPart | parts.RetryPromptPart | parts.RetryFeedbackPart):
        return "tool"
    return "system"  # what instructs the model stays


def _block(part: Any) -> Block:  # noqa: ANN401 -- as above
    if isinstance(part, parts.TextPart | parts.SystemPromptPart):
        return Text(part.content)
    if isinstance(part, parts.ThinkingPart):
        return Thinking(part.content, len(part.content) + len(part.signature or ""))
    if isinstance(part, parts.ToolCallPart):
        return ToolCall(part.tool_call_id, part.tool_name, part.args_as_json_str())
    if isinstance(part, parts.ToolReturnPart):
        text = Text(part.model_response_str())
        return ToolResult(part.tool_call_id, (text,), part.tool_name, part.outcome != "success")
    if isinstance(part, parts.RetryPromptPart) and part.tool_name is not None:
        text = Text(part.model_response())
        return ToolResult(part.tool_call_id, (text,), part.tool_name, is_error=True)
    return Opaque(part.part_kind, len(str(getattr(part, "content", ""))))


def _changed_part(part: Any, block: Block) -> Any:  # noqa: ANN401 -- as above
    if isinstance(part, parts.ToolReturnPart) and isinstance(block, ToolResult):
        text = block.text
        return part if text == part.model_response_str() else replace(part, content=text)
    if isinstance(part, parts.ToolCallPart) and isinstance(block, ToolCall):
        return replace(part, args=block.arguments)
    if isinstance(part, parts.TextPart) and isinstance(block, Text):
        return replace(part, content=block.text)
    return part


def _contents(part: parts.UserPromptPart) -> Sequence[parts.UserContent]:
    return [part.content] if isinstance(part.content, str) else part.content


def _content(value: parts.UserContent) -> Block:
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, parts.TextContent):
        return Opaque("text", len(value.content))
    if isinstance(value, parts.CachePoint):
        return Opaque(value.kind, 0)
    return Image(IMAGE_TOKENS, getattr(value, "media_type", None))
