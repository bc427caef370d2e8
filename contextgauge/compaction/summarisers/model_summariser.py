"""A summariser made of a model: parts, deadlines, repetitions, checks, redaction, rest.

summarise ── resting after the provider's failures? ── yes ── SummaryError, with the seconds left
    │ no
redact ── divide into parts ── for each part, in order, with the summary so far:
    call, at most `call_s` ── failed? ── pause and repeat, at most `attempts`
    │                                    too large: all again in smaller parts
check the answer ── not usable: as a failed call
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import SystemRandom
from typing import Final

from contextgauge.clock import SystemClock
from contextgauge.compaction.messages import ModelRequest
from contextgauge.compaction.ports import SummaryAnswer, SummaryError, SummaryRequest
from contextgauge.compaction.summarisers.failures import (
    OutOfTokens,
    ProviderFailed,
    TooLarge,
    explain,
)
from contextgauge.compaction.summarisers.model import Answer, Model, SdkModel
from contextgauge.compaction.summarisers.prompts import (
    Prompt,
    divided,
    render,
    render_part,
    tokens_of,
)
from contextgauge.compaction.summarisers.redaction import Redaction
from contextgauge.compaction.summarisers.validation import usable_text
from contextgauge.errors import ConfigError
from contextgauge.ports import Clock

_MOST_SHRINKS: Final = 4
"""A request that is too large is halved so often: a sixteenth of it."""

_MOST_MORE: Final = 4
"""An answer that was not complete may take so many times its limit: reasoning counts too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """How long, how often. Seconds, but for counts.

    `call_s` bounds one call, `total_s` a whole summary. A failed call is repeated up to `attempts`
    in all, after pauses from `first_pause_s`, doubled each time, up to `longest_pause_s`. Where the
    provider had no answer for `failures` different conversations in a row, none is tried for
    `rest_s`, doubled with each further failure, up to `longest_rest_s`. What is wrong with one
    conversation's answer is no such failure, and its own failures only let its engine wait.
    """

    call_s: float = 90.0
    total_s: float = 240.0
    attempts: int = 3
    first_pause_s: float = 1.0
    longest_pause_s: float = 30.0
    failures: int = 3
    rest_s: float = 60.0
    longest_rest_s: float = 1_800.0

    def __post_init__(self) -> None:
        """Check the figures. Raises ConfigError."""
        for name in ("call_s", "total_s", "attempts", "failures"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} of a summariser must be above 0")


def pause_s(limits: CallLimits, attempt: int, wait_s: float | None, jitter: float) -> float:
    """Return the pause after a failed attempt, counted from 1. `jitter` is from 0 to 1.

    At least what the provider asks for; else half to all of the doubled pause.
    """
    pause = min(limits.first_pause_s * float(2 ** (attempt - 1)), limits.longest_pause_s)
    return max(pause * (0.5 + jitter / 2), wait_s or 0.0)


