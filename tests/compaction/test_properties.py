"""What holds for every conversation, over very many random ones.

`CONVERSATIONS=1000000 pytest tests/compaction/test_properties.py` checks a million.
"""

import faulthandler
import os
import random
from dataclasses import replace

import pytest

from contextgauge.compaction.carried.audit import audit
from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.engine.trigger import Due
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Message
from contextgauge.compaction.ports import SummaryAnswer, SummaryError, SummaryRequest
from contextgauge.compaction.profiles import DEFAULT, PROFILES, Profile
from tests.compaction.conversations import orphans
from tests.compaction.random_conversations import random_conversation

CONVERSATIONS = int(os.environ.get("CONVERSATIONS", "500"))
LONGEST_S = max(1_200, CONVERSATIONS * 0.05)
"""After this the run hangs: far more than the few milliseconds that a conversation takes."""

PROFILE_LIST = [
    *PROFILES.values(),
    replace(DEFAULT, name="small", keep_last=3, clear_keep=0, compact_to=0.3),
    replace(DEFAULT, name="no-floor", floor=False),
]


class Moody:
    """A summariser that answers well, badly or not at all."""

    name = "moody"

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        if self._rng.random() < 0.3 or not request.messages:
            raise SummaryError("no answer")
        return SummaryAnswer("Words. " * self._rng.choice((1, 50, 5_000)))


def size(messages: list[Message]) -> int:
    return sum(map(ESTIMATE.message, messages))


async def one_life(seed: int) -> int:
    """Compact one conversation as it grows; return how often that was done."""
    rng = random.Random(seed)
    profile = rng.choice(PROFILE_LIST)
    summariser = None if rng.random() < 0.5 else Moody(rng)
    clock = iter(range(0, 10**9, 7_000))
    compactor = Compactor(profile=profile, summariser=summariser, now_ms=lambda: next(clock))
    call = ModelCall(
        system="s" * rng.choice((0, 400)), window_tokens=rng.choice((300, 2_000, 12_000, 40_000))
    )
    history = History()
    compactions = 0
    for _ in range(rng.randrange(1, 4)):
        history.extend(random_conversation(rng))
        before = list(history.active)
        prepared = await compactor.before_call(history, call)
        if prepared.receipt is not None:
            compactions += 1
            # A request that does not fit may leave no room for all that is carried.
            has_room = prepared.receipt.number is not None and prepared.decision == Due(
                overflow=False
            )
            check(before, history, profile, has_room=has_room)
        settled = list(history.active)
        again = await compactor.before_call(history, call)
        if prepared.receipt is not None:
            assert again.receipt is None, "a compaction was done twice without an answer between"
            assert list(history.active) == settled
    return compactions


def check(before: list[Message], history: History, profile: Profile, *, has_room: bool) -> None:
    after = list(history.active)
    assert orphans(after) == set()
    assert size(after) <= size(before), "the conversation grew"
    system = [each for each in before if each.role == "system"]
    assert [each for each in after if each.role == "system"] == system
    if profile.keep_last:
        assert after[-1].id == before[-1].id
        assert [each.id for each in after[-1].calls] == [each.id for each in before[-1].calls]
    if profile.keep_share is None and profile.keep_last and history.rounds:
        assert after[-profile.keep_last :] == before[-profile.keep_last :]
    markers = [each.compaction for each in after if each.compaction]
    assert len(markers) <= 1
    for marker in markers:
        if profile.carry and has_room:
            assert audit(marker.summary, marker.carried) == []
    known = {each.id for each in history.everything}
    assert {each.id for each in before} <= known


@pytest.mark.extended
async def test_properties_over_random_conversations() -> None:
    # Instead of pytest's own limit for a test, which a million conversations exceed.
    faulthandler.dump_traceback_later(LONGEST_S, exit=True, file=2)
    first = int(os.environ.get("FIRST_SEED", "0"))
    compactions = 0
    for seed in range(first, first + CONVERSATIONS):
        try:
            compactions += await one_life(seed)
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise
    faulthandler.cancel_dump_traceback_later()
    assert compactions > CONVERSATIONS // 10
