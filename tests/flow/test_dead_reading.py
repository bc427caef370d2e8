"""Reading dead letters: some of them, the newest first or in the order of their sending."""

from collections.abc import Sequence
from typing import get_args

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from contextgauge.ports import Headers
from schemas.messages import DeadReason
from streams.flow.dead_letters.letters import REMEDIES, UNKNOWN_REASON, Origin, letter_of
from streams.flow.dead_letters.reading import CLOCKS_MS, Selection, Span
from streams.flow.dead_letters.redrive import SKIP_REMEDIES, SkipReason
from streams.ports import Batch, LogRecord, NewRecord
from tests.doubles.log import FaultyLog
from tests.flow.dead_kit import NOW_MS, addresses, died, reading
from tests.flow.derive_kit import DeriveKit


async def newest(kit: DeriveKit, **selected: object) -> list[str]:
    async with reading(kit, Selection(**selected)) as letters:  # type: ignore[arg-type]  # its fields
        return addresses([letter async for letter in letters.newest_first()])


async def as_sent(kit: DeriveKit, **selected: object) -> list[str]:
    async with reading(kit, Selection(**selected)) as letters:  # type: ignore[arg-type]  # its fields
        return addresses([letter async for letter in letters.as_sent()])


def test_every_reason_has_a_remedy() -> None:
    assert set(REMEDIES) == set(get_args(DeadReason))
    own = {reason for part in get_args(SkipReason) for reason in get_args(part) or (part,)}
    assert set(SKIP_REMEDIES) == own


def test_a_letter_contains_the_original_message() -> None:
    headers = (("dead_reason", b"the message's own"), ("src_offset", b"5"), ("a", None))
    record = died(3, reason="not_json", value=b"{", headers=headers, sent_ms=5, died_ms=9)
    read = LogRecord(4, 9, record.key, record.value, record.headers)
    letter = letter_of(3, read)
    assert (letter.address, letter.reason, letter.detail) == ("3:4", "not_json", "why")
    assert (letter.key, letter.value, letter.headers) == (b"s", b"{", headers)
    assert letter.origin == Origin("agent.messages", 3, 7, 5)
    assert letter.died_ms == 9


@pytest.mark.parametrize("headers", [(("a", b"b"),), (("a", None),), ()])
def test_a_record_without_a_reason_is_shown_unchanged(
    headers: Headers,
) -> None:
    letter = letter_of(0, LogRecord(4, 9, None, None, headers))
    assert (letter.reason, letter.value, letter.headers) == (UNKNOWN_REASON, b"", headers)
    assert letter.origin is None


async def test_the_newest_come_first(kit: DeriveKit) -> None:
    times = {0: (10, 30, 60), 2: (20, 40, 50)}
    await kit.append(died(p, died_ms=NOW_MS + ms) for p, given in times.items() for ms in given)
    assert await newest(kit) == ["0:2", "2:2", "2:1", "0:1", "2:0", "0:0"]


async def test_letters_are_yielded_in_the_order_of_the_original_messages(kit: DeriveKit) -> None:
    """Those of one session may lie on several partitions; a partition's keep their order."""
    times = {0: (10, 40), 1: (20, 15), 3: (30,)}
    await kit.append(died(p, sent_ms=NOW_MS + ms) for p, given in times.items() for ms in given)
    stranger = NewRecord(kit.config.dead_topic, 2, None, b"no dead letter", (), NOW_MS + 35)
    await kit.append([stranger])
    assert await as_sent(kit) == ["0:0", "1:0", "1:1", "3:0", "2:0", "0:1"]


