"""How a session goes: turns of prompts, responses and tool calls, and compactions in between."""

from collections.abc import Callable, Iterator

from schemas.records import Json
from streams.flow.simulator.claude_stream import ClaudeStream
from streams.flow.simulator.claude_transcript import ClaudeTranscript
from streams.flow.simulator.codex import Codex
from streams.flow.simulator.published_responses import Gemini, OpenAIChat, OpenAIResponses
from streams.flow.simulator.random_source import RandomSource
from streams.flow.simulator.session import (
    AttemptOutcome,
    CompactionAttempt,
    Dialect,
    DialectName,
    EmittedMessage,
    ModelResponse,
    SessionPlan,
    SimulatedChain,
    SimulatedSession,
    TokenCounts,
)

DIALECTS: dict[DialectName, Callable[[SimulatedSession], Dialect]] = {
    "claude-stream": ClaudeStream,
    "claude-transcript": ClaudeTranscript,
    "openai-chat": OpenAIChat,
    "openai-responses": OpenAIResponses,
    "gemini": Gemini,
    "codex": Codex,
}

_RESERVE_TOKENS = 33_000
"""What Claude Code keeps free: with a window of 200 000 it compacts at 167 000."""
_RESERVE_DIVISOR = 4
"""Of a small window a quarter is kept free."""
_RESUMED_MESSAGES = 40
_CHARACTERS_PER_TOKEN = 4
_LONGEST_RESULT_CHARACTERS = 30_000
"""Claude Code truncates a tool result there; the tokens above it are images, counted but not
shown."""


def session_messages(plan: SessionPlan) -> Iterator[EmittedMessage]:
    """Yield a session's messages in order; the same plan gives the same messages."""
    yield from _SessionScript(plan).run()


class _SessionScript:
    def __init__(self, plan: SessionPlan) -> None:
        self._plan = plan
        self._random = RandomSource(plan.seed)
        self._session = SimulatedSession(plan, self._random, plan.start_ms)
        self._dialect = DIALECTS[plan.dialect](self._session)
        system_tokens = min(self._random.integer(14_000, 24_000), plan.window // 6)
        self._main = SimulatedChain(plan.base_model, system_tokens, new_tokens=system_tokens)
        self._attempts = 0
        self._recent: list[EmittedMessage] = []

    def run(self) -> Iterator[EmittedMessage]:
        self._dialect.begin(self._main)
        for turn in range(1, self._plan.turns + 1):
            yield from self._turn(turn)
        yield from self._drain()

    def _turn(self, turn: int) -> Iterator[EmittedMessage]:
        plan, random = self._plan, self._random
        self._session.wait(2_000, 240_000)
        if _is_due(turn, plan.resume_each):
            yield from [each._replace(at_ms=self._session.now_ms) for each in self._recent]
        if _is_due(turn, plan.reset_each):
            self._reset()
        elif _is_due(turn, plan.manual_each):
            self._compact(is_manual=True)
            yield from self._drain()
            return
        self._prompt()
        for _ in range(random.integer(1, 9)):
            if self._main.used_tokens > self._compact_at():
                self._compact(is_manual=False)
            self._respond(self._main)
            yield from self._drain()
        if random.chance(plan.subagents):
            yield from self._subagent()
        exhausted = _is_due(turn, plan.exhausted_each)
        self._dialect.end_turn(self._main, "prompt_too_long" if exhausted else "completed")
        yield from self._drain()

    def _drain(self) -> Iterator[EmittedMessage]:
        """Yield the emitted messages, some of them twice; remember the last for a resume."""
        for message in self._session.take():
            yield message
            if self._random.chance(self._plan.repeats):
                yield message
            if self._plan.resume_each:
                self._recent.append(message)
        del self._recent[:-_RESUMED_MESSAGES]

    def _compact_at(self) -> int:
        window = self._plan.window
        return window - min(_RESERVE_TOKENS, window // _RESERVE_DIVISOR)

    def _prompt(self) -> None:
        text = self._random.text(self._random.size(300, 1.0, min(12_000, self._plan.window // 5)))
        self._main.new_tokens += len(text) // _CHARACTERS_PER_TOKEN
        self._dialect.prompt(self._main, text)
        self._session.wait(500, 4_000)

    def _respond(self, chain: SimulatedChain) -> None:
        random = self._random
        edits: tuple[dict[str, Json], ...] = ()
        if random.chance(self._plan.edits):
            cleared = chain.cached_tokens // 4
            chain.cached_tokens -= cleared
            edits = (_edit(random, cleared),)
        fresh = min(random.integer(2, 12), chain.new_tokens)
        output = random.size(180, 1.0, min(6_000, self._plan.window // 20))
        usage = TokenCounts(fresh, chain.new_tokens - fresh, chain.cached_tokens, output)
        uses_tool = random.chance(0.8)
        is_loop = random.chance(self._plan.tool_loops)
        self._dialect.respond(ModelResponse(chain, usage, edits, is_loop, uses_tool))
        chain.cached_tokens = usage.used
        chain.new_tokens = usage.output
        self._session.wait(1_500, 25_000)
        if random.chance(self._plan.noise):
            self._dialect.noise(chain)
        if uses_tool:
            tokens = random.size(self._plan.growth_tokens, 0.9, self._plan.window // 20)
            chain.new_tokens += tokens
            characters = min(tokens * _CHARACTERS_PER_TOKEN, _LONGEST_RESULT_CHARACTERS)
            self._dialect.tool_result(chain, random.text(characters))
            self._session.wait(50, 3_000)

    def _subagent(self) -> Iterator[EmittedMessage]:
        random = self._random
        system_tokens = random.integer(3_000, 9_000)
        chain = SimulatedChain(
            self._main.model,
            system_tokens,
            agent_id=f"{random.tag}{random.integer(0, 0xFFFF):04x}",
            tool_use_id=random.key("toolu_"),
            new_tokens=system_tokens,
        )
        self._dialect.prompt(chain, random.text(random.size(900, 0.7, 6_000)))
        for _ in range(random.integer(2, 8)):
            self._respond(chain)
            yield from self._drain()
        self._dialect.subagent_result(self._main, chain)

    def _next_outcome(self) -> AttemptOutcome:
        """Return the attempt's outcome; with hardly any room left it must succeed."""
        if self._main.used_tokens > self._plan.window * 9 // 10:
            return "done"
        self._attempts += 1
        return self._plan.outcomes[(self._attempts - 1) % len(self._plan.outcomes)]

    def _compact(self, *, is_manual: bool) -> None:
        random, main = self._random, self._main
        attempt = CompactionAttempt(
            outcome=self._next_outcome(),
            is_manual=is_manual,
            pre_tokens=main.used_tokens + random.integer(-400, 900),
            post_tokens=random.integer(1_200, 9_000),
            duration_ms=random.integer(9_000, 140_000),
        )
        if self._dialect.compact(main, attempt):
            main.cached_tokens = 0
            preserved = min(random.integer(4_000, 16_000), self._plan.window // 6)
            main.new_tokens = main.system_tokens + preserved

    def _reset(self) -> None:
        self._dialect.reset(self._main)
        self._main.cached_tokens = 0
        self._main.new_tokens = self._main.system_tokens


def _is_due(turn: int, each: int) -> bool:
    return each > 0 and turn % each == 0


def _edit(random: RandomSource, cleared: int) -> dict[str, Json]:
    return {
        "type": "clear_tool_uses_20250919",
        "cleared_tool_uses": random.integer(1, 30),
        "cleared_input_tokens": cleared,
    }
