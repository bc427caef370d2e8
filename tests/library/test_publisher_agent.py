"""The agent that a publisher names as the session's: reported once, and when it changes."""

import pytest

from schemas.records import ContextReading, SessionInfo
from streams import codec
from streams.core.derivation.stored_state import pack, unpack
from tests.core.given import (
    SESSION,
    Body,
    Given,
    any_message,
    assistant,
    compacting,
    every,
    init,
    line,
    one,
    record_of,
    session,
    side,
    user,
)


def agents(given: Given) -> list[str | None]:
    """Return the agents of the session's facts, in order."""
    return [info.publisher_agent_id for info in every(given.records, SessionInfo)]


@pytest.mark.parametrize("body", [init(), assistant(read=9), user(), compacting(), line(user())])
def test_agent_is_recorded_once_with_the_first_message_that_names_it(body: Body) -> None:
    given = Given()
    given.take(body, agent_id="a-1")
    given.take(user(uuid="another"), assistant("b", read=10), agent_id="a-1")
    assert agents(given) == ["a-1"]


def test_agent_is_recorded_again_when_it_changes_and_kept_when_absent() -> None:
    given = Given()
    given.take(init(), agent_id="a-1")
    given.take(init(model="claude-haiku-4-5"))
    given.take(user(), agent_id="a-2")
    assert agents(given) == ["a-1", "a-1", "a-2"]


def test_agent_of_a_message_with_facts_gives_one_record_of_both() -> None:
    info = one(Given().take(init(), agent_id="a-1"), SessionInfo)
    assert (info.runtime, info.publisher_agent_id) == ("claude-code", "a-1")


def test_agent_may_be_added_later_and_other_facts_are_kept() -> None:
    given = session(init())
    info = one(given.take(user(), agent_id="a-1"), SessionInfo)
    assert (info.runtime, info.publisher_agent_id) == ("claude-code", "a-1")


def test_agent_with_a_subagents_message_is_the_sessions_and_changes_nothing() -> None:
    given = Given()
    records = given.take(side(assistant("s", read=9)), agent_id="a-1")
    assert (
        record_of(records, SessionInfo).subject,
        record_of(records, ContextReading).subject,
    ) == (
        "main",
        "a1b2",
    )
    given.take(side(assistant("t", read=9)), agent_id="a-2")
    assert agents(given) == ["a-1"]


def test_agent_of_an_otherwise_ignored_line_only_fills_an_unknown_agent() -> None:
    flood = line(any_message("progress"))
    given = Given()
    given.take(flood, agent_id="a-1")
    given.take(flood, agent_id="a-2")
    assert agents(given) == ["a-1"]


def test_agent_of_a_duplicate_message_is_ignored() -> None:
    message = assistant(read=9)
    assert session(message).take(message, agent_id="a-1") == []


def test_agent_alone_does_not_make_an_ignored_message_relevant() -> None:
    assert Given().take(any_message("progress"), agent_id="a-1") == []


@pytest.mark.parametrize("agent_id", ["", "x" * 1_025])
def test_agent_is_none_for_an_invalid_name(agent_id: str) -> None:
    given = Given()
    given.take(init(), agent_id=agent_id)
    assert agents(given) == [None]


def test_agent_of_the_chain_is_another_thing() -> None:
    given = Given()
    given.take(init(), side(assistant("s", read=9), "of-the-chain"), agent_id="a-1")
    assert agents(given) == ["a-1"]
    assert record_of(given.records, ContextReading).subject == "of-the-chain"


def test_agent_is_restored_from_the_state() -> None:
    given = Given()
    given.take(init(), agent_id="a-1")
    parts = {name: part for name, part in pack(None, given.session()).items() if part is not None}
    assert unpack(SESSION, parts).facts.publisher_agent_id == "a-1"


def test_agent_is_omitted_from_the_record_when_unknown() -> None:
    given = session(init(), user())
    (info,) = (record for record in given.records if record.kind == "session_info")
    _, value = codec.to_binary(info)
    assert list(codec.loads(value)) == [
        "session_id", "chain", "model", "task_id", "subagent_type",
        "runtime", "runtime_version", "cwd", "forked_from",
    ]  # fmt: skip
    assert list(codec.loads(codec.to_structured(info))["data"]) == list(codec.loads(value))


def test_agent_round_trips_in_both_modes() -> None:
    given = Given()
    given.take(init(), agent_id="a-\ud800")
    info = record_of(given.records, SessionInfo)
    assert codec.from_structured(codec.loads(codec.to_structured(info))) == info
    assert codec.loads(codec.to_binary(info)[1])["publisher_agent_id"] is not None
