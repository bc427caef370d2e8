"""How much the deriver's cost per message grows from 1 000 to 1 000 000 open sessions.

    python -m bench.growth [--rounds 3]

Each message goes to the session that is longest untouched, the worst case for caches. CPU time of
deriving and of making what is committed, `bench.state`; the sizes take turns, each measurement in
a process of its own.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict

from bench.systems import ROOT

FEW, MANY = 1_000, 1_000_000


def cost_us(sessions: int) -> float:
    """Return the CPU microseconds per message with so many open sessions."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.state", "cost", "--sessions", str(sessions)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return float(json.loads(done.stdout.splitlines()[-1])["cpu_us_per_message"])


def measure(rounds: int) -> float:
    """Return the cost with many sessions divided by that with few."""
    found: defaultdict[int, list[float]] = defaultdict(list)
    for number in range(rounds):
        for sessions in (FEW, MANY) if number % 2 == 0 else (MANY, FEW):
            found[sessions].append(cost_us(sessions))
    few, many = (statistics.median(found[sessions]) for sessions in (FEW, MANY))
    print(f"{few:.1f} µs per message with {FEW:,} sessions, {many:.1f} with {MANY:,}")
    return round(many / few, 3)


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth")
    parser.add_argument("--rounds", type=int, default=3)
    print(json.dumps({"cost_growth_1k_to_1m_sessions": measure(parser.parse_args().rounds)}))


if __name__ == "__main__":
    main()
