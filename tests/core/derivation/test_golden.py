"""The golden properties of the derivation, over sessions of every kind."""

import copy
import random
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextgauge.normalise.signals import InputMessage
from contextgauge.window_catalog import bundled
from schemas.records import Record
from streams import codec
from streams.core.derivation.rules_config import Rules
from streams.flow.derive.deriver import Deriver
from tests.core.strategies import SESSIONS, Action, Chained, write

pytestmark = pytest.mark.has_long_form

RULES = Rules(bundled())
Item = tuple[bytes, str]

_PLAIN = (Chained(), 1, True)
"""On the main chain, a second later, with a uuid."""


def lines_of(plan: tuple[list[Action], bool], session: str = "s-1") -> list[Item]:
    actions, transcript = plan
    return [(line, session) for line in write(session, actions, transcript=transcript)]


def derived(items: Iterable[Item], deriver: Deriver | None = None) -> list[Record]:
    deriver = Deriver(RULES) if deriver is None else deriver
    return [
        record
        for line, hint in items
        for record in deriver.derive(InputMessage(line, hint)).records
    ]


def by_session(records: Sequence[Record]) -> dict[str, list[bytes]]:
    documents: dict[str, list[bytes]] = {}
    for record in records:
        documents.setdefault(record.data.session_id, []).append(codec.to_structured(record))
    return documents


def ids(records: Iterable[Record]) -> set[str]:
    return {record.id for record in records}


@given(SESSIONS)
def test_golden_1_derive_is_pure(plan: tuple[list[Action], bool]) -> None:
    deriver = Deriver(RULES)
    for line, hint in lines_of(plan):
        deriver.end_steps()
        before = dict(deriver.sessions)
        copied = copy.deepcopy(before)
        first = deriver.derive(InputMessage(line, hint))
        again = Deriver(RULES)
        again.sessions = dict(before)
        assert again.derive(InputMessage(line, hint)) == first
        assert before == copied


@given(SESSIONS)
def test_golden_1_ids_are_unique_and_sequences_have_no_gap(plan: tuple[list[Action], bool]) -> None:
    records = derived(lines_of(plan))
    assert len(ids(records)) == len(records)
    for session in {record.data.session_id for record in records}:
        numbers = [one.sequence for one in records if one.data.session_id == session]
        assert numbers == list(range(1, len(numbers) + 1))


@given(SESSIONS, st.data())
def test_golden_2_applying_a_stretch_again_gives_nothing(
    plan: tuple[list[Action], bool], data: st.DataObject
) -> None:
    items = lines_of(plan)
    begin = data.draw(st.integers(0, len(items)))
    end = data.draw(st.integers(begin, len(items)))
    deriver = Deriver(RULES)
    derived(items, deriver)
    assert derived(items[begin:end], deriver) == []
    assert derived(items[begin:end], deriver) == []


@given(SESSIONS)
def test_golden_3_publishing_twice_gives_the_same_ids(plan: tuple[list[Action], bool]) -> None:
    items = lines_of(plan)
    once = derived(items)
    assert derived([item for item in items for _ in range(2)]) == once
    assert derived([*items, *items]) == once


@given(SESSIONS, SESSIONS, st.randoms(use_true_random=False))
def test_golden_4_interleaving_changes_no_session(
    one: tuple[list[Action], bool], two: tuple[list[Action], bool], rng: random.Random
) -> None:
    first, second = lines_of(one, "s-1"), lines_of(two, "s-2")
    alone = by_session([*derived(first), *derived(second)])
    alone.pop("junk", None)
    mixed: list[Item] = []
    queues = [list(first), list(second)]
    while any(queues):
        queue = rng.choice([queue for queue in queues if queue])
        mixed.append(queue.pop(0))
    together = by_session(derived(mixed))
    together.pop("junk", None)
    assert together == alone


@given(st.binary(max_size=200), st.one_of(st.none(), st.text(max_size=5)))
def test_golden_1_any_bytes_give_a_result(raw: bytes, hint: str | None) -> None:
    taken = Deriver(RULES).derive(InputMessage(raw, hint))
    assert taken.records == () or taken.dead is None


@pytest.mark.extended
@pytest.mark.no_cover  # thousands of messages
@settings(max_examples=3, deadline=None)
@given(SESSIONS, st.integers(1, 4))
def test_golden_3_holds_for_thousands_of_relevant_messages_with_a_progress_flood(
    plan: tuple[list[Action], bool], every: int
) -> None:
    actions, transcript = plan
    tail: list[Action] = []
    for number in range(4_500):
        tail.append(("user", "text", *_PLAIN))
        if number % every == 0:
            tail.append(("progress", 2))
    session = write("s-1", [*actions[:40], *tail], transcript=transcript)
    relevant = [(line, "s-1") for line in session]
    once = derived(relevant)
    assert derived([*relevant, *relevant]) == once


def test_golden_2_a_line_of_two_megabytes_is_derived_like_a_short_one() -> None:
    plan: list[Action] = [("response", 1, "claude-haiku-4-5", "anthropic", 9, 90_000, *_PLAIN)]
    (short,) = write("s-1", plan, transcript=False)
    padded = short.replace(b'"text": "x"', b'"text": "' + b"x" * 2_000_000 + b'"')
    assert len(padded) > 2_000_000
    assert ids(derived([(padded, "s-1")])) == ids(derived([(short, "s-1")]))
    assert len(derived([(padded, "s-1")])) == 3
