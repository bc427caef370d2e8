"""Settings of those who read views: the API, the page, and commands that show sessions."""

from pathlib import Path

from pydantic import Field, field_validator

from contextgauge.settings.forms import SettingsPart
from streams.core.until_compaction import Threshold, parse_threshold
from streams.settings.objects import parsed_object


class ReadingSettings(SettingsPart):
    """Settings of those who read views."""

    compaction_thresholds: dict[str, Threshold] = Field(
        default_factory=dict,
        description="Sizes at which automatic compaction is expected where no runtime reports it, "
        "as a JSON object from model, or the beginning of its name, to tokens or to a percentage "
        'of the window, such as {"my-model": 100000, "claude-sonnet": "83.5%"}. By default, they '
        "are learned from compactions.",
    )

    prices_file: Path | None = Field(
        default=None,
        description="File with prices of models, which come before the bundled ones.",
    )

    @field_validator("compaction_thresholds", mode="before")
    @classmethod
    def _parse(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        thresholds = {}
        for model, point in parsed_object(value).items():
            threshold = parse_threshold(point)
            if threshold is None or not model:
                raise ValueError(
                    f"gives the model {model!r} {point!r}: write tokens above 0 or a percentage "
                    'up to 100, such as 100000 or "83.5%"'
                )
            thresholds[model] = threshold
        return thresholds
