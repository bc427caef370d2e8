"""Several summarisers in order: the next is asked where one fails."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from contextgauge.compaction.ports import (
    Summariser,
    SummaryAnswer,
    SummaryError,
    SummaryRequest,
)
from contextgauge.errors import ConfigError


class SummariserChain:
    """Asks each until one has a summary, within `total_s` seconds for all."""

    def __init__(self, summarisers: Sequence[Summariser], *, total_s: float = 300.0) -> None:
        """Check that there is one. Raises ConfigError."""
        if not summarisers:
            raise ConfigError("a chain needs at least one summariser")
        self._summarisers, self._total_s = summarisers, total_s

    @property
    def name(self) -> str:
        """The names in order."""
        return ", else ".join(each.name for each in self._summarisers)

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        """Return the first summary, with why those before it failed. Raises SummaryError."""
        errors: list[SummaryError] = []
        reasons: list[str] = []
        try:
            async with asyncio.timeout(self._total_s):
                for summariser in self._summarisers:
                    try:
                        answer = await summariser.summarise(request)
                    except SummaryError as error:
                        errors.append(error)
                        reasons.append(f"{summariser.name}: {error}")
                    else:
                        model = answer.model or summariser.name
                        failures = (*reasons, *answer.failures)
                        return replace(answer, model=model, failures=failures)
        except TimeoutError:
            reasons.append(f"no summary within {self._total_s:g} s in all")
        waits = [each.retry_after_s for each in errors if each.retry_after_s is not None]
        raise SummaryError(
            "; ".join(reasons),
            retry_after_s=min(waits, default=None),
            final=len(errors) == len(reasons) and all(each.final for each in errors),
        )
