"""How dead letters look: no message content in a list, no control characters."""

import io
import json
import re

import pytest
from rich.console import Console, RenderableType

from schemas.messages import DeadReason
from streams import codec
from streams.cli.dead import report as dead_report
from streams.cli.dead.options import parse_address
from streams.cli.screen.figures import size
from streams.flow.dead_letters.letters import Letter, Origin, WholeValue, letter_of
from streams.flow.dead_letters.reading import Selection, Span
from streams.flow.dead_letters.redrive import RedriveResult, SkippedLetters
from streams.ports import Headers, LogRecord
from tests.flow.dead_kit import died

DIED_MS = 1_777_645_800_250
WORDS = "words-of-a-message"
LINE = f'{{"session_id":"mine","text":"{WORDS}\x9b2J"}}'.encode()


def letter(
    *,
    key: bytes | None = b"a-key-of-thirty-six-characters-as-ids",
    value: bytes = LINE,
    headers: Headers = (),
    reason: DeadReason = "misrouted",
) -> Letter:
    record = died(2, reason=reason, key=key, value=value, headers=headers, sent_ms=DIED_MS - 5)
    return letter_of(2, LogRecord(17, DIED_MS, record.key, record.value, record.headers))


def drawn(what: RenderableType, width: int) -> str:
    target = io.StringIO()
    Console(file=target, width=width).print(what)
    return target.getvalue()


@pytest.mark.parametrize(
    ("width", "parts"),
    [
        (140, ["2026-05-01 14:30:00", "a-key-of-thirty-six-cha…", "why"]),
        (80, ["2026-05-01 14:30", "a-key-o…", "why"]),
        (60, ["2026-05-01 14:30", "a-key-o…"]),
    ],
)
def test_a_list_fits_the_screen_and_has_no_message_content(width: int, parts: list[str]) -> None:
    listed = dead_report.brief(letter()._replace(detail="why " * 12))
    table = drawn(dead_report.letters_table([listed] * 2, width), width)
    lines = table.splitlines()
    assert len(lines) == 3
    assert all(part in lines[1] for part in ["2:17", "misrouted", f"{len(LINE)} B", *parts])
    assert ("Detail" in lines[0]) == ("why" in parts)
    assert WORDS not in table


def test_short_details_leave_room_for_the_rest() -> None:
    table = drawn(dead_report.letters_table([dead_report.brief(letter())], 80), 80)
    assert all(part in table for part in ("2026-05-01 14:30:00", "a-key-of-thirty-six-cha…", "why"))


def test_a_listed_letter_as_json() -> None:
    result = dead_report.brief_json(dead_report.brief(letter()))
    assert WORDS not in codec.dumps(result).decode()
    assert result == {
        "address": "2:17",
        "died": "2026-05-01T14:30:00.250Z",
        "reason": "misrouted",
        "detail": "why",
        "key": "a-key-of-thirty-six-characters-as-ids",
        "session_id": "mine",
        "bytes": len(LINE),
        "cut_from_sha256": None,
        "source": {
            "topic": "agent.messages",
            "partition": 2,
            "offset": 7,
            "last_offset": None,
            "time": "2026-05-01T14:30:00.245Z",
        },
    }


def test_a_letter_is_shown_with_control_characters_escaped() -> None:
    headers = (("a\x1b", b"\x00"), ("trace", None))
    shown = drawn(
        dead_report.letter_box(letter(key=b"\x1b[0m\xff", headers=headers), DIED_MS + 5_000, 2_000),
        100,
    )
    assert not {"\x1b", "\x9b"} & set(shown)
    for part in (r"\x1b[0m\xff", r"a\x1b: \x00", "trace: null"):
        assert part in shown
    for part in (f"{WORDS}\\x9b2J", "mine", "5 s ago", "redrive"):
        assert part in shown


def test_a_batch_is_shown_with_its_offsets_and_a_cut_letter_with_what_was_cut() -> None:
    origin = Origin("agent.messages", 2, 7, DIED_MS, 2_506)
    cut = letter()._replace(origin=origin, cut=WholeValue(21_000_000, "ab" * 32))
    shown = drawn(dead_report.letter_box(cut, DIED_MS, 10), 100)
    assert "partition 2, offsets 7 to 2506" in shown
    assert "21,000,000 bytes" in shown
    assert f"the first {len(LINE)} bytes; SHA-256" in shown
    assert "ab" * 32 in shown
    assert "publish the message again" in shown
    result = dead_report.letter_json(cut)
    assert (result["bytes"], result["cut_from_sha256"]) == (21_000_000, "ab" * 32)
    assert "21.0 MB" in drawn(dead_report.letters_table([dead_report.brief(cut)], 120), 120)


