"""Chains of sessions by hand, and the records of simulated ones."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from itertools import islice

from contextgauge.normalise.signals import InputMessage
from contextgauge.pricing import Price, Rates
from contextgauge.window_catalog import bundled
from schemas.records import Record
from streams.core.derivation.rules_config import Rules
from streams.core.whatif.compaction_facts import CompactionFacts, FactPool
from streams.core.whatif.turns import Between, ChainLog, ChainTurn, RecordedCompaction
from streams.flow.derive.deriver import Deriver
from streams.flow.simulator import SimulationOptions, simulate

MODEL = "claude-sonnet-5"
WINDOW = 200_000
RULES = Rules(bundled())
PREFIX = 10_000
"""What the first response and those after a compaction read from the cache."""

PRICE = Price(
    model=MODEL,
    rates=Rates(Decimal(4), Decimal(20), Decimal(5), Decimal(8), Decimal("0.4")),
    source="test",
    checked=date(2026, 11, 1),
)
"""US dollars per million tokens: fresh, output, written for five minutes and an hour, read."""

MANUAL, RESET, FAILED = "manual", "reset", "failed"


def price_at(turn: ChainTurn) -> Price | None:
    """Return the price of the only model that has one."""
    return PRICE if turn.model == MODEL else None


def compaction(pre: int | None = 160_000, trigger: str | None = "auto") -> RecordedCompaction:
    """Return a boundary that took half a minute, with a summary of 2 000 tokens."""
    return RecordedCompaction(
        "b",
        1,
        None,
        trigger,
        trigger != "auto",
        pre,
        is_pre_reported=pre is not None,
        duration_ms=30_000,
        summary_output=2_000,
    )


def log_of(
    *steps: int | str | RecordedCompaction,
    output: int = 100,
    seconds: float = 60,
    model: str | None = MODEL,
    window: int | None = WINDOW,
    threshold: int | None = None,
    runtime: str | None = "claude-code",
    session: str = "s-1",
) -> ChainLog:
    """Return a chain: numbers are the sizes of its responses, each `seconds` after the one before.

    A response reads the one before it from the cache, and the prefix after what is no response.
    """
    turns: list[ChainTurn] = []
    between = [Between()]
    previous = PREFIX
    for step in steps:
        last = between[-1]
        if isinstance(step, int):
            read = min(previous, step)
            turns.append(
                ChainTurn(
                    int(len(turns) * seconds * 1_000),
                    None,
                    model,
                    window,
                    step,
                    0,
                    step - read,
                    0,
                    read,
                    output,
                    threshold,
                )
            )
            between.append(Between())
            previous = step
        elif step == FAILED:
            between[-1] = last._replace(has_failed_attempt=True)
        elif step == RESET:
            between[-1], previous = last._replace(is_reset=True), PREFIX
        elif isinstance(step, RecordedCompaction):
            between[-1] = last._replace(compactions=(*last.compactions, step))
            previous = PREFIX
    for index, each in enumerate(between[:-1]):
        after = turns[index].used
        own = tuple(one._replace(tokens_after=after) for one in each.compactions)
        between[index] = each._replace(compactions=own)
    return ChainLog(session, "main", runtime, {}, tuple(turns), tuple(between))


def facts_of(log: ChainLog) -> CompactionFacts:
    """Return a chain's facts, from its own compactions alone."""
    return FactPool([log]).of(log)


def derived(options: SimulationOptions, messages: int) -> Iterator[Record]:
    """Yield the records of simulated sessions."""
    deriver = Deriver(RULES)
    for each in islice(simulate(options), messages):
        yield from deriver.derive(InputMessage(each.value, each.file)).records
