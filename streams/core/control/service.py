"""What the service's file asks for: limits, who summarises, and which sessions are compacted."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from contextgauge.units import MINUTE_MS

SummariserProvider: TypeAlias = Literal[
    "extractive", "anthropic", "openai", "openai-responses", "gemini", "compatible"
]

SERVICE: Final = "service"
"""The driver that is this service itself."""

DEFAULT_MAX_AGE_MS: Final = 10 * MINUTE_MS
DEFAULT_DEADLINE_MS: Final = 15 * MINUTE_MS
DEFAULT_CALLS: Final = 4
"""Calls of the summariser at a time: each takes a minute or so, and most of that is waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummariserPlan:
    """Who writes summaries.

    `key_env` names the environment variable with the key; None: that of the provider's SDK.
    `redact`: secrets are replaced before anything is sent.
    """

    provider: SummariserProvider = "extractive"
    model: str | None = None
    url: str | None = None
    key_env: str | None = None
    redact: bool = True

    @property
    def name(self) -> str:
        """The summariser's name, as the command line has it: `anthropic:MODEL`."""
        return self.provider if self.model is None else f"{self.provider}:{self.model}"
