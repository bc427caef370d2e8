"""The shapes of the control plane's answers, for the OpenAPI document."""

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
