"""The report's answers about calls of tools."""

from collections import defaultdict
from typing import NamedTuple

from contextgauge.records import ToolUse
from tests.cli.report_facts import RecordFacts, Row, groups, middle, rounded, total


class CallFacts(NamedTuple):
    """A call, what its result has, and the seconds between the two."""

    call: ToolUse
    tokens: int | None
    is_error: bool
    wait_s: float | None


class ToolAnswers(RecordFacts):
    """Answers about tools."""

    def _calls(self) -> list[CallFacts]:
        uses = [(each, each.data) for each in self.all if isinstance(each.data, ToolUse)]
        uses.sort(key=lambda each: each[0].sequence)
        results: dict[tuple[str, str | None], tuple[int | None, ToolUse]] = {
            (data.session_id, data.use_id): (record.time_ms, data)
            for record, data in reversed(uses)
            if data.part == "result" and data.use_id is not None
        }
        calls = []
        for record, call in uses:
            if call.part == "result" or call.inherited:
                continue
            if (call.session_id, call.use_id) not in results:
                calls.append(CallFacts(call, None, is_error=False, wait_s=None))
                continue
            end_ms, result = results[call.session_id, call.use_id]
            is_timed = end_ms is not None and record.time_ms is not None
            wait_s = ((end_ms or 0) - (record.time_ms or 0)) / 1_000 if is_timed else None
            is_error = result.is_error is True
            calls.append(CallFacts(call, result.tokens_estimated, is_error, wait_s))
        return calls

    def tool_tokens(self) -> list[Row]:
        return [
            (
                tool or "unknown",
                len(group),
                sum(each.call.tokens_estimated for each in group),
                total(each.tokens for each in group),
                middle((each.wait_s for each in group), 1),
                sum(each.is_error for each in group),
            )
            for tool, group in groups(self._calls(), lambda each: each.call.tool)
        ]

    def repeated_calls(self) -> list[Row]:
        seen: set[tuple[object, ...]] = set()
        repeats: dict[str, list[int | None]] = defaultdict(list)
        calls: dict[str, int] = defaultdict(int)
        for each in self._calls():
            call = each.call
            if call.input_hash is None or call.changes_files:
                continue
            tool = call.tool or "unknown"
            key = call.session_id, call.chain, call.tool, call.input_hash
            calls[tool] += 1
            if key in seen:
                repeats[tool].append(each.tokens)
            seen.add(key)
        return [
            (
                *(tool, calls[tool], len(again), rounded(100 * len(again) / calls[tool], 1)),
                total(again),
            )
            for tool, again in repeats.items()
        ]
