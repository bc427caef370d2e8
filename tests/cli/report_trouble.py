"""The report's answers about what went wrong."""

from contextgauge.records import (
    CompactBoundary,
    ContextExhausted,
    ContextLimits,
    ContextReading,
    ContextReset,
    ContextWarning,
)
from streams.core.session_status import THRESHOLDS
from tests.cli.report_facts import (
    MINUTE_MS,
    RecordFacts,
    Row,
    groups,
    in_bins,
    known,
    middle,
    minute_of,
    rounded,
)


class TroubleAnswers(RecordFacts):
    """Answers about what went wrong."""

    def attempts_by_outcome(self) -> list[Row]:
        attempts = self.attempts()
        return [
            (
                outcome or "no end",
                len(group),
                rounded(100 * len(group) / len(attempts), 1),
                len({each[1] for each in group}),
                *(known(each[2] for each in group), middle(each[2] for each in group)),
            )
            for outcome, group in groups(attempts, lambda each: each[0])
        ]

    def compaction_errors(self) -> list[Row]:
        failed = [each for each in self.attempts() if each[0] not in {None, "succeeded"}]
        return [
            (error or "unknown", outcome, len(group), len({each[1] for each in group}))
            for (error, outcome), group in groups(failed, lambda each: (each[3], each[0]))
        ]

    def open_attempts(self) -> list[Row]:
        return [
            (
                each.data.session_id,
                each.data.chain,
                minute_of(each),
                each.data.used_tokens,  # type: ignore[union-attr]
                each.data.context_used_percent,  # type: ignore[union-attr]
            )
            for outcome, _, _, _, each in self.attempts()
            if outcome is None
        ]

    def warning_lead(self) -> list[Row]:
        names, leads = ("0", "1-2", "3-9", "10-29", "30+"), []
        unwarned = 0
        for records in self.chains.values():
            lead: int | None = None
            for record in records:
                data = record.data
                if isinstance(data, ContextReset):
                    lead = None
                elif isinstance(data, ContextWarning):
                    is_shown = max(data.thresholds_crossed) >= THRESHOLDS.elevated_above_percent
                    lead = 0 if lead is None and is_shown else lead
                elif isinstance(data, ContextReading) and lead is not None:
                    lead += 1
                elif isinstance(data, CompactBoundary):
                    if data.trigger == "auto":
                        unwarned += lead is None
                        leads.append(lead)
                    lead = None
        counts = in_bins(leads, names, (1, 3, 10, 30))
        return [("no warning", unwarned), *((name, counts[name]) for name in names)]

    def thrashing(self) -> list[Row]:
        rows = []
        for (session, chain), records in self.chains.items():
            ends = [each for each in records if isinstance(each.data, CompactBoundary)]
            close = [
                (first, third)
                for first, third in zip(ends, ends[2:], strict=False)
                if first.time_ms is not None
                and third.time_ms is not None
                and third.time_ms - first.time_ms <= 10 * MINUTE_MS
            ]
            if close:
                begin = min((first for first, _ in close), key=lambda each: each.time_ms or 0)
                end = max((third for _, third in close), key=lambda each: each.time_ms or 0)
                rows.append((session, chain, len(close), minute_of(begin), minute_of(end)))
        return rows

    def unreachable_floors(self) -> list[Row]:
        rows = []
        for (session, chain), records in self.chains.items():
            own = [
                each
                for each in self.compactions
                if (each.boundary.session_id, each.boundary.chain) == (session, chain)
                and each.complete is not None
                and each.complete.tokens_after is not None
            ]
            reported = [
                each.data.auto_compact_threshold
                for each in records
                if isinstance(each.data, ContextLimits) and each.data.auto_compact_threshold
            ]
            sizes = [each.boundary.pre_tokens for each in own if each.boundary.trigger == "auto"]
            least = min((each for each in sizes if each is not None), default=None)
            threshold = reported[-1] if reported else least
            floors = [each.complete.tokens_after or 0 for each in own if each.complete]
            if own and threshold and min(floors) >= 0.75 * threshold:
                share = rounded(100 * min(floors) / threshold, 1)
                last = max(own, key=lambda each: each.record.sequence).boundary.model
                end = "yes" if min(floors) >= threshold else "no"
                end = end if reported else f"~{end}"
                rows.append((session, chain, last, len(own), min(floors), threshold, share, end))
        return rows

    def exhausted(self) -> list[Row]:
        return [
            (
                each.data.session_id,
                each.data.chain,
                minute_of(each),
                each.data.model,
                each.data.reason,
                each.data.tokens_over,
            )
            for each in self.own
            if isinstance(each.data, ContextExhausted)
        ]

    def wrong_windows(self) -> list[Row]:
        wrong = [
            data
            for _, data in self.readings
            if data.window_source in {"default", "exceeded", "unknown"}
        ]
        return [
            (
                *(model or "unknown", source, window),
                *(len(group), len({each.session_id for each in group})),
                max(each.used_tokens for each in group),
            )
            for (model, source, window), group in groups(
                wrong, lambda each: (each.model, each.window_source, each.window)
            )
        ]
