"""How much of a session survives compactions: our strategies and the rules of other agents.

    python -m bench.compaction [--sessions 10] [--first-seed 0] [--budgets 20 30] [--window 100000]
                               [--json] [--markdown]
    python -m bench.compaction --planning

All contenders get the same generated sessions, compact at the same places and have one budget.
Needs no key and no network: see `summaries` for who writes the summaries.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from bench.compaction.contenders import Budget, Contender
from bench.compaction.conversations import Conversation, generate
from bench.compaction.measures import Result, play, summed
from bench.compaction.others import controls, other_contenders
from bench.compaction.ours import our_contenders
from bench.compaction.planning import planning_text
from bench.compaction.summaries import STYLES
from bench.compaction.tables import markdown_table, sources, text_table

WINDOW_TOKENS = 100_000
ROUNDS = 5
SUMMARY_TOKENS = 4_096
"""What the default profile, and cline's other strategy, let a summariser write."""

_LEGEND = """\
{sessions} generated sessions of {rounds} rounds of about {round_tokens:,} tokens, in a window of
{window:,}. A compaction follows each round. Figures are % after the last round, means.

Where a summary is written, a stand-in for the model writes it, the same for all and with the same
limit. Two figures are those of two stand-ins: an even sample of the whole input, and one that
never misses a rule of the user. A model lies between. "default" needs neither.

- constraints: exact values of what the user laid down and never changed; early: in the first round
- conflicts: values that were replaced, whose newest the context holds; stale: an old one is last
- files: paths of the files that were read or changed
- orphans: calls without results and results without calls, over all rounds
- tokens: share of the window that is left; over budget: compactions that left more than the budget
- ms: median time of a compaction, the stand-in's share included
"""


def budget_of(percent: float, window_tokens: int = WINDOW_TOKENS) -> Budget:
    """Return a budget; a summary has at most half of it."""
    tokens = int(window_tokens * percent / 100)
    return Budget(window_tokens, tokens, min(SUMMARY_TOKENS, tokens // 2))


def all_contenders() -> list[Contender]:
    """Return all that is compared, in the order of the tables."""
    return [*our_contenders(), *other_contenders(), *controls()]


def compare(
    contenders: Sequence[Contender], conversations: Sequence[Conversation], budget: Budget
) -> list[Result]:
    """Return the results of contenders under both stand-ins."""
    return [
        summed(each, style, budget, [play(each, one, budget, style) for one in conversations])
        for each in contenders
        for style in STYLES
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--budgets", type=float, nargs="+", default=[20, 30])
    parser.add_argument("--window", type=int, default=WINDOW_TOKENS)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    parser.add_argument(
        "--planning", action="store_true", help="print the CPU time of planning long conversations"
    )
    options = parser.parse_args(arguments)
    if options.planning:
        print(planning_text())
        return
    round_tokens = options.window * 3 // 4
    conversations = [
        generate(seed, rounds=ROUNDS, round_tokens=round_tokens)
        for seed in range(options.first_seed, options.first_seed + options.sessions)
    ]
    everything: list[Result] = []
    legend = _LEGEND.format(
        sessions=options.sessions, rounds=ROUNDS, round_tokens=round_tokens, window=options.window
    )
    if not options.json:
        print(legend)
    for percent in options.budgets:
        results = compare(all_contenders(), conversations, budget_of(percent, options.window))
        everything += results
        if options.json:
            continue
        table = markdown_table if options.markdown else text_table
        title = f"Budget {percent:g} % of the window"
        print(f"\n**{title}**\n" if options.markdown else f"\n{title}")
        print(table(results), flush=True)
    if options.markdown:
        print(f"\nThe rules, re-implemented from:\n\n{sources(all_contenders())}")
    if options.json:
        json.dump([each._asdict() for each in everything], sys.stdout, indent=2)
        print()


if __name__ == "__main__":
    main()