async def test_letters_are_selected(kit: DeriveKit) -> None:
    await kit.append(
        [
            died(0, reason="misrouted", value=b'{"session_id":"own"}', died_ms=NOW_MS),
            died(0, reason="not_json", value=b'{"session_id":"own"', died_ms=NOW_MS + 10),
            died(0, reason="no_session", key=None, died_ms=NOW_MS + 20),
            died(1, reason="not_json", key=b"own", value=b"{", died_ms=NOW_MS + 30),
        ]
    )
    assert await as_sent(kit, reasons=frozenset({"not_json"})) == ["0:1", "1:0"]
    assert await as_sent(kit, reasons=frozenset({"not_json", "misrouted"})) == ["0:0", "0:1", "1:0"]
    assert await as_sent(kit, session_id="own") == ["0:0", "1:0"]
    assert await as_sent(kit, session_id="s") == ["0:1"]
    assert await as_sent(kit, since_ms=NOW_MS + 10) == ["0:1", "0:2", "1:0"]
    assert await as_sent(kit, until_ms=NOW_MS + 20) == ["0:0", "0:1"]
    assert await as_sent(kit, since_ms=NOW_MS + 10, until_ms=NOW_MS + 20) == ["0:1"]
    spans = (Span(0, 1, 2), Span(1, 0, None), Span(0, 2, 3), Span(0, 2, 3), Span(0, 90, 95))
    assert await as_sent(kit, spans=spans) == ["0:1", "0:2", "1:0"]
    assert await newest(kit, spans=spans) == ["1:0", "0:2", "0:1"]
    assert await newest(kit, spans=(Span(0, 0, 1), Span(0, 2, 3))) == ["0:2", "0:0"]
    assert await newest(kit, spans=(Span(0, 9, 10),)) == []


async def test_workers_clocks_may_differ(kit: DeriveKit) -> None:
    ahead = NOW_MS + CLOCKS_MS - 1
    await kit.append([died(died_ms=ahead), died(died_ms=NOW_MS), died(died_ms=NOW_MS + 5)])
    assert await as_sent(kit, until_ms=NOW_MS + 1) == ["0:1"]
    assert await as_sent(kit, since_ms=NOW_MS + 5) == ["0:0", "0:2"]


@pytest.mark.parametrize("selected", [{}, {"since_ms": NOW_MS}, {"spans": (Span(1, 0, None),)}])
async def test_the_newest_of_many_are_read_without_reading_all(
    kit: DeriveKit, selected: dict[str, object]
) -> None:
    await kit.append(died(n % 2, died_ms=NOW_MS + n) for n in range(20_000))
    read: list[int] = []
    newest_addresses: list[str] = []
    async with reading(
        kit,
        Selection(**selected),  # type: ignore[arg-type]  # its fields
        progress=lambda done, _: read.append(done),
    ) as letters:
        async for letter in letters.newest_first():
            newest_addresses.append(letter.address)
            if len(newest_addresses) == 50:
                break
    assert newest_addresses[:2] == (
        ["1:9999", "0:9999"] if "spans" not in selected else ["1:9999", "1:9998"]
    )
    assert read[-1] < 500


async def test_reading_backwards_yields_every_letter(kit: DeriveKit) -> None:
    await kit.append(died(n % 2, died_ms=NOW_MS + n) for n in range(5_000))
    seen: list[tuple[int, int]] = []
    async with reading(kit, progress=lambda *figures: seen.append(figures)) as letters:
        times_ms = [letter.died_ms - NOW_MS async for letter in letters.newest_first()]
    assert times_ms == list(range(4_999, -1, -1))
    assert seen[-1] == (5_000, 5_000)


async def test_letters_that_arrive_after_begin_are_not_read(kit: DeriveKit) -> None:
    await kit.append([died()])
    async with reading(kit) as letters:
        await kit.append([died()])
        assert addresses([letter async for letter in letters.as_sent()]) == ["0:0"]


async def test_retention_may_delete_letters_while_they_are_read(
    kit: DeriveKit, log: FaultyLog
) -> None:
    await kit.append(died(value=b"%d" % n) for n in range(4_800))
    seen: list[tuple[int, int]] = []
    async with reading(kit, progress=lambda *figures: seen.append(figures)) as letters:
        numbers = []
        async for letter in letters.as_sent():
            numbers.append(int(letter.value))
            if letter.offset == 0:
                log.delete_before(kit.config.dead_topic, 0, 4_400)
    assert numbers == [*range(2_000), *range(4_400, 4_800)]
    assert seen[-1] == (4_800, 4_800)


async def test_a_broker_that_stops_sending_raises_a_retry_error(
    kit: DeriveKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kit.append([died()])

    class Passing(SystemClock):
        now_s = 0.0

        def monotonic_s(self) -> float:
            self.now_s += 10
            return self.now_s

    async def silent(_partition: int, _records: int, _timeout_s: float) -> Batch:
        nothing: Sequence[LogRecord] = ()
        return Batch(nothing, 0)

    async with reading(kit, clock=Passing()) as letters:
        monkeypatch.setattr(letters.reader, "poll", silent)
        with pytest.raises(RetryError, match="no data"):
            assert [letter async for letter in letters.as_sent()]
