"""What `contextgauge control` alerts on."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings


class AlertSettings(BaseSettings):
    """What `contextgauge control` alerts on."""

    alerts_file: Path | None = Field(
        default=None,
        description="TOML file with the rules and targets of `contextgauge control`, unless "
        "`--rules` is given; see docs/ALERTS.md.",
    )
