"""Requests with more in them than the engine can change: none exceeds the window, whatever it is.

`OVERHEADS=1000000 pytest tests/compaction/test_overhead.py` runs a million of them.
"""

import faulthandler
import os
import random
from dataclasses import replace

import pytest

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.request_size import ModelCall, measure
from contextgauge.compaction.engine.trigger import Due, Idle, Unreachable
from contextgauge.compaction.events import CompactionStarting, Hooks
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import ApiUsage, Image, Message, Text, ToolCall
from contextgauge.compaction.ports import SummaryAnswer, SummaryError, SummaryRequest
from contextgauge.compaction.profiles import Window, profile_named
from tests.compaction.conversations import call, orphans, result, said
from tests.compaction.test_compactor import talk

OVERHEADS = int(os.environ.get("OVERHEADS", "300"))
LONGEST_S = max(1_200, OVERHEADS * 0.1)

SMALLEST_TOKENS = 700
"""A last message, shortened, and a short text in the place of the others."""


class Unreliable:
    """A summariser that fails as often as it answers."""

    name = "unreliable"

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        if self._rng.random() < 0.5:
            raise SummaryError("no answer", final=self._rng.random() < 0.3)
        return SummaryAnswer(f"Round {request.number}. " * self._rng.choice((1, 40, 2_000)))


