"""Sessions that versions 2 and 3 stored go on as if this version had."""

import copy
from typing import Any

import pytest

from schemas.records import ContextWarning
from streams import codec
from streams.core.derivation.known_causes import CHUNK
from streams.core.derivation.stored_state import SESSION_PART, StoredPart, part_names, unpack
from tests.core.derivation.state_kit import Store, stored_parts
from tests.core.given import (
    MODEL,
    SESSION,
    Body,
    Given,
    assistant,
    boundary,
    compacting,
    model_window,
    one,
    result,
    session,
    side,
    user,
)

SLOTS = 65
"""Of the ring in which versions up to 4 had the last 4 096 causes."""


def in_version_4(parts: dict[str, StoredPart]) -> dict[str, StoredPart]:
    """Return a session's parts as version 4 wrote them: the last causes in a ring of chunks."""
    older = {name: part for name, part in parts.items() if not name.startswith("known:")}
    own = parts[SESSION_PART]
    older[SESSION_PART] = StoredPart(own.fields[:10], own.data)
    for name, part in older.items():
        if name.startswith("chain:"):
            older[name] = StoredPart(part.fields[:19], part.data)
    for name, part in parts.items():
        if name.startswith("known:"):
            (number,) = part.fields
            assert isinstance(number, int)
            older[f"known:{number % SLOTS}"] = part
    return older


def in_version_3(parts: dict[str, StoredPart]) -> dict[str, StoredPart]:
    """Return a session's parts as version 3 wrote them: all causes in chunks, a chain in one."""
    parts = in_version_4(parts)
    older = {name: part for name, part in parts.items() if not name.startswith("responses:")}
    for name, part in older.items():
        if name.startswith("chain:"):
            apart = parts.get(name.replace("chain", "responses"))
            memory = (b"" if apart is None else apart.data) + part.data
            older[name] = StoredPart(part.fields[:18], memory[-32 * 25 :])
    own = parts[SESSION_PART]
    added, newest = own.fields[3], own.fields[9]
    assert isinstance(added, int)
    assert isinstance(newest, int)
    older[SESSION_PART] = StoredPart(own.fields[:9], own.data[: len(own.data) - 8 * newest])
    if newest:
        number = (added - 1) // CHUNK
        chunk = older.get(f"known:{number % SLOTS}")
        former = b"" if chunk is None or chunk.fields != [number] else chunk.data
        data = former + own.data[-8 * newest :]
        older[f"known:{number % SLOTS}"] = StoredPart([number], data)
    return older


@pytest.mark.parametrize("messages", [1, 8, 31, 33, 40, 64, 65, 77])
@pytest.mark.parametrize("more", [1, 5, 8, 40])
def test_a_session_of_version_3_goes_on_as_if_this_version_had_written_it(
    messages: int, more: int
) -> None:
    end = messages + more
    turns: list[Body] = [assistant(f"r{number}", read=number) for number in range(end + 1)]
    # Further lines of responses, so that the causes are new.
    again: list[Body] = [assistant(f"r{number}", read=number) for number in range(end)]
    given = session(*turns[:messages], side(assistant("s", read=9), "b2"))
    before, records = in_version_3(stored_parts(given)), len(given.records)
    store = Store()
    store.parts = {name: (codec.dumps(part.fields), part.data) for name, part in before.items()}
    other = Given()
    other.sessions()[SESSION] = store.get()
    # Stored by this version, bit by bit and with restarts, beside what version 3 left.
    for turn in turns[messages:end]:
        stored = other.session()
        other.take(turn)
        store.put(stored, other.session())
        other.sessions()[SESSION] = store.get()
        assert set(store.parts) <= set(part_names(other.session()))
    given.take(*turns[messages:end])
    for repeated in (turns, again):
        other.take(*repeated)
        given.take(*repeated)
    assert other.records == given.records[records:]


def test_a_session_of_version_4_with_more_causes_than_its_ring_goes_on() -> None:
    turns: list[Body] = [user(str(number)) for number in range(4_800)]
    given = session(*turns[:4_500])
    before, store = in_version_4(stored_parts(given)), Store()
    assert len(before) == SLOTS + 2
    store.parts = {name: (codec.dumps(part.fields), part.data) for name, part in before.items()}
    other = Given()
    other.sessions()[SESSION] = store.get()
    for at in range(4_500, 4_800, 7):
        stored = other.session()
        other.take(*turns[at : at + 7])
        store.put(stored, other.session())
        other.sessions()[SESSION] = store.get()
        assert set(store.parts) <= set(part_names(other.session()))
    assert other.chain().total == 4_800
    # What version 4 had forgotten is counted again; all that came since is known.
    other.take(*turns[4_500 - 4_096 :])
    assert other.chain().total == 4_800


def in_version_2(given: Given) -> dict[str, StoredPart]:
    """Return a session's parts as version 2 wrote them: thresholds without windows."""
    older = in_version_3(stored_parts(given))
    for name, part in older.items():
        fields = list(part.fields)
        if name == SESSION_PART:
            start, facts = fields[5], fields[8]
            assert isinstance(facts, list)
            fields[5], fields[8] = start[:3] if isinstance(start, list) else None, facts[:18]
        elif name.startswith("chain:"):
            announced: Any = fields[10]
            limits: Any = fields[14]
            fields[10] = [threshold for _, thresholds in announced for threshold in thresholds]
            fields[14] = limits[:5]
            del fields[15:]
        older[name] = part._replace(fields=fields)
    return older


def test_a_session_of_version_2_goes_on_as_if_this_version_had_written_it() -> None:
    given = session(assistant("a", read=50_000), compacting(at=0))
    before, records = in_version_2(given), len(given.records)
    assert before != in_version_3(stored_parts(given))
    other = Given()
    other.sessions()[SESSION] = unpack(SESSION, before)
    # How many responses a chain got was not stored, nor when its latest message came.
    expected = copy.deepcopy(given.session())
    expected.chains["main"].remembered = 0
    expected.chains["main"].last_ms = None
    assert other.session() == expected
    later = [compacting(at=30), boundary(), assistant("b", read=90_000)]
    other.take(*later)
    given.take(*later)
    assert other.records == given.records[records:]


def test_warnings_of_version_2_whose_window_was_disproved_are_those_of_none() -> None:
    given = session(assistant("a", read=50_000), assistant("b", read=250_000))
    restored = unpack(SESSION, in_version_2(given))
    assert restored.chains["main"].announced == ()


def test_warnings_of_version_2_for_a_corrected_window_do_not_silence_the_next() -> None:
    given = session(assistant("a", read=185_000), result({MODEL: model_window(1_000_000)}))
    given.take(assistant("b", read=190_000))
    older = in_version_2(given)
    older["chain:main"].fields[10] = [10, 20, 30, 40, 50, 60, 70, 80, 90]
    other = Given()
    other.sessions()[SESSION] = unpack(SESSION, older)
    assert one(other.take(assistant("c", read=300_000)), ContextWarning).thresholds_crossed == (
        20, 30
    )  # fmt: skip
