"""The log of a conversation, and what the model sees of it."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.engine.plan import digest
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import (
    ApiUsage,
    Block,
    Image,
    JsonSource,
    Message,
    Opaque,
    Thinking,
)
from contextgauge.errors import ConfigError
from tests.compaction.conversations import conversations, said, session

CALL = ModelCall(window_tokens=2_000, reserved_output_tokens=100)


async def compacted(messages: list[Message]) -> History:
    history = History(messages)
    await Compactor().compact(history, CALL)
    return history


def test_messages_get_ids_and_keep_their_own() -> None:
    history = History([said("user", "a"), said("user", "b", id="m3"), said("user", "c")])
    assert [each.id for each in history.active] == ["cg-m1", "m3", "cg-m2"]
    with pytest.raises(ConfigError, match="'m3' already"):
        history.append(said("user", "d", id="m3"))


async def test_everything_shows_all_messages_and_the_marker_where_it_came() -> None:
    history = await compacted(session(6))
    history.append(said("user", "next"))
    roles = [each.compaction is not None for each in history.everything]
    assert roles == [False] * 25 + [True, False]
    assert history.active[-1].text == "next"


async def test_archived_messages_are_kept_as_they_were() -> None:
    messages = session(6)
    history = await compacted(messages)
    active = {each.id for each in history.active}
    assert history.archived
    assert all(each.id not in active for each in history.archived)
    assert [each.blocks for each in history.everything if not each.compaction] == [
        each.blocks for each in messages
    ]


async def test_rounds_are_numbered_over_the_whole_history() -> None:
    history = await compacted(session(6))
    history.extend(session(6)[1:])
    await Compactor().compact(history, CALL)
    assert history.rounds == 2
    assert [each.number for each in history.receipts] == [1, 2]


async def test_sizes_reported_before_a_compaction_are_void_after_it() -> None:
    history = History(session(6))
    history.append(said("assistant", "x", usage=ApiUsage(1_900, 5)))
    await Compactor().compact(history, CALL)
    assert history.fresh_from == len(history.active)


async def test_a_fork_goes_its_own_way_and_inherits_the_counts() -> None:
    history = History(session(6))
    history.append(said("assistant", "x", usage=ApiUsage(1_000, 5)))
    await Compactor().compact(history, CALL)
    fork = history.fork()
    fork.append(said("user", "another way"))
    assert list(fork.active)[:-1] == list(history.active)
    assert fork.tokens == history.tokens
    assert fork.rounds == history.rounds == 1


async def test_a_fork_before_a_compaction_sees_what_was_there_then() -> None:
    history = await compacted(session(6))
    fork = history.fork("cg-m5")
    assert [each.id for each in fork.active] == [f"cg-m{number}" for number in range(1, 6)]
    assert fork.rounds == 0
    with pytest.raises(ConfigError, match="'m99'"):
        history.fork("m99")


async def test_a_fork_at_a_compaction_begins_with_it() -> None:
    history = await compacted(session(6))
    (marker,) = (each for each in history.active if each.compaction)
    then = list(history.active)
    history.extend(session(6)[1:])
    await Compactor().compact(history, CALL)
    for fork in (history.fork(marker.id), history.after_compaction(1)):
        assert list(fork.active) == then
        assert fork.rounds == 1
    with pytest.raises(ConfigError, match="no compaction 3"):
        history.after_compaction(3)


@settings(max_examples=30)  # many more in test_properties
@given(conversations(), conversations())
async def test_replaying_the_log_gives_the_same_active_conversation(
    first: list[Message], second: list[Message]
) -> None:
    history = History(first)
    compactor = Compactor()
    await compactor.before_call(history, CALL)
    history.extend(second)
    await compactor.before_call(history, CALL)
    again = History.replay(history.entries)
    assert list(again.active) == list(history.active)
    assert list(again.everything) == list(history.everything)
    seen = {each.id for each in [*history.archived, *history.active]}
    assert {each.id for each in history.everything if not each.compaction} <= seen


@pytest.mark.parametrize(
    "block",
    [
        lambda source: Opaque("compaction", 9, source),
        lambda source: Image(9, "image/png", source),
        lambda source: Thinking("", 9, source),
    ],
)
def test_the_digest_tells_items_apart_that_only_a_provider_reads(
    block: Callable[[JsonSource], Block],
) -> None:
    first, second = (
        Message("assistant", (block(JsonSource("anthropic", {"data": value})),), "m")
        for value in ("AAAA", "BBBB")
    )
    assert digest([first]) == digest([first])
    assert digest([first]) != digest([second])
