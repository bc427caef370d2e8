"""How much the deriver's cost per message grows with open sessions, and as one session gets long.

    python -m bench.growth [--rounds 3]        # 1 000 and 1 000 000 sessions: the ratio
    python -m bench.growth --plots docs        # 100 to 1 000 000, one of 100 000 messages: plots

CPU time of deriving and of making what is committed, `bench.state`; the sizes take turns, each
measurement in a process of its own. With every size as many sessions get messages, 1 000 spread
over all, one message of each in a batch: what differs is how many others are open.
"""

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench import plot
from bench.process import apart
from bench.state import AT_WORK, LONG_STEP, SIZES

FEW, MANY = 1_000, 1_000_000

WIDE = 20_000
"""Sessions at work in the worst case: each message is for the one that is longest untouched of
so many that no cache of a processor holds them."""

LONG = 100_000
_ENDS = 10
"""Steps of a long session's beginning, and of its end, that are compared."""


def cost_us(sessions: int, at_work: int = AT_WORK) -> float:
    """Return the CPU microseconds per message with so many open sessions."""
    measured = apart("bench.state", "cost", "--sessions", str(sessions), "--at-work", str(at_work))
    return float(measured["cpu_us_per_message"])


def measure(rounds: int) -> float:
    """Return the cost with many sessions divided by that with few."""
    by_size = costs((FEW, MANY), AT_WORK, rounds)
    few, many = by_size[FEW], by_size[MANY]
    print(f"{few:.1f} µs per message with {FEW:,} sessions, {many:.1f} with {MANY:,}")
    return round(many / few, 3)


def costs(sizes: Sequence[int], at_work: int, rounds: int) -> dict[int, float]:
    """Return the median cost for each number of open sessions."""
    by_size: defaultdict[int, list[float]] = defaultdict(list)
    for number in range(rounds):
        for sessions in sizes if number % 2 == 0 else reversed(sizes):
            by_size[sessions].append(cost_us(sessions, at_work))
    return {sessions: round(statistics.median(by_size[sessions]), 1) for sessions in sizes}


def growth_of(steps: Sequence[float]) -> float:
    """Return what a message costs at the end of a long session, divided by its beginning."""
    begin, end = statistics.median(steps[:_ENDS]), statistics.median(steps[-_ENDS:])
    return round(end / begin, 3)


def plots(folder: Path, rounds: int) -> dict[str, object]:
    """Measure all sizes and a long session, and draw both."""
    at_work = costs(SIZES, AT_WORK, rounds)
    wide = costs([size for size in SIZES if size >= WIDE], WIDE, rounds)
    steps: list[float] = apart("bench.state", "long", "--messages", str(LONG))["cpu_us_per_message"]
    series = {
        f"{AT_WORK:,} sessions at work": list(at_work.items()),
        f"{WIDE:,} sessions at work": list(wide.items()),
    }
    (folder / "growth.svg").write_text(
        plot.lines("CPU µs per message by open sessions", series, is_log=True)
    )
    places = [((number + 1) * LONG_STEP, step) for number, step in enumerate(steps)]
    (folder / "long-session.svg").write_text(
        plot.lines("CPU µs per message by messages of one session", {"one session": places})
    )
    return {
        "at_work": at_work,
        "wide": wide,
        "long_session_steps": steps,
        "long_session_growth": growth_of(steps),
    }


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plots", type=Path, help="measure all sizes; the folder to draw into")
    given = parser.parse_args()
    if given.plots is None:
        print(json.dumps({"cost_growth_1k_to_1m_sessions": measure(given.rounds)}))
    else:
        print(json.dumps(plots(given.plots, given.rounds)))


if __name__ == "__main__":
    main()
