"""`make chaos SEED=… FAULTS=…`: faults on real parts, each with a verdict; then a table.

python -m tests.chaos --seed 1 --faults "Redis killed,leader" --rounds 3
python -m tests.chaos --list
"""

import argparse
import asyncio
import logging
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from streams.edge.local_stack.stack import MissingPartError
from tests.chaos.faults import FAULTS
from tests.chaos.report import table, write
from tests.chaos.rounds import chosen, run_round
from tests.chaos.services import Services
from tests.chaos.world import Outcome


async def _run(arguments: argparse.Namespace, folder: Path) -> list[Outcome]:
    faults = chosen(arguments.faults, has_brokers=True)
    tasks = [(fault, arguments.seed + r) for r in range(arguments.rounds) for fault in faults]
    # The order is the seed's too: what one fault leaves behind meets others.
    random.Random(arguments.seed).shuffle(tasks)
    services, outcomes = Services(folder), list[Outcome]()
    deadline = time.monotonic() + arguments.minutes * 60
    try:
        await services.start()
        for fault, seed in tasks:
            if time.monotonic() > deadline:
                print(f"the time is up: {len(tasks) - len(outcomes)} rounds were not run")
                break
            missing = fault.lacks() if fault.lacks else ""
            if missing:
                print(f"skipped: {fault.name}: {missing}")
                continue
            outcome = await run_round(services, fault, seed, print)
            outcomes.append(outcome)
            _show(outcome)
    finally:
        services.stop()
    return outcomes


def _show(outcome: Outcome) -> None:
    verdict = "; ".join(outcome.violations) or f"recovered in {outcome.recovery_s:.1f} s"
    print(f"{outcome.fault} (SEED={outcome.seed}, {outcome.took_s:.0f} s): {verdict}")
    for line in outcome.schedule:
        print(f"    {line}")
    for text, count in outcome.warnings.most_common():
        print(f"      {count:5} x {text}")
    sys.stdout.flush()


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", default="", help="parts of names, or groups; all for none")
    parser.add_argument("--rounds", type=int, default=1, help="of each fault, a seed each")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no round after that")
    parser.add_argument("--out", type=Path, help="files for the table: this name with .md, .json")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(f"{fault.group:8} {fault.name}" for fault in FAULTS.values()))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends all that runs
    logging.basicConfig(level=logging.CRITICAL)
    print(f"SEED={arguments.seed}")
    with tempfile.TemporaryDirectory(prefix="contextgauge-chaos-") as folder:
        try:
            outcomes = asyncio.run(_run(arguments, Path(folder)))
        except MissingPartError as error:
            sys.exit(f"chaos: {error}")
    print(table(outcomes))
    if arguments.out is not None:
        write(arguments.out, outcomes)
    return any(outcome.violations for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
