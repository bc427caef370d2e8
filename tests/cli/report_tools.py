"""The report's answers about calls of tools."""

from collections import defaultdict

from contextgauge.records import ToolUse
from tests.cli.report_facts import RecordFacts, Row, groups, middle, rounded, total

Call = tuple[ToolUse, ToolUse | None, float | None]
"""A call, its result, and the seconds between the two."""


class ToolAnswers(RecordFacts):
    """Answers about tools."""

    def _calls(self) -> list[Call]:
        uses = [(each, each.data) for each in self.all if isinstance(each.data, ToolUse)]
        uses.sort(key=lambda each: each[0].sequence)
        results = {
            (data.session_id, data.use_id): (record, data)
            for record, data in reversed(uses)
            if data.part == "result" and data.use_id is not None
        }
        calls: list[Call] = []
        for record, data in uses:
            if data.part == "call" and not data.inherited:
                end, result = results.get((data.session_id, data.use_id), (None, None))
                is_timed = end is not None and None not in {record.time_ms, end.time_ms}
                wait = ((end.time_ms or 0) - (record.time_ms or 0)) / 1_000 if is_timed else None  # type: ignore[union-attr]
                calls.append((data, result, wait))
        return calls

    def tool_tokens(self) -> list[Row]:
        return [
            (
                tool or "unknown",
                len(group),
                sum(call.tokens_estimated for call, _, _ in group),
                total(result and result.tokens_estimated for _, result, _ in group),
                middle((wait for _, _, wait in group), 1),
                sum(result is not None and result.is_error is True for _, result, _ in group),
            )
            for tool, group in groups(self._calls(), lambda each: each[0].tool)
        ]

    def repeated_calls(self) -> list[Row]:
        seen: set[tuple[object, ...]] = set()
        repeats: dict[str, list[ToolUse | None]] = defaultdict(list)
        calls: dict[str, int] = defaultdict(int)
        for call, result, _ in self._calls():
            if call.input_hash is None or call.changes_files:
                continue
            tool = call.tool or "unknown"
            key = call.session_id, call.chain, call.tool, call.input_hash
            calls[tool] += 1
            if key in seen:
                repeats[tool].append(result)
            seen.add(key)
        return [
            (
                *(tool, calls[tool], len(again), rounded(100 * len(again) / calls[tool], 1)),
                total(result and result.tokens_estimated for result in again),
            )
            for tool, again in repeats.items()
        ]
