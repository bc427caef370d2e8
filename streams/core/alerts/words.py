"""An alert in words: one sentence for people, whatever it is sent as."""

from typing import Final, assert_never

from contextgauge.units import HOUR_MS, MINUTE_MS, SECOND_MS
from schemas.records import Json
from streams.core.alerts.alert import Alert
from streams.core.alerts.rules import (
    Exhaustion,
    Failed,
    LostRules,
    Pressure,
    Stalled,
    Thrashing,
)
from streams.core.error_words import error_words
from streams.core.session_status import whole_percents

_MOST_OF_A_NAME: Final = 80
"""Characters of an id in a sentence; the whole id comes with the alert."""
_MOST_OF_AN_ERROR: Final = 300


def sentence(alert: Alert) -> str:
    """Return what happened, in a sentence: which session, which chain, and the figures."""
    return f"{_who(alert)}: {_what(alert)}"


def _who(alert: Alert) -> str:
    chain = "" if alert.chain == "main" else f", subagent {_cut(alert.chain, _MOST_OF_A_NAME)}"
    model = "" if alert.model is None else f" ({_cut(alert.model, _MOST_OF_A_NAME)})"
    who = alert.who
    agent = "" if who.agent_id is None else f"agent {_cut(who.agent_id, _MOST_OF_A_NAME)}, "
    folder = "" if who.folder is None else f" in {_cut(who.folder, _MOST_OF_A_NAME)}"
    return f"{agent}session {_cut(alert.session_id, _MOST_OF_A_NAME)}{folder}{chain}{model}"


def _what(alert: Alert) -> str:
    facts, condition = alert.facts, alert.rule.condition
    match condition:
        case Pressure():
            used, _ = whole_percents(float(str(facts["used_percent"])))
            return (
                f"{used}% of the context window is used "
                f"({_grouped(facts['used_tokens'])} of {_grouped(facts['window'])} tokens; "
                f"alert at {condition.at_percent}%)"
            )
        case Failed():
            error = facts["error"]
            why = f": {_cut(error_words(str(error)), _MOST_OF_AN_ERROR)}" if error else ""
            how = {
                "failed": "a compaction failed",
                "blocked": "a compaction was blocked",
                "unknown": "a compaction ended, and how is not known",
            }[str(facts["outcome"])]
            return f"{how}{why}"
        case Stalled():
            return (
                f"a compaction has stalled: no end and no heartbeat for {_time(facts['silent_ms'])}"
            )
        case Thrashing():
            return (
                f"it thrashes: {facts['compactions']} compactions within "
                f"{_time(facts['within_ms'])}"
            )
        case Exhaustion():
            return (
                f"a turn stopped because the window was full ({error_words(str(facts['reason']))})"
            )
        case LostRules():
            lost, number = facts["pins_lost"], facts["number"]
            turns = "turn of the user is" if lost == 1 else "turns of the user are"
            return f"~{_grouped(lost)} {turns} not in the conversation after compaction {number}"
        case _:
            assert_never(condition)


def _grouped(number: object) -> str:
    return f"{number:,}" if isinstance(number, int) else "?"


def _time(value: Json) -> str:
    """Return milliseconds in one or two units: `45 s`, `2 min`, `1 h 5 min`."""
    time_ms = int(str(value))
    if time_ms < MINUTE_MS:
        return f"{time_ms // SECOND_MS} s"
    if time_ms < HOUR_MS:
        return f"{time_ms // MINUTE_MS} min"
    minutes = time_ms % HOUR_MS // MINUTE_MS
    return f"{time_ms // HOUR_MS} h" + (f" {minutes} min" if minutes else "")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
