"""A seeded simulator of agent sessions: every runtime, and every outcome of a compaction.

Pure: the same options give the same messages. Sizes follow real transcripts; all text is filler.

`plans` says which sessions there are (`session.SessionPlan`), `session` turns a plan into steps, a
dialect (`claude_stream`, `claude_transcript`, `codex`, `published_responses`) turns each step into
its runtime's messages, and `simulation` merges all sessions by time.
"""

from streams.flow.simulator.plans import PROVIDERS, SimulationOptions, plans, sample_plans
from streams.flow.simulator.session import DialectName, SessionPlan, SimulatedMessage
from streams.flow.simulator.simulation import interleave, sample_sessions, simulate

__all__ = [
    "PROVIDERS",
    "DialectName",
    "SessionPlan",
    "SimulatedMessage",
    "SimulationOptions",
    "interleave",
    "plans",
    "sample_plans",
    "sample_sessions",
    "simulate",
]
