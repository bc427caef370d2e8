"""A simulated session: its plan, its chains, and the script that all runtimes share.

A `SessionPlan` says how a session goes. `SimulatedSession` turns it into steps (a prompt, a
response, a compaction), and the class of the session's runtime writes each step as messages.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias

from contextgauge.windows import base_name
from schemas.records import Json
from streams import codec
from streams.flow.simulator.random_source import RandomSource

DialectName: TypeAlias = Literal[
    "claude-stream",
    "claude-transcript",
    "openai-chat",
    "openai-responses",
    "gemini",
    "codex",
]

AttemptOutcome: TypeAlias = Literal[
    "done", "unmarked", "failed", "blocked", "lost-end", "lost-start", "slow", "server"
]
"""How a compaction attempt goes. `unmarked` ends with a bare null status as older runtimes send
it, `slow` sends heartbeats; with `lost-end` and `lost-start` that part is never sent. `server` is
a compaction by Anthropic's API, within a response."""

EndReason: TypeAlias = Literal["completed", "prompt_too_long", "blocking_limit"]

_RESERVE_TOKENS = 33_000
"""What Claude Code keeps free: with a window of 200 000 it compacts at 167 000."""
_RESERVE_DIVISOR = 4
"""Of a small window a quarter is kept free."""
_RESUMED_MESSAGES = 40
CHARACTERS_PER_TOKEN = 4
_LONGEST_RESULT_CHARACTERS = 30_000
"""Claude Code truncates a tool result there; the tokens above it are images, counted but not
shown."""


