"""Local state of `contextgauge publish`."""

from pydantic import Field
from pydantic_settings import BaseSettings


class PublishingSettings(BaseSettings):
    """Local state of `contextgauge publish`."""

    state_folder: str | None = Field(
        default=None,
        min_length=1,
        description="Folder of the checkpoints of `contextgauge publish` and the secret of "
        "`--no-text`. If unset: `contextgauge` in `XDG_STATE_HOME`, else in `~/.local/state`.",
    )
