"""What publishing keeps on this machine."""

from pydantic import Field
from pydantic_settings import BaseSettings


class PublishingSettings(BaseSettings):
    """What publishing keeps on this machine."""

    state_folder: str | None = Field(
        default=None,
        min_length=1,
        description="Folder where `contextgauge publish` keeps how far each file was sent, and the "
        "secret of `--no-text`. Not set: `contextgauge` in `XDG_STATE_HOME`, else in "
        "`~/.local/state`.",
    )
