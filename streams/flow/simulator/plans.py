"""Which sessions to simulate: random plans from a seed, and the sample that shows every kind."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from streams.flow.simulator.random_source import RandomSource
from streams.flow.simulator.session import AttemptOutcome, DialectName, SessionPlan

PROVIDERS: dict[str, tuple[DialectName, ...]] = {
    "claude": ("claude-stream", "claude-stream", "claude-transcript"),
    "openai": ("openai-chat", "openai-responses"),
    "gemini": ("gemini",),
    "codex": ("codex",),
}
"""Dialects of each provider; Claude's stream, which reports the most, comes twice as often."""

DEFAULT_START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z: the default start of simulated time."""

_MODELS: dict[DialectName, tuple[tuple[str, int], ...]] = {
    "claude-stream": (
        ("claude-sonnet-4-5-20250929", 200_000),
        ("claude-opus-4-5-20251101", 200_000),
        ("claude-sonnet-4-5-20250929[1m]", 1_000_000),
    ),
    "claude-transcript": (
        ("claude-sonnet-4-5-20250929", 200_000),
        ("claude-opus-4-1-20250805", 200_000),
    ),
    "openai-chat": (("gpt-4o-2024-08-06", 128_000), ("gpt-4-turbo", 128_000), ("gpt-4", 8_192)),
    "openai-responses": (("gpt-5.2", 400_000), ("gpt-4.1", 1_047_576)),
    "gemini": (("gemini-2.5-pro", 1_048_576), ("gemini-1.5-flash", 1_000_000)),
    "codex": (("gpt-5.2-codex", 258_400),),
}
"""Models, and the window with which the runtime uses them."""

_OUTCOMES: tuple[AttemptOutcome, ...] = (
    "done", "done", "slow", "done", "failed", "done", "lost-end", "done", "unmarked",
    "blocked", "done", "lost-start",
)  # fmt: skip
"""Outcomes of successive compaction attempts; most succeed, as in real sessions."""

_STAGGER_MS = 20_000
"""Sessions start within this time, multiplied by their number."""

_GROWTH_TOKENS = 900
"""Median size of a tool result in real transcripts: 3.6 KB."""

_RESPONSES_PER_WINDOW = 22
"""A sample session grows so fast that its window fills within about this many responses."""

_SAMPLES: tuple[tuple[DialectName, str, dict[str, object]], ...] = (
    ("claude-stream", "claude-sonnet-4-5-20250929", {
        "turns": 9, "outcomes": ("done", "slow"), "manual_each": 6, "subagents": 0.3,
        "is_late": True,
    }),
    ("claude-stream", "claude-opus-4-5-20251101", {
        "turns": 16, "outcomes": ("failed", "blocked", "done", "lost-end", "lost-start"),
        "growth_tokens": 7_000, "reset_each": 15, "is_partial": True,
    }),
    ("claude-stream", "claude-sonnet-4-5-20250929[1m]", {
        "turns": 7, "outcomes": ("done",), "subagents": 0.3, "edits": 0.05, "rare": 0.5,
    }),
    ("claude-stream", "claude-sonnet-4-5-20250929", {
        "turns": 13, "outcomes": ("unmarked", "lost-end", "server"), "growth_tokens": 12_000,
        "has_timestamps": False, "exhausted_each": 3, "repeats": 0.1,
    }),
    ("claude-transcript", "claude-sonnet-4-5-20250929", {"turns": 9, "subagents": 0.3}),
    ("claude-transcript", "claude-opus-4-1-20250805", {
        "turns": 6, "outcomes": ("unmarked",), "manual_each": 4, "reset_each": 6,
    }),
    ("claude-transcript", "claude-sonnet-4-5-20250929", {
        "turns": 6, "edits": 0.1, "resume_each": 5, "subagents": 0.5, "is_early": True,
    }),
    ("openai-chat", "gpt-4o-2024-08-06", {"turns": 5}),
    ("openai-responses", "gpt-5.2", {"turns": 7, "subagents": 0.2}),
    ("gemini", "gemini-2.5-pro", {"turns": 6}),
    ("codex", "gpt-5.2-codex", {"turns": 7}),
    ("openai-chat", "gpt-4", {"turns": 3, "has_timestamps": False}),
)  # fmt: skip
"""The sample: dialect, model, and what else its plan says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """What to simulate. `turns` is the median length of a session; a turn has about 12 messages."""

    seed: int = 1
    sessions: int = 10
    providers: tuple[str, ...] = tuple(PROVIDERS)
    turns: int = 40
    start_ms: int = DEFAULT_START_MS


def plans(options: SimulationOptions) -> Iterator[SessionPlan]:
    """Yield session plans without end; the first `options.sessions` start together."""
    dialects = [name for provider in options.providers for name in PROVIDERS[provider]]
    for index in count():
        random = RandomSource(f"{options.seed}/plan/{index}")
        dialect = dialects[index % len(dialects)]
        models = _MODELS[dialect]
        model, window = models[random.integer(0, len(models) - 1)]
        begin = random.integer(0, len(_OUTCOMES) - 1)
        yield SessionPlan(
            dialect=dialect,
            seed=f"{options.seed}/{index}",
            session_id=random.uuid(),
            start_ms=options.start_ms + random.integer(0, _STAGGER_MS * options.sessions),
            model=model,
            window=window,
            turns=max(1, random.size(options.turns, 0.5, options.turns * 5)),
            growth_tokens=min(_GROWTH_TOKENS, window // 20),
            outcomes=_OUTCOMES[begin:] + _OUTCOMES[:begin],
            manual_each=random.integer(15, 40) if random.chance(0.5) else 0,
            reset_each=random.integer(20, 60) if random.chance(0.3) else 0,
            exhausted_each=random.integer(30, 90) if random.chance(0.2) else 0,
            subagents=0.0 if dialect == "codex" else 0.08,
            edits=0.03 if random.chance(0.3) else 0.0,
            noise=0.25,
            is_partial=random.chance(0.2),
            has_timestamps=random.chance(0.8),
            is_late=random.chance(0.3),
            repeats=0.01 if random.chance(0.3) else 0.0,
            resume_each=random.integer(10, 40) if random.chance(0.2) else 0,
        )


def sample_plans(options: SimulationOptions) -> list[SessionPlan]:
    """Return the plans of about a dozen short sessions that show every kind of message and outcome.

    Of the options, only the seed, the start and the providers apply.
    """
    dialects = {dialect for provider in options.providers for dialect in PROVIDERS[provider]}
    return [
        _sample(options, number, dialect, model, fields)
        for number, (dialect, model, fields) in enumerate(_SAMPLES, 1)
        if dialect in dialects
    ]


def _sample(
    options: SimulationOptions,
    number: int,
    dialect: DialectName,
    model: str,
    fields: dict[str, object],
) -> SessionPlan:
    window = dict(_MODELS[dialect])[model]
    random = RandomSource(f"{options.seed}/sample/{number}")
    growth: dict[str, object] = {"growth_tokens": window // _RESPONSES_PER_WINDOW}
    return SessionPlan(
        dialect=dialect,
        seed=f"{options.seed}/sample/{number}/story",
        session_id=random.uuid(),
        start_ms=options.start_ms + random.integer(0, _STAGGER_MS * 10),
        model=model,
        window=window,
        noise=0.1,
        **growth | fields,  # type: ignore[arg-type]  # fields of SessionPlan, by name
    )
