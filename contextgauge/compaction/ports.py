"""What the engine asks of the outside: a summariser, and a place for the archive."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from contextgauge.compaction.messages import Message, ModelRequest

PromptName: TypeAlias = Literal["structured", "seed-001", "seed-002", "cache-aligned"]
"""`structured` is the default: the sections of both seeds, and all quoted texts fenced as data."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What is to be summarised, and how.

    `messages` are those that leave the context; `previous` is the prose of the last compaction, to
    be merged and not repeated. `task` is the user's first request. `number` counts from 1.
    `context` is all that the conversation's next call would send: a cache-aligned prompt repeats it
    exactly and appends its instruction, so the provider's cache is read. `carried`: code carries
    what the user wrote, so the summary need not repeat it. `max_tokens` bounds the answer,
    `target_tokens` is asked for in the prompt. `temperature` is left out where it is None.
    `input_limit_tokens` is the most that the summariser may be sent: more is sent in parts.
    """

    messages: Sequence[Message]
    context: ModelRequest
    previous: str | None
    task: str
    number: int
    prompt: PromptName = "structured"
    instructions: str | None = None
    carried: bool = True
    max_tokens: int = 4_096
    target_tokens: int | None = None
    temperature: float | None = None
    input_limit_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class SummaryAnswer:
    """A summary as the model wrote it. Token counts are of all calls; None: not reported.

    `redacted_secrets` counts those taken out before the model saw the texts, `failures` says why
    summarisers that were asked before this one have none. `is_extract`: no model wrote it, and it
    may be empty, as code carries the conversation.
    """

    text: str
    model: str | None = None
    input_tokens: int | None = None
    cache_read_tokens: int | None = None
    output_tokens: int | None = None
    redacted_secrets: int = 0
    failures: tuple[str, ...] = ()
    is_extract: bool = False


class SummaryError(Exception):
    """No usable summary: the message says why, without the conversation's words.

    `retry_after_s` is what the provider asked for; `final` marks errors that a repetition cannot
    mend, such as a wrong key.
    """

    def __init__(
        self, reason: str, *, retry_after_s: float | None = None, final: bool = False
    ) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s
        self.final = final


class Summariser(Protocol):
    """Writes the summary of a conversation's older part."""

    @property
    def name(self) -> str:
        """What a receipt calls it: `extractive`, or the provider and model."""
        ...

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        """Return a summary. Raises SummaryError."""
        ...
