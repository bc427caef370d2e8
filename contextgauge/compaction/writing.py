"""Having a summary written: one call of the summariser, checked, or the deterministic floor."""

from collections.abc import Sequence
from dataclasses import dataclass

from contextgauge.compaction.counting import Counter
from contextgauge.compaction.events import Hooks
from contextgauge.compaction.ladder import Summarising, document, floor_document
from contextgauge.compaction.messages import ModelRequest
from contextgauge.compaction.ports import (
    Summariser,
    SummaryAnswer,
    SummaryError,
    SummaryRequest,
)
from contextgauge.compaction.profiles import Profile
from contextgauge.errors import ContextgaugeError


class NoSummaryError(ContextgaugeError):
    """No usable summary: the conversation is as it was. The message says why."""

    def __init__(self, reasons: Sequence[str], retry_after_s: float | None = None) -> None:
        super().__init__("; ".join(reasons))
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Written:
    """A summary: the whole text, the summariser's part of it, who wrote it and what that cost."""

    text: str
    prose: str
    summariser: str
    answer: SummaryAnswer | None
    failures: tuple[str, ...] = ()


def summary_request(
    work: Summarising, context: ModelRequest, profile: Profile, instructions: str | None
) -> SummaryRequest:
    """Return what the summariser is asked for."""
    return SummaryRequest(
        messages=work.selection.leaving,
        context=context,
        previous=work.previous,
        task=work.task,
        number=work.number,
        prompt=profile.prompt,
        instructions=instructions,
        carried=profile.carry,
        max_tokens=profile.summary_tokens,
        target_tokens=profile.target_tokens,
        temperature=profile.temperature,
    )


class Writer:
    """Has summaries written, and reviewed where a hook for that is set."""

    def __init__(self, summariser: Summariser, counter: Counter, hooks: Hooks) -> None:
        self._summariser = summariser
        self._counter = counter
        self._review = hooks.review

    async def write(
        self, request: SummaryRequest, work: Summarising, profile: Profile, *, floor: bool
    ) -> Written:
        """Return the text that takes the place of the leaving messages.

        With `floor` a failure is answered by the deterministic text, which always succeeds.
        Raises NoSummaryError.
        """
        try:
            answer = await self._summariser.summarise(request)
            text = document(work, answer.text.strip(), profile, self._counter)
            self._check_size(text, work)
            text = await self._reviewed(text)
        except SummaryError as error:
            if not (floor and profile.floor):
                raise NoSummaryError([str(error)], error.retry_after_s) from error
            return Written(floor_document(work, self._counter), "", "floor", None, (str(error),))
        return Written(text, answer.text.strip(), self._summariser.name, answer)

    async def _reviewed(self, text: str) -> str:
        reviewed = text if self._review is None else await self._review(text)
        if reviewed is None:
            raise SummaryError("the summary was refused in its review")
        return reviewed

    def _check_size(self, text: str, work: Summarising) -> None:
        tokens = self._counter.text(text)
        if tokens >= work.replaced_tokens:
            raise SummaryError(
                f"the summary has {tokens:,} tokens, what it replaces {work.replaced_tokens:,}"
            )
