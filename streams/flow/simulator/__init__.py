"""A seeded simulator of agents' sessions: every runtime, every way that a compaction can go.

Pure: the same options give the same messages. Sizes follow those of real transcripts; all text
is filler.
"""

from streams.flow.simulator.cast import PROVIDERS, Casting, plans, sample_plans
from streams.flow.simulator.scene import Plan, SpellingName
from streams.flow.simulator.stage import Simulated, interleave, sample_sessions, simulate

__all__ = [
    "PROVIDERS",
    "Casting",
    "Plan",
    "Simulated",
    "SpellingName",
    "interleave",
    "plans",
    "sample_plans",
    "sample_sessions",
    "simulate",
]
