"""Settings of the derivation: windows and thresholds."""

from itertools import pairwise

from pydantic import Field, field_validator

from contextgauge.settings.forms import SettingsPart
from streams.core.derivation.rules_config import DEFAULT_THRESHOLDS, DEFAULT_WINDOW
from streams.settings.objects import parsed_object


class DerivationSettings(SettingsPart):
    """Windows and warning thresholds of the derivation."""

    default_window: int = Field(
        default=DEFAULT_WINDOW,
        ge=1,
        description="Window assumed for an unknown model, in tokens, above 0.",
    )
    windows: dict[str, int] = Field(
        default_factory=dict,
        description="Windows by model, as a JSON object from model to tokens, such as "
        '{"my-model": 128000}. They take precedence over all other sources.',
    )
    warning_thresholds: tuple[int, ...] = Field(
        default=DEFAULT_THRESHOLDS,
        min_length=1,
        description="Percentages used at which a warning is raised: ascending whole numbers above "
        "0, such as 80,90.",
    )
    content_records: bool = Field(
        default=False,
        description="Derive a record for each call of a tool, each result and each turn of the "
        "user (tool_use, user_turn), of sizes and hashes only. Exports have them in any case.",
    )

    @field_validator("windows", mode="before")
    @classmethod
    def _parse_windows(cls, value: object) -> object:
        return parsed_object(value) if isinstance(value, str) else value

    @field_validator("windows")
    @classmethod
    def _check_windows(cls, value: dict[str, int]) -> dict[str, int]:
        for model, tokens in value.items():
            if not model or tokens < 1:
                raise ValueError(f"gives the model {model!r} a window of {tokens} tokens")
        return value

    @field_validator("warning_thresholds", mode="before")
    @classmethod
    def _parse_thresholds(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        parts = value.strip().removeprefix("[").removesuffix("]").split(",")
        return tuple(part.strip() for part in parts if part.strip())

    @field_validator("warning_thresholds")
    @classmethod
    def _check_thresholds(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if value[0] < 1 or any(low >= high for low, high in pairwise(value)):
            raise ValueError(f"does not ascend from above 0: {', '.join(map(str, value))}")
        return value
