"""Dead letters that their topic does not take: as much of them as fits, and what the whole was."""

import hashlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.edge.memory.log import MemoryLog
from streams.flow.dead_letters.cutting import cut_letter, fitting, letter_bytes
from streams.flow.dead_letters.letters import Letter, WholeValue, letter_of
from streams.ports import Headers, LogRecord, NewRecord
from tests.flow.dead_kit import died, redriven
from tests.flow.derive_kit import DeriveKit, expected, samples

LIMIT = 200_000
TOPIC = "agent.messages.dead"


def read(letter: NewRecord) -> Letter:
    return letter_of(0, LogRecord(0, 0, letter.key, letter.value, letter.headers))


async def fitted(letter: NewRecord, written: int = LIMIT + 1) -> NewRecord:
    (result,) = await fitting([letter], TOPIC, LIMIT, lambda _: written)
    return result


async def test_a_letter_is_whole_where_it_fits_as_it_is_written() -> None:
    small, large = died(value=b"x" * 100_000), died(value=b"x" * 300_000)
    assert await fitted(small) is small
    assert await fitted(large, LIMIT) is large
    record = large._replace(topic="context.events")
    assert await fitted(record) is record


async def test_of_a_letter_that_does_not_fit_the_beginning_is_kept() -> None:
    value = bytes(range(256)) * 2_000
    whole = died(reason="too_large", value=value, key=b"s", headers=(("own", b"1"),))
    letter = read(await fitted(whole))
    assert (letter.reason, letter.key, letter.headers) == ("too_large", b"s", (("own", b"1"),))
    assert letter.origin == read(whole).origin
    assert letter.cut == WholeValue(len(value), hashlib.sha256(value).hexdigest())
    assert letter.size == len(value)
    assert value.startswith(letter.value)
    assert LIMIT * 0.6 < len(letter.value) < LIMIT


@pytest.mark.parametrize("key", [None, b"k" * 300_000])
@pytest.mark.parametrize("headers", [(), (("h" * 300_000, None),), (("h", b"v" * 300_000),)])
def test_whatever_is_large_of_it_is_cut(key: bytes | None, headers: Headers) -> None:
    cut = cut_letter(died(value=b"v" * 300_000, key=key, headers=headers), LIMIT)
    assert letter_bytes(cut) == LIMIT
    assert (read(cut).key, read(cut).headers) == (None, ())


@given(
    st.binary(max_size=90) | st.none(),
    st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=9) | st.none()), max_size=4),
    st.integers(70_000, 400_000),
)
def test_a_letter_that_is_cut_is_never_above_the_limit(
    value: bytes | None, headers: list[tuple[str, bytes | None]], limit: int
) -> None:
    content = (value or b"") * 9_000
    cut = cut_letter(died(value=content, headers=tuple(headers)), limit)
    assert letter_bytes(cut) <= limit
    assert content.startswith(read(cut).value)


async def test_the_worker_goes_on_and_says_what_it_cut(kit: DeriveKit, log: MemoryLog) -> None:
    messages = samples(2)[:60]
    dead, value = kit.config.dead_topic, b"{" * 200_000
    for partition in range(4):
        log.partition(dead, partition).max_message_bytes = 180_000
    await kit.append([NewRecord(kit.config.messages_topic, 0, b"s", value)])
    await kit.publish(messages)
    await kit.run_until_caught_up(replace(kit.config, letter_bytes=180_000))
    assert await kit.events() == expected(messages)
    (record,) = await kit.dead_letters()
    letter = letter_of(0, record)
    assert (letter.reason, letter.size) == ("not_json", 200_000)
    assert letter.cut is not None
    result = await redriven(kit)
    assert result.messages == 0
    assert "of its 200,000 bytes are kept" in result.skipped["cut"].detail
