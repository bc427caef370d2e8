"""The shapes of the events that a chat front end polls, for the OpenAPI document."""

from typing import Annotated, Literal

from pydantic import Field

from streams.serve.api.shapes import BaseShape


class _ChatEvent(BaseShape):
    id: str
    timestamp: int = Field(description="Milliseconds since 1970.")
    taskId: str | None


class ContextWarningData(BaseShape):
    """A threshold was crossed; percentages are rounded down and add up to 100."""

    contextUsedPercent: int
    contextRemainingPercent: int
    inputTokens: int
    cacheTokens: int
    contextWindow: int


class ContextWarningEvent(_ChatEvent):
    """A threshold was crossed."""

    type: Literal["context_warning"]
    data: ContextWarningData


class CompactionStartData(BaseShape):
    """A compaction began."""

    triggerReason: Literal["threshold_exceeded", "manual"]
    contextUsedPercent: int | None = Field(description="Null where no size was known yet.")
    outcome: Literal["succeeded", "failed", "blocked", "unknown"] | None = Field(
        description="How the attempt ended; null: it has not ended yet."
    )


class CompactionStartEvent(_ChatEvent):
    """A compaction began."""

    type: Literal["compaction_start"]
    data: CompactionStartData


class CompactionCompleteData(BaseShape):
    """A compaction ended; the summary is empty where none was seen."""

    summary: str
    tokensBefore: int | None = Field(description="Null where no size was known.")
    tokensAfter: int | None = Field(
        description="Null until the next response measures it, and where there was no compaction."
    )
    tokensSaved: int | None
    outcome: Literal["succeeded", "failed", "blocked", "unknown"]
    error: str | None = Field(description="Why it failed, in the runtime's words.")
    attemptId: str | None = Field(description="The id of the start, where one was seen.")


class CompactionCompleteEvent(_ChatEvent):
    """A compaction ended; one that succeeded gets its sizes once they are measured."""

    type: Literal["compaction_complete"]
    data: CompactionCompleteData


ChatEvent = Annotated[
    ContextWarningEvent | CompactionStartEvent | CompactionCompleteEvent,
    Field(discriminator="type"),
]