class ModelSummariser:
    """Asks one model. `redact`: secrets are taken out of the texts first.

    `input_limit_tokens` is the most that the model reads, for requests that do not say so; where
    neither does, parts are made once the model refuses the whole.

    A cache-aligned request is redacted too, and reads the cache only up to the first secret: turn
    `redact` off where the provider is the conversation's own, which has the texts anyway.
    """

    def __init__(
        self,
        model: Model,
        *,
        limits: CallLimits | None = None,
        redact: bool = True,
        input_limit_tokens: int | None = None,
        clock: Clock | None = None,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        self._model, self._redact = model, redact
        self._input_limit_tokens = input_limit_tokens
        self._jitter = jitter or SystemRandom().random
        self._limits, self._clock = limits or CallLimits(), clock or SystemClock()
        self._failing: set[int] = set()  # conversations, by their first requests
        self._further = 0
        self._rests_until_s = 0.0

    @property
    def name(self) -> str:
        """Provider and model."""
        return self._model.name

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        """Return a summary. Raises SummaryError."""
        self._check_rest()
        conversation = hash((request.task, request.context.system))
        redaction = Redaction()
        limit = request.input_limit_tokens or self._input_limit_tokens
        request = replace(request, input_limit_tokens=limit)
        if self._redact:
            request = redacted(request, redaction)
        deadline_s = self._clock.monotonic_s() + self._limits.total_s
        try:
            async with asyncio.timeout(self._limits.total_s):
                answer = await self._in_smaller_parts(request, deadline_s)
        except TimeoutError:
            error = ProviderFailed(f"no summary within {self._limits.total_s:g} s")
            raise self._failed(error, conversation) from None
        except ProviderFailed as error:
            raise self._failed(error, conversation) from None
        return replace(answer, redacted_secrets=redaction.count)

    def _check_rest(self) -> None:
        left_s = self._rests_until_s - self._clock.monotonic_s()
        if len(self._failing) >= self._limits.failures and left_s > 0:
            raise SummaryError(
                f"not asked: it failed for {len(self._failing)} conversations in a row; next "
                f"attempt in {left_s:.0f} s",
                retry_after_s=left_s,
            )

    def _failed(self, error: ProviderFailed, conversation: int) -> SummaryError:
        """Count a failure of the provider; return its error with the time of the next attempt."""
        if len(self._failing) < self._limits.failures:
            self._failing.add(conversation)
            self._further = 0
        else:
            self._further = min(self._further + 1, 16)
        if len(self._failing) < self._limits.failures:
            return error
        rest_s = min(self._limits.rest_s * 2**self._further, self._limits.longest_rest_s)
        rest_s = max(rest_s, error.retry_after_s or 0.0)
        self._rests_until_s = self._clock.monotonic_s() + rest_s
        return SummaryError(
            f"{error}; failed for {len(self._failing)} conversations in a row, next attempt in "
            f"{rest_s:.0f} s",
            retry_after_s=rest_s,
            final=error.final,
        )

    async def _in_smaller_parts(self, request: SummaryRequest, deadline_s: float) -> SummaryAnswer:
        """Summarise; where the model's window is smaller than known, again in smaller parts."""
        for _ in range(_MOST_SHRINKS):
            try:
                return await self._in_parts(request, deadline_s)
            except TooLarge:
                sent = tokens_of(render(request))
                limit = min(sent, request.input_limit_tokens or sent) // 2
                request = replace(request, input_limit_tokens=limit)
        return await self._in_parts(request, deadline_s)

    async def _in_parts(self, request: SummaryRequest, deadline_s: float) -> SummaryAnswer:
        request, parts = divided(request)
        summary = request.previous
        answers: list[Answer] = []
        for part in parts:
            prompt = render_part(request, part, summary)
            summary, answer = await self._attempts(prompt, deadline_s)
            answers.append(answer)
        return SummaryAnswer(
            summary or "",
            answers[-1].model or self._model.name,
            _sum(each.input_tokens for each in answers),
            _sum(each.cache_read_tokens for each in answers),
            _sum(each.output_tokens for each in answers),
        )

    async def _attempts(self, prompt: Prompt, deadline_s: float) -> tuple[str, Answer]:
        """Call until an answer is usable. Raises SummaryError."""
        limit_tokens = prompt.max_tokens
        attempt = 1
        while True:
            try:
                answer = await self._call(prompt)
                return usable_text(answer, prompt, limit_tokens), answer
            except SummaryError as error:
                if error.final or attempt == self._limits.attempts:
                    raise
                if isinstance(error, OutOfTokens):
                    more = min(prompt.max_tokens * 2, limit_tokens * _MOST_MORE)
                    prompt = replace(prompt, max_tokens=more)
                pause = pause_s(self._limits, attempt, error.retry_after_s, self._jitter())
                if self._clock.monotonic_s() + pause >= deadline_s:
                    raise type(error)(
                        f"{error}; no time left for another attempt",
                        retry_after_s=error.retry_after_s,
                    ) from None
            await self._clock.sleep(pause)
            attempt += 1

    async def _call(self, prompt: Prompt) -> Answer:
        """Call the model once, within its time. Raises SummaryError."""
        try:
            async with asyncio.timeout(self._limits.call_s):
                answer = await self._model.answer(prompt)
        except TimeoutError:
            raise ProviderFailed(f"no answer within {self._limits.call_s:g} s") from None
        except Exception as error:  # noqa: BLE001 -- no SDK's error may end the agent's loop
            key = self._model.key if isinstance(self._model, SdkModel) else "the key"
            raise explain(error, self._clock.now_ms(), key) from None
        if answer.stop == "cut":
            raise ProviderFailed("the answer broke off")
        self._failing.clear()  # usable or not, the provider answers
        return answer


def redacted(request: SummaryRequest, redaction: Redaction) -> SummaryRequest:
    """Return the request without secrets, in all that a prompt takes from it."""
    context = request.context
    return replace(
        request,
        messages=[redaction.message(each) for each in request.messages],
        context=replace(
            context,
            messages=[redaction.message(each) for each in context.messages],
            system=redaction.text(context.system),
        )
        if request.prompt in {"seed-001", "cache-aligned"}
        else ModelRequest(()),
        previous=None if request.previous is None else redaction.text(request.previous),
        task=redaction.text(request.task),
        instructions=redaction.text(request.instructions) if request.instructions else None,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [each for each in counts if each is not None]
    return sum(known) if known else None
