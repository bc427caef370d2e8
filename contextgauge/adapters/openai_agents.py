"""OpenAI's Agents SDK: a filter of what a run sends.

    run_config = RunConfig(call_model_input_filter=compaction_filter())

The session keeps all items; only requests are compacted. Not for runs whose conversation OpenAI's
server keeps (`conversation_id`, `previous_response_id`): those send only what is new.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from agents import FunctionTool
from agents.run import CallModelData, ModelInputData

from contextgauge.adapters.conversations import FollowedConversations
from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.engine.request_size import NO_CALL, ModelCall
from contextgauge.compaction.formats import read_messages, write_messages
from contextgauge.compaction.messages import Message

_FORMAT: Final = "openai-responses"


def compaction_filter(
    compactor: Compactor | None = None, *, call: ModelCall = NO_CALL
) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """Return a `call_model_input_filter` that compacts what would not fit.

    `compactor` has the profile and the summariser. The window is that of `call`, else of the
    agent's model by its name; instructions and tools are the agent's.
    """
    conversations = FollowedConversations[Any](ItemCodec, compactor)

    async def compacted(data: CallModelData[Any]) -> ModelInputData:
        instructions = data.model_data.instructions
        items = await conversations.request(data.model_data.input, _call_of(data, call))
        return ModelInputData(input=items, instructions=instructions)

    return compacted


def _call_of(data: CallModelData[Any], call: ModelCall) -> ModelCall:
    """Return the call with what the run has and the caller does not say."""
    model = data.agent.model
    name = model if isinstance(model, str) else getattr(model, "model", None)
    tools = (
        json.dumps(
            {
                "name": each.name,
                "description": each.description,
                "parameters": each.params_json_schema,
            },
            default=str,
        )
        for each in data.agent.tools
        if isinstance(each, FunctionTool)
    )
    return replace(
        call,
        system=call.system or data.model_data.instructions or "",
        tools=call.tools or tuple(tools),
        model=call.model or (name if isinstance(name, str) else None),
    )


class ItemCodec:
    """Items of the Responses API."""

    def read(self, items: Sequence[Any], after: Sequence[Message]) -> list[Message]:
        """Return the messages of what follows `after`."""
        return [replace(each, id="") for each in read_messages(items, _FORMAT, after=after)]

    def write(self, messages: Sequence[Message]) -> list[Any]:
        """Return messages as items; those that did not change as they were."""
        return list(write_messages(messages, _FORMAT))
