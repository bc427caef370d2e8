"""Having a summary written: one call of the summariser, checked, or the deterministic floor."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

from contextgauge.compaction.carried.compaction_text import read_text
from contextgauge.compaction.counting import Counter
from contextgauge.compaction.engine.next_compaction import Written
from contextgauge.compaction.engine.preparation import Summarising, document, floor_document
from contextgauge.compaction.engine.summary_checks import is_empty, undemoted
from contextgauge.compaction.events import Hooks, answer_of
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
    """No usable summary: the conversation is as it was. The message says why.

    `final`: a repetition cannot mend it, such as a wrong key.
    """

    def __init__(
        self,
        reasons: Sequence[str],
        retry_after_s: float | None = None,
        *,
        final: bool = False,
    ) -> None:
        super().__init__("; ".join(reasons))
        self.retry_after_s = retry_after_s
        self.final = final


def summary_request(
    work: Summarising, context: ModelRequest, profile: Profile, instructions: str | None
) -> SummaryRequest:
    """Return what the summariser is asked for."""
    return SummaryRequest(
        messages=work.sources,
        context=context,
        previous=None if work.previous is None else undemoted(work.previous),
        task=work.task,
        number=work.number,
        prompt=profile.prompt,
        instructions=instructions,
        carried=profile.carry,
        max_tokens=profile.summary_tokens,
        target_tokens=profile.target_tokens,
        temperature=profile.temperature,
    )


class DeclinedError(NoSummaryError):
    """The `confirm` hook declined the compaction."""

    def __init__(self) -> None:
        super().__init__(["declined"])


class Writer:
    """Has summaries written, and reviewed where a hook for that is set.

    `deadline_s` bounds the summariser's whole work, in seconds.
    """

    def __init__(
        self, summariser: Summariser, counter: Counter, hooks: Hooks, deadline_s: float
    ) -> None:
        self._summariser = summariser
        self._counter = counter
        self._review = hooks.review
        self._deadline_s = deadline_s

    async def write(
        self, request: SummaryRequest, work: Summarising, profile: Profile, *, floor: bool
    ) -> Written:
        """Return the text that takes the place of the leaving messages.

        With `floor` a failure is answered by the deterministic text, which always succeeds.
        Raises NoSummaryError.
        """
        floor_text = cache(partial(floor_document, work, self._counter))
        try:
            answer = await self._answer(request)
            prose = answer.text.strip()
            text = document(work, prose, profile, self._counter, floor_text)
            text = self._usable(text, work)
            written = Written(text, prose, work.carried, self._summariser.name, answer)
        except SummaryError as error:
            if not (floor and profile.floor):
                raise NoSummaryError(
                    [str(error)], error.retry_after_s, final=error.final
                ) from error
            written = Written(
                floor_text(), work.previous or "", work.carried, "floor", None, (str(error),)
            )
        return await self._reviewed(written, work)

    def _usable(self, text: str | None, work: Summarising) -> str:
        """Return a text that can be used. Raises SummaryError."""
        if text is None:
            raise SummaryError("the summary left no room for what must stay")
        self._check_size(text, work)
        return text

    async def _answer(self, request: SummaryRequest) -> SummaryAnswer:
        """Return the summariser's answer. Raises SummaryError, whatever it raises itself."""
        try:
            async with asyncio.timeout(self._deadline_s) as deadline:
                answer: object = await self._summariser.summarise(request)
        except SummaryError:
            raise
        except Exception as error:
            if isinstance(error, TimeoutError) and deadline.expired():
                raise SummaryError(f"no summary within {self._deadline_s:.0f} s") from error
            name = self._summariser.name
            raise SummaryError(f"the summariser {name} raised {type(error).__name__}") from error
        if not isinstance(answer, SummaryAnswer) or not isinstance(answer.text, str):
            name, given = self._summariser.name, type(answer).__name__
            raise SummaryError(
                f"the summariser {name} returned {given}, not SummaryAnswer with text"
            )
        if not answer.is_extract and is_empty(answer.text):
            raise SummaryError("the summary is empty")
        return answer

    async def _reviewed(self, written: Written, work: Summarising) -> Written:
        """Return what the review made of a summary. Raises NoSummaryError where it is refused.

        What a reviewer took out does not come back: pins that are gone are carried no further, and
        the next summary begins with the reviewed text.
        """
        if self._review is None:
            return written
        text = await answer_of("review", self._review(written.text))
        if text is None or not text.strip():
            raise NoSummaryError(["the summary was refused in its review"])
        if text == written.text:
            return written
        try:
            self._check_size(text, work)
        except SummaryError as error:
            raise NoSummaryError([f"after its review {error}"]) from error
        shown = read_text(written.text)
        read = read_text(text)
        prose = text if read is None else read.prose
        if shown is None:
            return replace(written, text=text, prose=prose)
        entries = tuple(
            each
            for each in work.carried.entries
            if each.text in text or not any(each.text.startswith(one.text) for one in shown.entries)
        )
        return replace(
            written, text=text, prose=prose, carried=replace(work.carried, entries=entries)
        )

    def _check_size(self, text: str, work: Summarising) -> None:
        tokens = self._counter.text(text) + work.overhead_tokens
        if tokens >= work.replaced_tokens:
            raise SummaryError(
                f"the summary has {tokens:,} tokens, what it replaces {work.replaced_tokens:,}"
            )