class Run:
    """An agent alone, whose API counts `hidden` tokens that nobody names with each request."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.window = rng.choice((8_192, 16_000, 32_000, 100_000))
        self.reserve = rng.choice((500, self.window // 10))
        usable = self.window - self.reserve
        self.hidden = int((usable - SMALLEST_TOKENS) * rng.random() ** 0.5)
        self.named = int((usable - SMALLEST_TOKENS - self.hidden) * rng.random() ** 2)
        self.changeable = usable - self.hidden - self.named
        self.step = max(20, int(self.changeable * rng.choice((0.02, 0.1, 0.25, 0.5))))
        self.reports = rng.random() < 0.9
        summariser = Unreliable(rng) if rng.random() < 0.5 else None

        async def confirm(_starting: CompactionStarting) -> bool:
            return rng.random() < 0.5

        hooks = Hooks(confirm=confirm) if rng.random() < 0.3 else Hooks()
        self.compactor = Compactor(summariser=summariser, hooks=hooks, now_ms=lambda: 0)
        self.call = ModelCall(
            system="s" * (self.named * 4),
            window_tokens=self.window,
            reserved_output_tokens=self.reserve,
        )
        self.history = History([said("user", "Migrate all packages. Never touch main.")])
        if not self.reports:  # then it is counted as part of the system prompt
            self.call = replace(self.call, system="s" * ((self.named + self.hidden) * 4))
            self.named, self.hidden = self.named + self.hidden, 0

    def real(self) -> int:
        return self.hidden + self.named + sum(map(ESTIMATE.message, self.history.active))

    async def live(self, calls: int) -> int:
        """Call the model; return how often the conversation was compacted."""
        compactions, grown = 0, 0
        for number in range(calls):
            prepared = await self.compactor.before_call(self.history, self.call)
            real = self.real()
            assert real <= self.window - self.reserve, (number, real, prepared.decision)
            if prepared.receipt is not None:
                assert compactions == 0 or grown * 10 >= self.changeable, (number, grown)
                assert orphans(list(prepared.messages)) == set()
                compactions, grown = compactions + 1, 0
            before = real
            self._answer(number, real)
            grown += self.real() - before
        return compactions

    def _answer(self, number: int, real: int) -> None:
        step = int(self.step * self.rng.uniform(0.5, 1.5))
        if self.rng.random() < 0.05:
            self._said(said("assistant", f"Step {number} is done."), real)
            if self.rng.random() < 0.5:
                image = Image(int(self.changeable * self.rng.uniform(0.1, 0.6)))
                self.history.append(Message("user", (Text("Look at this."), image)))
                return
            self.history.append(said("user", f"Go on with part {number}. " + "now " * (step // 2)))
            return
        calls = (ToolCall(f"c{number}", "run", '{"command":"make"}'),)
        self._said(Message("assistant", (Text(f"Step {number}."), *calls)), real)
        self.history.append(result(f"c{number}", "out " * step))

    def _said(self, answer: Message, real: int) -> None:
        usage = ApiUsage(real, ESTIMATE.message(answer)) if self.reports else None
        self.history.append(replace(answer, usage=usage))


@pytest.mark.parametrize(
    ("window", "hidden", "step"),
    [
        (200_000, 20_000, 2_000),
        (200_000, 160_000, 1_500),
        (128_000, 100_000, 1_500),
        (100_000, 78_000, 800),
        (32_000, 22_000, 500),
        (16_000, 9_500, 300),
        (8_192, 2_500, 200),
    ],
)
async def test_an_agent_alone_never_stops_for_lack_of_progress(
    window: int, hidden: int, step: int
) -> None:
    history = History([said("user", "Migrate all packages. Never touch main.")])
    compactor = Compactor()
    for number in range(120):
        prepared = await compactor.before_call(history, ModelCall(window_tokens=window))
        real = hidden + sum(map(ESTIMATE.message, history.active))
        assert real < window, (number, prepared.decision)
        assert prepared.decision != Idle("no_progress")
        answer = call(f"t{number}", "bash", f'{{"command":"run {number}"}}')
        history.append(replace(answer, usage=ApiUsage(real, 60)))
        history.append(result(f"t{number}", "out " * step, "bash"))
    assert history.receipts


async def test_a_switch_to_a_model_that_the_least_request_fits_compacts_to_it() -> None:
    """Tools of 100 000 tokens beside as many of messages, and a window of 128 000."""
    history = History([said("user", "Go."), *talk(400, 1_000)])
    reported = 100_000 + sum(map(ESTIMATE.message, history.active))
    history.append(said("assistant", "Done.", usage=ApiUsage(reported, 10)))
    history.append(said("user", "Go on."))
    prepared = await Compactor().before_call(history, ModelCall(window_tokens=128_000))
    assert prepared.decision == Due(overflow=True)
    assert 100_000 + sum(map(ESTIMATE.message, prepared.messages)) < 124_000


async def test_of_an_uncertain_overhead_the_least_decides_whether_a_request_can_fit() -> None:
    """One answer does not tell whether tools are hidden, or the system prompt is Chinese."""
    call_ = ModelCall(system="s" * 68_000, window_tokens=100_000, reserved_output_tokens=10_000)
    answer = said("assistant", "Done.", usage=ApiUsage(89_400, 20))
    question = Message("user", (Text("word " * 800), Image(300)))
    history = History([said("user", "Go."), answer, question])
    prepared = await Compactor().before_call(history, call_)
    assert prepared.decision == Due(overflow=True)
    assert prepared.receipt is not None
    assert 89_400 - 17_003 + 17_000 + sum(map(ESTIMATE.message, prepared.messages)) < 90_000


async def test_what_saves_less_than_a_tenth_waits_for_the_full_window() -> None:
    call_ = ModelCall(window_tokens=10_000, reserved_output_tokens=1_000)
    image = Message("user", (Text("Look."), Image(7_000)))
    history, compactor = History([*talk(8), image]), Compactor()
    prepared = await compactor.before_call(history, call_)
    assert prepared.decision == Idle("nothing_to_compact")
    history.extend(talk(14))
    prepared = await compactor.before_call(history, call_)
    assert prepared.decision == Due(overflow=True)
    assert prepared.receipt is not None


async def test_where_not_even_the_least_request_fits_nothing_is_lost() -> None:
    history = History(talk(40))
    call_ = ModelCall(tools=("x" * 400_000,), window_tokens=100_000)
    prepared = await Compactor().before_call(history, call_)
    assert prepared.decision == Unreachable()
    assert len(prepared.messages) == 40


async def test_sizes_that_grow_faster_than_the_estimate_are_known_by_two_answers() -> None:
    """Chinese text has a token for each character: four times the estimate."""
    history, compactor = History([said("user", "开始。")]), Compactor()
    for number in range(40):
        prepared = await compactor.before_call(history, ModelCall(window_tokens=60_000))
        real = 4 * sum(map(ESTIMATE.message, history.active))
        assert real < 60_000, (number, prepared.decision)
        answer = call(f"t{number}", "read", "{}")
        history.append(replace(answer, usage=ApiUsage(real, 20)))
        history.append(result(f"t{number}", "文" * 12_000))
        if prepared.receipt is not None:
            assert prepared.receipt.tokens_after == pytest.approx(real, rel=0.05)


@pytest.mark.extended
async def test_no_call_exceeds_the_window_and_compactions_are_apart_for_any_overhead() -> None:
    faulthandler.dump_traceback_later(LONGEST_S, exit=True, file=2)
    first, compactions = int(os.environ.get("FIRST_SEED", "0")), 0
    for seed in range(first, first + OVERHEADS):
        try:
            run = Run(seed)
            compactions += await run.live(run.rng.choice((5, 5, 8, 8, 12, 50)))
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise
    faulthandler.cancel_dump_traceback_later()
    assert compactions > OVERHEADS // 2


async def test_results_that_are_cleared_between_two_answers_say_nothing_of_how_sizes_grow() -> None:
    growth, compactor, history = 3, Compactor(), History([said("user", "Go on.")])
    profile, window = profile_named("default"), Window(20_000, "given")
    next_call, cleared = ModelCall(window_tokens=20_000), 0
    for number in range(60):
        prepared = await compactor.before_call(history, next_call)
        cleared += prepared.receipt is not None and prepared.receipt.number is None
        size = growth * sum(map(ESTIMATE.message, prepared.messages))
        answer = call(f"c{number}", "read", f'{{"path":"a{number}"}}')
        history.append(replace(answer, usage=ApiUsage(size, 20)))
        history.append(result(f"c{number}", f"w{number} " * (300 if number % 20 else 3_000)))
        if number > 3:
            measured = measure(history, next_call, profile, window, ESTIMATE)
            assert measured.fixed.growth > growth - 0.5, number
    assert cleared
