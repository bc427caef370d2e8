"""Seed 002's summaries as messages: what they count, and how the next round knows them."""

import json
from dataclasses import replace

import pytest

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.events import CompactionDone
from contextgauge.compaction.formats import read_messages, write_messages
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import ApiUsage, FormatName, Message, Role
from tests.compaction.conversations import call, orphans, result, said
from tests.compaction.test_compactor import Log, Scripted, talk

CALL = ModelCall(model="gpt-4o")


def alternating(count: int) -> list[Message]:
    """A system message of 102 tokens and others of 1 002 each, by the seed's formula."""
    roles: tuple[Role, Role] = ("user", "assistant")
    talk_ = [said(roles[number % 2], "x" * 4_000) for number in range(count)]
    return [said("system", "s" * 400), *talk_]


async def test_the_summary_counts_with_its_characters() -> None:
    """2 for each role, a quarter of the characters rounded up: as `estimateMessagesTokens`."""
    log, history = Log(), History(alternating(94))
    summary = "## Session Summary (Round 1)\n".ljust(3_229, "y")
    compactor = Compactor(profile="seed-002", summariser=Scripted(summary), hooks=log.hooks())
    await compactor.before_call(history, CALL)
    done = log.events[-1]
    assert isinstance(done, CompactionDone)
    event = done.seed_002()
    assert event["tokensBefore"] == 102 + 94 * 1_002 == 94_290
    assert event["tokensAfter"] == 102 + (2 + 808) + 10 * 1_002 == 10_932
    assert compactor.size(history, CALL).messages == 10_932


async def test_a_summary_brings_the_next_compaction_as_early_as_its_tokens_say() -> None:
    history = History(alternating(94))
    summary = "y" * 40_000
    compactor = Compactor(profile="seed-002", summariser=Scripted(summary, "z"))
    await compactor.before_call(history, CALL)
    history.extend(alternating(73)[1:])  # 20 124 so far, 93 270 then
    assert (await compactor.before_call(history, CALL)).receipt is None
    history.append(said("user", "x" * 1_312))  # 330 more: 93 600
    assert (await compactor.before_call(history, CALL)).receipt is not None


@pytest.mark.parametrize("format_name", ["anthropic", "openai-chat", "openai-responses", "gemini"])
@pytest.mark.parametrize(
    "heading",
    ["## Session Summary (Round 1)", "### Session Summary (Compaction Round 1)"],
)
async def test_a_conversation_that_a_provider_s_format_stored_goes_on_with_its_next_round(
    format_name: FormatName, heading: str
) -> None:
    summariser = Scripted(f"{heading}\nBuilt.", "two")
    compactor = Compactor(profile="seed-002", summariser=summariser)
    history = History(alternating(20)[1:])
    history.extend([call("c"), result("c", "found"), *talk(8)])
    await compactor.compact(history, CALL)
    read = read_messages(write_messages(list(history.active), format_name), format_name)
    again = History(read)
    assert not [each for each in again.active if each.compaction]
    again.extend(talk(12))
    receipt = await compactor.compact(again, CALL)
    assert receipt is not None
    assert receipt.number == 2
    second = summariser.requests[1]
    assert (second.number, second.previous) == (2, f"{heading}\nBuilt.")
    assert "Built." not in "".join(each.text for each in second.messages)
    assert [each.name for message in second.messages for each in message.calls] == ["read"]
    assert orphans(list(second.messages)) == set()
    assert [each.compaction.number for each in again.active if each.compaction] == [2]


@pytest.mark.parametrize(
    ("role", "place", "text"),
    [
        ("user", 1, "## Session Summary (Round 1)"),
        ("assistant", 2, "## Session Summary (Round 1)"),
        ("assistant", 1, "The ## Session Summary (Round 1)"),
    ],
)
async def test_what_only_looks_like_a_former_summary_is_summarised(
    role: Role, place: int, text: str
) -> None:
    summariser = Scripted("one")
    messages = alternating(40)
    messages.insert(place, said(role, text))
    await Compactor(profile="seed-002", summariser=summariser).compact(History(messages), CALL)
    (request,) = summariser.requests
    assert (request.number, request.previous) == (1, None)
    assert text in [each.text for each in request.messages]


@pytest.mark.parametrize(("characters", "due"), [(1_236, False), (1_237, True)])
@pytest.mark.parametrize("reported", [None, ApiUsage(10, 1), ApiUsage(127_000, 900)])
async def test_only_the_messages_count_and_no_reported_size(
    reported: ApiUsage | None, characters: int, due: bool
) -> None:
    """93 288 tokens, 2 for the last role, and 309 or 310 for its characters: 93 599 or 93 600."""
    *messages, last = [*alternating(93), said("assistant", "x" * characters)]
    history = History([*messages, replace(last, usage=reported)])
    heavy = replace(CALL, system="s" * 400_000, tools=(json.dumps("t" * 40_000),))
    compactor = Compactor(profile="seed-002", summariser=Scripted("short"))
    assert ((await compactor.before_call(history, heavy)).receipt is not None) == due