def test_the_beginning_of_a_long_letter_is_shown() -> None:
    shown = drawn(dead_report.letter_box(letter(value=b"x" * 5_000), DIED_MS, 10), 100)
    assert "x" * 10 in shown
    assert "x" * 11 not in shown
    assert "4,990 more characters" in shown


def test_bytes_in_json_are_exact() -> None:
    result = dead_report.letter_json(
        letter(key=None, value=b"\xff", headers=(("a", b"\xfe"), ("trace", None)))
    )
    assert (result["key"], result["value_base64"]) == (None, "/w==")
    assert result["headers"] == [
        {"name": "a", "value_base64": "/g=="},
        {"name": "trace", "value": None},
    ]
    assert "murmur2" in str(result["remedy"])


@pytest.mark.parametrize("time_ms", [-(2**62), 2**62])
def test_a_time_outside_the_calendar_is_unknown(time_ms: int) -> None:
    strange = letter()._replace(died_ms=time_ms)
    assert dead_report.brief_json(dead_report.brief(strange))["died"] is None
    assert "unknown" in drawn(dead_report.letters_table([dead_report.brief(strange)], 120), 120)
    assert "unknown" in drawn(dead_report.letter_box(strange, DIED_MS, 10), 100)


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0 B"), (999, "999 B"), (4_200, "4.2 kB"), (8_388_609, "8.4 MB")]
)
def test_sizes(number: int, shown: str) -> None:
    assert size(number) == shown


def test_the_result_of_a_redrive_is_reported() -> None:
    done = RedriveResult(messages=2, sent_bytes=2_000, shortened=1, meaningless=3, sessions={"s"})
    done.reasons.update(misrouted=2)
    done.skipped["not_json"] = SkippedLetters("why", 4, ["0:1", "0:2", "0:3"])
    done.skipped["expired"] = SkippedLetters("too old", 1, ["0:9"])
    lines = list(dead_report.redrive_lines(done, "agent.messages", sent=True))
    assert lines[0] == ("sent 2 messages (2.0 kB) of 1 session to agent.messages: 2 misrouted")
    assert lines[3] == "4 skipped, not_json (0:1, 0:2, 0:3, …): why"
    assert lines[5] == "1 skipped, expired (0:9): too old"
    would = next(dead_report.redrive_lines(done, "agent.messages", sent=False))
    assert would.startswith("would send 2")
    result = json.loads(codec.dumps(dead_report.redrive_json(done, sent=True)))
    assert (result["messages"], result["meaningless"], result["reasons"]) == (
        2,
        3,
        {"misrouted": 2},
    )
    assert [left["letters"] for left in result["left"]] == [4, 1]


def test_counts_are_ordered_by_number() -> None:
    tallies = {"misrouted": dead_report.Tally(), "not_json": dead_report.Tally()}
    tallies["misrouted"].add(DIED_MS, 5)
    for late in (1_000, 0):
        tallies["not_json"].add(DIED_MS + late, 5)
    table = drawn(dead_report.summary_table(tallies), 120).splitlines()
    assert [line.split()[0] for line in table[1:]] == ["not_json", "misrouted"]
    assert dead_report.summary_json(tallies)[0] == {
        "reason": "not_json",
        "letters": 2,
        "bytes": 10,
        "first_died": "2026-05-01T14:30:00.250Z",
        "last_died": "2026-05-01T14:30:01.250Z",
    }


@pytest.mark.parametrize(
    ("selection", "settled", "said"),
    [
        (Selection(), {}, "in place of --all: 0:0- 1:0-"),
        (Selection(), {1: 70}, "in place of --all: 0:0- 1:70-"),
        (Selection(reasons=frozenset({"misrouted"})), {0: 3}, "same options: 0:3- 1:0-"),
        (
            Selection(spans=(Span(0, 5, 6), Span(0, 8, 9), Span(1, 5, 20), Span(1, 90, None))),
            {0: 6, 1: 12},
            "in place of the addresses: 0:8 1:12-19 1:90-",
        ),
        (Selection(spans=(Span(0, 5, 6),)), {0: 6}, "all letters were sent"),
    ],
)
def test_how_to_continue_is_given_as_valid_addresses(
    selection: Selection, settled: dict[int, int], said: str
) -> None:
    result = dead_report.how_to_continue(selection, [0, 1], settled)
    assert said in result
    for address in re.findall(r"\d+:\S+", result):
        assert isinstance(parse_address(address), Span)
