"""A short selection of `make fuzz`; and that it finds what is broken on purpose."""

import weakref
from dataclasses import replace
from typing import Any

import pytest

from contextgauge import json_codec
from contextgauge.normalise import fields, usage
from contextgauge.normalise.claude_code import messages
from streams.core.derivation.stored_state import unpack
from streams.flow.derive import stored_sessions
from streams.flow.project import fold
from tests.fuzz import portion
from tests.fuzz.entrances import run_entrances
from tests.fuzz.portion import CPU_US, CPU_US_PER_BYTE, Fuzzer, Input, measure
from tests.test_compiled import COMPILED_RUN

INPUTS = 2_400


@pytest.mark.extended
def test_no_message_is_too_much() -> None:
    portion = Fuzzer(1, 0).run(INPUTS)
    assert portion.failures == []
    assert portion.records > INPUTS // 2
    assert len(portion.outcomes) > 18, "most kinds of records and dead letters"


@pytest.mark.extended
def test_a_portion_is_the_same_whenever_it_runs() -> None:
    first, again, other = [Fuzzer(2, number).run(240).digests for number in (1, 1, 2)]
    assert first == again != other


@pytest.mark.extended
def test_nothing_of_a_portion_stays() -> None:
    fuzzer = Fuzzer(3, 0)
    fuzzer.run(240)
    mutator = weakref.ref(fuzzer.mutator)
    del fuzzer
    assert mutator() is None, "a run of many portions would take more and more memory"


@pytest.mark.extended
def test_no_other_entrance_takes_too_much() -> None:
    assert run_entrances(1, 0, 20) == []


def _many_models(number: int) -> Input:
    models = b",".join(b'"model-%d":{"contextWindow":%d}' % (each, each) for each in range(number))
    return Input(b'{"type":"result","session_id":"s","modelUsage":{%s}}' % models)


def test_a_large_message_costs_no_more_than_its_size() -> None:
    cost = measure([_many_models(20_000)], folds=True)
    assert cost is not None
    assert cost.us < CPU_US + CPU_US_PER_BYTE * cost.size


def _any_value(body: dict[str, Any], *names: str) -> Any:
    return next((body[name] for name in names if name in body), None)


def _with_a_lost_fact(session_id: str, parts: Any) -> Any:
    session = unpack(session_id, parts)
    return replace(session, hint=None, facts=session.facts._replace(runtime=None))


PLANTED: dict[str, tuple[object, str, object]] = {
    "times of any year": (fields, "in_range", lambda time_ms: time_ms),
    "counts of any type": (usage, "count", _any_value),
    "names of any type": (messages, "name", _any_value),
    "no lone surrogates": (json_codec, "_dumps_standard", json_codec.utf8),
    "a fact that is not restored": (stored_sessions, "unpack", _with_a_lost_fact),
    "a bound of views that is too low": (fold, "GROWTH", 0),
}


@pytest.mark.extended
@pytest.mark.skipif(COMPILED_RUN, reason="compiled modules do not look each other's names up")
@pytest.mark.parametrize("name", PLANTED)
def test_what_is_broken_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[name])
    assert any(Fuzzer(4, number).run(480).failures for number in range(20))


def _all_pairs(body: dict[str, Any], *names: str) -> Any:
    mapping = fields.mapping(body, *names)
    return mapping and {
        key: mapping[key] for key in mapping if sum(key == each for each in mapping)
    }


def _copies(body: dict[str, Any], *names: str) -> Any:
    mapping = fields.mapping(body, *names) or {}
    return [bytes(40 * len(mapping)) for _ in mapping] and mapping


@pytest.mark.extended
@pytest.mark.skipif(COMPILED_RUN, reason="as above")
@pytest.mark.parametrize(("kind", "planted"), [("slow", _all_pairs), ("memory", _copies)])
def test_what_takes_more_than_its_size_is_found(
    kind: str, planted: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "mapping", planted)
    monkeypatch.setattr(portion, "_LARGE_EVERY", 1)
    portions = (Fuzzer(1, number).run(20) for number in range(2, 200))  # in the seventh
    assert any(failure.kind == kind for each in portions for failure in each.failures)
