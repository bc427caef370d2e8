"""A seeded simulator of agents' sessions: every runtime, every way that a compaction can go.

Pure: the same options give the same messages. Sizes follow those of real transcripts; all text
is filler.
"""

from streams.flow.simulator.plans import PROVIDERS, SimulationOptions, plans, sample_plans
from streams.flow.simulator.session import SessionPlan, DialectName
from streams.flow.simulator.simulation import SimulatedMessage, interleave, sample_sessions, simulate

__all__ = [
    "PROVIDERS",
    "SimulationOptions",
    "SessionPlan",
    "SimulatedMessage",
    "DialectName",
    "interleave",
    "plans",
    "sample_plans",
    "sample_sessions",
    "simulate",
]
