"""How much of a conversation survives compactions: contextgauge and other packages.

    python -m bench.compaction [--quick] [--seed 0] [--goals 30 20] [--json] [--missing]

Needs no key and no network; packages that `make bench-setup` has not installed are left out.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from bench.compaction.contenders import Contender, limits_of, our_contenders
from bench.compaction.conversations import LANGUAGES, all_conversations
from bench.compaction.facts import Conversation
from bench.compaction.measures import Result, measured
from bench.compaction.packages import package_contenders
from bench.compaction.tables import tables

SIZES: Final = (60_000, 110_000, 250_000, 160_000, 400_000, 90_000, 200_000)
QUICK_SIZES: Final = (60_000,)


def results_of(
    contender: Contender, conversations: Sequence[Conversation], goals: Sequence[float]
) -> list[Result]:
    """Run a contender through all conversations, with each goal (percent)."""
    cases = [(each, limits_of(each.tokens, goal)) for goal in goals for each in conversations]
    runs = [(*case, run) for case, run in zip(cases, contender.run(cases), strict=True)]
    size = len(conversations)
    return [
        measured(contender.name, runs[index * size : (index + 1) * size], goal)
        for index, goal in enumerate(goals)
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--goals", type=float, nargs="+", default=[30, 20], help="percent")
    parser.add_argument("--quick", action="store_true", help="one short conversation a language")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    parser.add_argument("--missing", action="store_true", help="print what contextgauge lost")
    parser.add_argument("--ours", action="store_true", help="leave out what needs packages")
    options = parser.parse_args(arguments)
    conversations = all_conversations(options.seed, QUICK_SIZES if options.quick else SIZES)
    if options.quick:  # each language and format once, and an agent without calls of tools
        conversations = [conversations[0], *conversations[1 :: len(LANGUAGES) + 1]]
    contenders = our_contenders()
    if not options.ours:
        others, reasons = package_contenders()
        contenders += others
        print(*reasons, sep="\n", file=sys.stderr)
    with ThreadPoolExecutor(2) as pool:  # packages run in processes of their own
        by_contender = list(
            pool.map(lambda each: results_of(each, conversations, options.goals), contenders)
        )
    results = [result for goal in zip(*by_contender, strict=True) for result in goal]
    if options.json:
        json.dump([each._asdict() for each in results], sys.stdout, indent=2, ensure_ascii=False)
        print()
        return
    print(tables(results))
    if options.missing:
        for each in results:
            for fact in each.missing * each.contender.startswith("contextgauge"):
                print(f"{each.contender} {each.goal_percent:g}:", *fact, sep=" | ")


if __name__ == "__main__":
    main()
