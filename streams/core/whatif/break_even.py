"""After how many responses a compaction has paid for itself.

It costs the call that writes its summary, and the writing of what it left. From then on each
response has a smaller context. The same path without this one compaction is what it is compared
with, up to the next compaction, reset or the end; beyond that, its mean saving goes on.
"""

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

from streams.core.whatif.costs import PriceAt, cost_of, summary_turn
from streams.core.whatif.replay import GrowthPath, ReplayedCompaction
from streams.core.whatif.turns import ChainLog
from streams.core.whatif.usage import CachedCalls


class BreakEven(NamedTuple):
    """What a compaction cost and saved, US dollars; None: its price is not known.

    `responses` is the number after which the saving was larger than the cost; None: it never is.
    `is_extrapolated`: not among the recorded responses, of which there were `followed_by`. `saved`
    is what these saved, less `cost`, which is the summary's call.
    """

    cost: Decimal
    saved: Decimal
    followed_by: int
    responses: int | None
    is_extrapolated: bool


class UsualBreakEven(NamedTuple):
    """The median of responses after which `known` compactions paid off, `~` ones with the others.

    `responses` is None where most of them never do, or none is known.
    """

    responses: int | None
    known: int


def usual(paid: Iterable[BreakEven | None]) -> UsualBreakEven:
    """Return what is usual of these compactions; those that nothing followed say nothing."""
    known = [each.responses for each in paid if each is not None and each.followed_by]
    ordered = sorted(known, key=lambda each: (each is None, each or 0))
    return UsualBreakEven(ordered[(len(ordered) - 1) // 2] if ordered else None, len(ordered))


def break_evens(
    log: ChainLog, path: GrowthPath, calls: CachedCalls, price_at: PriceAt
) -> list[BreakEven | None]:
    """Return when each compaction of a path pays for itself; None: its price is not known."""
    numbers = range(len(path.compactions))
    return [break_even(log, path, number, calls, price_at) for number in numbers]


def break_even(
    log: ChainLog,
    path: GrowthPath,
    number: int,
    calls: CachedCalls,
    price_at: PriceAt,
) -> BreakEven | None:
    """Return when the compaction of that index in the path pays for itself."""
    compaction = path.compactions[number]
    spent = cost_of(calls.summary(compaction), price_at(summary_turn(log, compaction)))
    if spent is None or not spent.is_complete:
        return None
    savings: list[Decimal] = []
    for at in _places(log, path, number):
        saving = _saving(log, path, compaction, at, calls, price_at)
        if saving is None:
            return None
        savings.append(saving)
    net, paid_at = -spent.amount, None
    for responses, saving in enumerate(savings, 1):
        net += saving
        if paid_at is None and net >= 0:
            paid_at = responses
    if paid_at is not None or not savings:
        return BreakEven(spent.amount, net, len(savings), paid_at, is_extrapolated=False)
    beyond = _beyond(net, savings)
    return BreakEven(spent.amount, net, len(savings), beyond, is_extrapolated=beyond is not None)


def _places(log: ChainLog, path: GrowthPath, number: int) -> Sequence[int]:
    """Return the responses between a compaction and the next one, a reset or the end."""
    first = path.compactions[number].at
    last = len(path.sizes)
    if log.between[first].is_reset:
        return ()
    if number + 1 < len(path.compactions):
        last = path.compactions[number + 1].at
    resets = (at for at in range(first + 1, last) if log.between[at].is_reset)
    return range(first, next(resets, last))


def _saving(
    log: ChainLog,
    path: GrowthPath,
    compaction: ReplayedCompaction,
    at: int,
    calls: CachedCalls,
    price_at: PriceAt,
) -> Decimal | None:
    """Return by how much a response is cheaper than without the compaction."""
    first, size = compaction.at, path.sizes[at]
    more = compaction.before - path.sizes[first]
    if at == first:
        own = calls.response(at, size, None)
        other = calls.response(at, size + more, compaction.previous or None)
    else:
        own = calls.response(at, size, path.sizes[at - 1])
        other = calls.response(at, size + more, path.sizes[at - 1] + more)
    price = price_at(log.turns[at])
    costs = cost_of(other, price), cost_of(own, price)
    if costs[0] is None or costs[1] is None or not (costs[0].is_complete and costs[1].is_complete):
        return None
    return costs[0].amount - costs[1].amount


def _beyond(net: Decimal, savings: Sequence[Decimal]) -> int | None:
    """Return after how many responses it pays at its mean saving; None where that is none.

    The first response writes what the compaction left: it is no measure of those to come.
    """
    rest = savings[1:]
    mean = sum(rest, Decimal(0)) / len(rest) if rest else Decimal(0)
    if mean <= 0:
        return None
    return len(savings) + int((-net / mean).to_integral_value(ROUND_CEILING))
