"""Pydantic AI: publishes the answers of a run.

with Publisher(when_full="drop_oldest") as publisher:
    result = await agent.run("Where is my parcel?", message_history=history)
    publish_run(publisher, "ticket-4711", result.new_messages())
"""

from collections.abc import Iterable

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

from contextgauge.hooks.calls import CallUsage, PublishesMessages, SessionCalls


def publish_run(
    publisher: PublishesMessages, session_id: str, messages: Iterable[ModelMessage]
) -> None:
    """Publish the requests and answers of a run, in their order, as messages of one session."""
    calls = SessionCalls(publisher)
    for message in messages:
        moment = message.timestamp
        place = f"{session_id}-{moment.isoformat() if moment else ''}"
        if isinstance(message, ModelRequest):
            calls.asked(session_id, (f"{place}-{number}" for number in range(len(message.parts))))
        elif isinstance(message, ModelResponse):
            usage = message.usage
            counts = CallUsage(
                usage.input_tokens,
                read=usage.cache_read_tokens,
                written=usage.cache_write_tokens,
                output=usage.output_tokens,
            )
            call = message.provider_response_id or place
            calls.answered(session_id, call, message.model_name, counts)
