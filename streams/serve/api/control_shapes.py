"""The shapes of the control plane's routes: answers for the OpenAPI document, and bodies."""

from pydantic import Field

from schemas.commands import ControlView
from streams.serve.api.shapes import BaseAnswer, BaseShape


class WorkerShape(BaseShape):
    """The control worker of a session's partition."""

    silent_ms: int | None = Field(
        description="The time since it last reported; null: none ever did."
    )
    is_working: bool = Field(
        description="Whether it reported lately: else requests wait until one runs."
    )


class ControlAnswer(BaseAnswer):
    """What the control plane knows of a session."""

    control: ControlView
    worker: WorkerShape


class AcceptedAnswer(BaseShape):
    """A request that is in the log of commands; what becomes of it is read at `follow`."""

    session_id: str | None = Field(description="Null for what is of no single session.")
    follow: str | None = Field(description="Where to follow it, as in the header Location.")
    command_id: str | None = Field(default=None, description="Of a compaction.")


class CompactBody(BaseShape, defer_build=False):
    """What a compaction heeds."""

    instructions: str | None = Field(
        default=None,
        min_length=1,
        max_length=4_000,
        description="What the summary should heed.",
    )
    urgent: bool = Field(
        default=False, description="Do not wait for a model: take the deterministic summary."
    )
    command_id: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._:-]{1,100}$",
        description="The request's own id: sent again with it, it is the same one.",
    )


class ThresholdsBody(BaseShape, defer_build=False):
    """When sessions are compacted. What is null is as the service's file says."""

    automatic: bool | None = Field(default=None, description="Whether at all, automatically.")
    compact_at: str | None = Field(
        default=None, max_length=30, description='From which size: "85%" of the window, or tokens.'
    )
    compact_to: str | None = Field(
        default=None, max_length=30, description="The size that a compaction aims at."
    )