def iso(time_ms: int) -> str:
    """Return a time in the format of the runtimes' timestamps."""
    time = datetime.fromtimestamp(time_ms // 1000, UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


class SimulatedMessage(NamedTuple):
    """One message. `value` is its line without the line end.

    `file` is its place in a folder laid out like Claude Code's projects, or Codex's sessions.
    `is_named` is False where the message does not contain its session: the file or the Kafka key
    identifies it.
    """

    at_ms: int
    session_id: str
    file: str
    value: bytes
    is_named: bool

    def named(self) -> bytes:
        """Return the line with its session in it, for where neither file nor key contains it."""
        if self.is_named:
            return self.value
        return self.value[:-1] + b',"session_id":' + codec.dumps(self.session_id) + b"}"


class SimulatedTokens(NamedTuple):
    """Tokens of one response; the three input parts do not overlap."""

    input: int
    creation: int
    read: int
    output: int

    @property
    def used(self) -> int:
        """Tokens in the context, without output."""
        return self.input + self.creation + self.read

    def plus(self, other: "SimulatedTokens") -> "SimulatedTokens":
        """Return the sum, part by part."""
        return SimulatedTokens(*(a + b for a, b in zip(self, other, strict=True)))


NO_TOKENS = SimulatedTokens(0, 0, 0, 0)

SUBAGENT_TYPE = "general-purpose"
"""The type of Claude Code's subagents that have no other."""


@dataclass(slots=True)
class SimulatedChain:
    """A conversation with a model, and the tokens in its context."""

    model: str
    system_tokens: int
    agent_id: str | None = None
    tool_use_id: str | None = None
    cached_tokens: int = 0
    new_tokens: int = 0
    last_uuid: str | None = None

    @property
    def used_tokens(self) -> int:
        """Input tokens of the next response."""
        return self.cached_tokens + self.new_tokens


class ModelResponse(NamedTuple):
    """One API response in a chain."""

    chain: SimulatedChain
    usage: SimulatedTokens
    edits: tuple[dict[str, Json], ...] = ()
    with_iterations: bool = False
    tool: bool = False
    is_compacted: bool = False
    """The API compacted the context within this response."""


class CompactionAttempt(NamedTuple):
    """One attempt to compact a chain."""

    outcome: AttemptOutcome
    is_manual: bool
    pre_tokens: int
    post_tokens: int
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """How one session goes. Probabilities are per response, unless stated otherwise."""

    dialect: DialectName
    seed: str
    session_id: str
    start_ms: int
    model: str
    """As the runtime reports it, possibly with a suffix such as `[1m]`."""
    window: int
    turns: int
    growth_tokens: int
    """Median of what a tool result adds to the context."""
    outcomes: tuple[AttemptOutcome, ...] = ("done",)
    """Outcomes of the compaction attempts, in turn."""
    manual_each: int = 0
    """A manual compaction every so many turns; 0: never."""
    reset_each: int = 0
    """A cleared conversation every so many turns; 0: never."""
    exhausted_each: int = 0
    """A turn that ends for lack of room every so many turns; 0: never."""
    subagents: float = 0.0
    """Probability per turn."""
    edits: float = 0.0
    tool_loops: float = 0.1
    """Claude's responses that consist of several calls, with the API's own tools."""
    noise: float = 0.0
    """Messages without effect on the context: progress, tasks, rate limits, snapshots."""
    is_partial: bool = False
    """A stream with `stream_event` frames."""
    has_timestamps: bool = True
    is_late: bool = False
    """A runtime version whose stream has timestamps on every frame, not only on conversation."""
    is_early: bool = False
    """A Claude Code before 2.1: subagents write to the main file, without an `agentId`."""
    rare: float = 0.0
    """Rare frames of Claude's stream: retries, estimates, background tasks, `/context`."""
    repeats: float = 0.0
    """A message sent twice in a row, as a publisher's retry does."""
    resume_each: int = 0
    """The last messages sent again every so many turns, as after a resume; 0: never."""


class SimulatedSession:
    """A session that runs: turns of prompts, responses and tool calls, and compactions in between.

    A runtime's class overrides the public steps; one that it has no message for goes unreported.
    """

    def __init__(self, plan: SessionPlan) -> None:
        self.plan, self.now_ms = plan, plan.start_ms
        self.random = RandomSource(plan.seed)
        self.main = SimulatedChain(base_name(plan.model)[0], 0)
        self._emitted: list[SimulatedMessage] = []
        self._recent: list[SimulatedMessage] = []
        self._attempts = 0

    def begin(self) -> None:
        """Open the session."""

    def prompt(self, chain: SimulatedChain, text: str) -> None:
        """Report a prompt of the user, or of the agent that calls a subagent."""

    def respond(self, response: ModelResponse) -> None:
        """Report one API response, in as many messages as the runtime uses for it."""

    def tool_result(self, chain: SimulatedChain, text: str) -> None:
        """Report a tool's result."""

    def subagent_result(self, subagent: SimulatedChain) -> None:
        """Report the end of a subagent to the main chain."""

    def compact(self, chain: SimulatedChain, attempt: CompactionAttempt) -> bool:
        """Report an attempt to compact; return whether the context became smaller.

        By default the client drops old messages, and only the next reading shows it.
        """
        del chain
        self.now_ms += attempt.duration_ms
        return True

    def reset(self) -> None:
        """Report that the conversation was cleared."""

    def noise(self, chain: SimulatedChain) -> None:
        """Send a message that has no effect on the context."""

    def end_turn(self, reason: EndReason) -> None:
        """Report the end of a turn."""

    def file_of(self, agent_id: str | None) -> str:
        """Return the file that a message is written to, of a subagent where one is named."""
        del agent_id
        return f"streams/{self.plan.session_id}.jsonl"

    def emit(
        self, body: dict[str, Json], agent_id: str | None = None, *, is_named: bool = True
    ) -> None:
        """Emit one message at the current time."""
        file, value = self.file_of(agent_id), codec.dumps(body)
        self._emitted.append(
            SimulatedMessage(self.now_ms, self.plan.session_id, file, value, is_named)
        )

    def take(self) -> list[SimulatedMessage]:
        """Return the messages emitted since the last call."""
        messages, self._emitted = self._emitted, []
        return messages

    def wait(self, low_ms: int, high_ms: int) -> None:
        """Advance the session's clock by a random time."""
        self.now_ms += self.random.integer(low_ms, high_ms)

    def run(self) -> Iterator[SimulatedMessage]:
        """Yield all messages in order; the same plan gives the same messages."""
        system_tokens = min(self.random.integer(14_000, 24_000), self.plan.window // 6)
        self.main.system_tokens = self.main.new_tokens = system_tokens
        self.begin()
        for turn in range(1, self.plan.turns + 1):
            yield from self._turn(turn)
        yield from self._drain()

    def _turn(self, turn: int) -> Iterator[SimulatedMessage]:
        plan, random, main = self.plan, self.random, self.main

        def is_due(each: int) -> bool:
            return each > 0 and turn % each == 0

        self.wait(2_000, 240_000)
        if is_due(plan.resume_each):
            yield from [each._replace(at_ms=self.now_ms) for each in self._recent]
        if is_due(plan.reset_each):
            self.reset()
            main.cached_tokens, main.new_tokens = 0, main.system_tokens
        elif is_due(plan.manual_each):
            self._attempt(is_manual=True)
            yield from self._drain()
            return
        text = random.text(random.size(300, 1.0, min(12_000, plan.window // 5)))
        main.new_tokens += len(text) // CHARACTERS_PER_TOKEN
        self.prompt(main, text)
        self.wait(500, 4_000)
        room = min(_RESERVE_TOKENS, plan.window // _RESERVE_DIVISOR)
        for _ in range(random.integer(1, 9)):
            if main.used_tokens > plan.window - room:
                self._attempt(is_manual=False)
            self._step(main)
            yield from self._drain()
        if random.chance(plan.subagents):
            yield from self._subagent()
        self.end_turn("prompt_too_long" if is_due(plan.exhausted_each) else "completed")
        yield from self._drain()

    def _drain(self) -> Iterator[SimulatedMessage]:
        """Yield the emitted messages, some of them twice; remember the last for a resume."""
        for message in self.take():
            yield message
            if self.random.chance(self.plan.repeats):
                yield message
            if self.plan.resume_each:
                self._recent.append(message)
        del self._recent[:-_RESUMED_MESSAGES]

    def _step(self, chain: SimulatedChain) -> None:
        """Let a chain's model respond, and run the tool that it calls, if any."""
        random, plan = self.random, self.plan
        edits: tuple[dict[str, Json], ...] = ()
        if random.chance(plan.edits):
            cleared = chain.cached_tokens // 4
            chain.cached_tokens -= cleared
            edit: dict[str, Json] = {
                "type": "clear_tool_uses_20250919",
                "cleared_tool_uses": random.integer(1, 30),
                "cleared_input_tokens": cleared,
            }
            edits = (edit,)
        fresh = min(random.integer(2, 12), chain.new_tokens)
        output = random.size(180, 1.0, min(6_000, plan.window // 20))
        usage = SimulatedTokens(fresh, chain.new_tokens - fresh, chain.cached_tokens, output)
        uses_tool, is_loop = random.chance(0.8), random.chance(plan.tool_loops)
        self.respond(ModelResponse(chain, usage, edits, is_loop, uses_tool))
        chain.cached_tokens, chain.new_tokens = usage.used, usage.output
        self.wait(1_500, 25_000)
        if random.chance(plan.noise):
            self.noise(chain)
        if uses_tool:
            tokens = random.size(plan.growth_tokens, 0.9, plan.window // 20)
            chain.new_tokens += tokens
            characters = min(tokens * CHARACTERS_PER_TOKEN, _LONGEST_RESULT_CHARACTERS)
            self.tool_result(chain, random.text(characters))
            self.wait(50, 3_000)

    def _subagent(self) -> Iterator[SimulatedMessage]:
        random = self.random
        system_tokens = random.integer(3_000, 9_000)
        chain = SimulatedChain(
            self.main.model,
            system_tokens,
            agent_id=f"{random.tag}{random.integer(0, 0xFFFF):04x}",
            tool_use_id=random.key("toolu_"),
            new_tokens=system_tokens,
        )
        self.prompt(chain, random.text(random.size(900, 0.7, 6_000)))
        for _ in range(random.integer(2, 8)):
            self._step(chain)
            yield from self._drain()
        self.subagent_result(chain)

    def _attempt(self, *, is_manual: bool) -> None:
        random, main = self.random, self.main
        outcome: AttemptOutcome = "done"
        # With hardly any room left it must succeed.
        if main.used_tokens <= self.plan.window * 9 // 10:
            outcome = self.plan.outcomes[self._attempts % len(self.plan.outcomes)]
            self._attempts += 1
        attempt = CompactionAttempt(
            outcome=outcome,
            is_manual=is_manual,
            pre_tokens=main.used_tokens + random.integer(-400, 900),
            post_tokens=random.integer(1_200, 9_000),
            duration_ms=random.integer(9_000, 140_000),
        )
        if self.compact(main, attempt):
            preserved = min(random.integer(4_000, 16_000), self.plan.window // 6)
            main.cached_tokens, main.new_tokens = 0, main.system_tokens + preserved
