"""The bodies of requests to the control plane."""

from pydantic import BaseModel, ConfigDict, Field


class _Body(BaseModel):
    """An object that a request sends. Not a shape of answers: these take 15 ms to import."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class CompactBody(_Body):
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


class ThresholdsBody(_Body):
    """When sessions are compacted. What is null is as the service's file says."""

    automatic: bool | None = Field(default=None, description="Whether at all, automatically.")
    compact_at: str | None = Field(
        default=None, max_length=30, description='From which size: "85%" of the window, or tokens.'
    )
    compact_to: str | None = Field(
        default=None, max_length=30, description="The size that a compaction aims at."
    )
