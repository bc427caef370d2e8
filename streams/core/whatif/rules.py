"""How many records of each kind the sessions have: as recorded, derived again, by setting."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from schemas.records import DATA_CLASS_BY_KIND
from streams.core.whatif.comparison import ChainResult, SettingResult

_RULES: Final[Mapping[str, str]] = {
    "session_info": "R32",
    "context_limits": "R12",
    "context_reading": "R6",
    "compaction_start": "R14",
    "compaction_progress": "R15",
    "compact_boundary": "R19",
    "compaction_timing": "R29",
    "compaction_summary": "R23",
    "pins_checked": "R31",
    "compaction_complete": "R22",
    "compaction_failed": "R17",
    "context_edit": "R26",
    "context_reset": "R27",
}
"""The rule that each kind of record comes from; those that are left out have none of their own."""


class RuleRow(NamedTuple):
    """A kind of record: its rule, and its number as recorded and by setting.

    `derived_again` is the number with other windows and thresholds; None where neither is changed.
    `settings` has the kinds that a setting changes: in the order of the settings, else empty.
    """

    kind: str
    rule: str | None
    recorded: int
    derived_again: int | None
    settings: Sequence[int]


def rule_rows(
    chains: Sequence[ChainResult], kinds: Mapping[str, int], again: Mapping[str, int] | None
) -> list[RuleRow]:
    """Return the kinds that there are, in the order of the records' classes.

    `kinds` are the numbers as recorded, `again` those with other windows and thresholds.
    """
    by_setting = [list(each) for each in zip(*(own.results for own in chains), strict=True)]
    counted = {
        "context_warning": [_warnings(each) for each in by_setting],
        "compact_boundary": [sum(len(own.compactions) for own in each) for each in by_setting],
        "compaction_complete": [_measured(each) for each in by_setting],
    }
    return [
        RuleRow(
            kind,
            _RULES.get(kind),
            kinds.get(kind, 0),
            None if again is None else again.get(kind, 0),
            counted.get(kind, ()),
        )
        for kind in DATA_CLASS_BY_KIND
        if kinds.get(kind) or (again or {}).get(kind) or any(counted.get(kind, ()))
    ]


def _warnings(results: Sequence[SettingResult]) -> int:
    return sum(totals.warnings for each in results for totals in each.totals.values())


def _measured(results: Sequence[SettingResult]) -> int:
    return sum(compaction.after is not None for each in results for compaction in each.compactions)
