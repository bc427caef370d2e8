"""The tokens of each call under another size: what is read from the cache, what is written to it.

A response whose recorded tokens are known keeps them, but for the difference in size: that was read
from the cache where the recorded response read the conversation before it from there, and written
where the cache had expired. Where a recorded compaction falls away or another comes, the rules of
the cache decide: what was in it stays for its lifetime after the last response, and a response
after a compaction finds only system prompt and tools in it.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from streams.core.whatif.compaction_facts import CompactionFacts
from streams.core.whatif.replay import GrowthPath, ReplayedCompaction
from streams.core.whatif.turns import ChainLog, ChainTurn, RecordedCompaction

Cache: TypeAlias = Literal["as_recorded", "warm", "cold"]
"""`warm`: the conversation before a response is always in the cache. `cold`: nothing ever is."""

CACHES: Final[tuple[Cache, ...]] = ("as_recorded", "warm", "cold")

SHORT_LIFETIME_MS: Final = 5 * 60 * 1000
LONG_LIFETIME_MS: Final = 60 * 60 * 1000
"""For how long providers keep a prompt after its last use: five minutes, or the hour that is paid
for when it is written."""


class CallTokens(NamedTuple):
    """One call's tokens: fresh, written to the cache for five minutes or an hour, read, output."""

    input: int = 0
    write_5m: int = 0
    write_1h: int = 0
    read: int = 0
    output: int = 0

    def plus(self, other: "CallTokens") -> "CallTokens":
        """Return the sum."""
        return CallTokens(
            self.input + other.input,
            self.write_5m + other.write_5m,
            self.write_1h + other.write_1h,
            self.read + other.read,
            self.output + other.output,
        )

    @property
    def prompt(self) -> int:
        """All tokens but the output."""
        return self.input + self.write_5m + self.write_1h + self.read


NO_TOKENS: Final = CallTokens()


class CachedCalls:
    """The calls of one chain, with a cache as it was recorded, warm, or cold."""

    def __init__(self, log: ChainLog, facts: CompactionFacts, cache: Cache) -> None:
        self._log, self._facts, self._cache = log, facts, cache
        creation = sum(turn.creation for turn in log.turns)
        self._hour = sum(turn.creation_1h for turn in log.turns) / creation if creation else 0.0
        self._writes = creation > 0
        self._reads = any(turn.read for turn in log.turns)
        self.lifetime_ms = LONG_LIFETIME_MS if self._hour * 2 > 1 else SHORT_LIFETIME_MS

    def response(self, at: int, size: int, previous: int | None) -> CallTokens:
        """Return the tokens of the response `at` with this size.

        `previous` is the size of the response before it; None where a compaction, a reset or
        nothing came before it.
        """
        turn, between = self._log.turns[at], self._log.between[at]
        before: int | None = None
        if at and not between.compactions and not between.is_reset:
            before = self._log.turns[at - 1].used
        if self._cache != "as_recorded":
            return self._split(turn, size, self._read_by_rule(size, previous))
        if (previous is None) != (before is None):
            warm = previous if previous is not None and self._is_kept(at) else None
            return self._split(turn, size, self._read_by_rule(size, warm))
        difference = size - turn.used
        if before is None or not self._was_warm(turn, before):
            return self._split(turn, size, min(turn.read, size))
        return self._split(turn, size, max(0, turn.read + difference))

    def summary(self, compaction: ReplayedCompaction) -> CallTokens:
        """Return the tokens of the call that wrote a compaction's summary.

        It reads the whole context. The call of a recorded one, of the size that it had, is as it
        was reported.
        """
        kept, recorded = compaction.kept, compaction.recorded
        if kept is not None and not kept.has_call:
            return NO_TOKENS
        output = _summary_output(compaction, self._facts) or 0
        if self._is_as_recorded(compaction) and recorded is not None:
            return self._reported(recorded, output)
        read = 0
        if self._cache == "warm" or (self._cache == "as_recorded" and self._is_kept(compaction.at)):
            read = compaction.previous if self._reads else 0
        read = min(read, compaction.before)
        return self._call(compaction.before - read, read, output)

    def _is_as_recorded(self, compaction: ReplayedCompaction) -> bool:
        recorded = compaction.recorded
        return (
            self._cache == "as_recorded"
            and recorded is not None
            and recorded.summary_input is not None
            and compaction.previous == self._recorded_size(compaction.at - 1)
        )

    def _reported(self, recorded: RecordedCompaction, output: int) -> CallTokens:
        prompt = recorded.summary_input or 0
        read = min(recorded.summary_read or 0, prompt)
        written = recorded.summary_written
        if written is None:
            return self._call(prompt - read, read, output)
        hour = min(recorded.summary_written_1h or 0, written)
        return CallTokens(max(0, prompt - read - written), written - hour, hour, read, output)

    def _recorded_size(self, at: int) -> int:
        return self._log.turns[at].used if at >= 0 else 0

    def _call(self, rest: int, read: int, output: int) -> CallTokens:
        if not self._writes:
            return CallTokens(rest, 0, 0, read, output)
        hour = round(rest * self._hour)
        return CallTokens(0, rest - hour, hour, read, output)

    def _read_by_rule(self, size: int, previous: int | None) -> int:
        """Return what is read of a prompt: what was in the one before it, else the prefix."""
        if not self._reads or self._cache == "cold":
            return 0
        return min(self._facts.prefix if previous is None else previous, size)

    def _is_kept(self, at: int) -> bool:
        """Return whether the cache still had the prompt of the response before a place.

        The time of a recorded compaction in that place is no silence. Unknown times are short.
        """
        if at == 0:
            return False
        between = self._log.between[at]
        began_ms = self._log.turns[at - 1].time_ms
        ended_ms = self._log.turns[at].time_ms if at < len(self._log.turns) else None
        if between.compactions and ended_ms is None:
            ended_ms = between.compactions[0].time_ms
        if began_ms is None or ended_ms is None:
            return True
        busy = sum(each.duration_ms or 0 for each in between.compactions)
        return ended_ms - began_ms - busy <= self.lifetime_ms

    def _was_warm(self, turn: ChainTurn, before: int) -> bool:
        """Return whether the response read most of the conversation before it from the cache."""
        prefix = min(self._facts.prefix, before)
        return self._reads and 2 * (turn.read - prefix) >= before - prefix

    def _split(self, turn: ChainTurn, size: int, read: int) -> CallTokens:
        """Divide a prompt: what is not read is written as far as the provider writes."""
        if not self._writes:
            return CallTokens(size - read, 0, 0, read, turn.output)
        fresh = min(turn.input, size - read)
        written = size - read - fresh
        hour = self._hour
        if turn.creation:
            hour = turn.creation_1h / turn.creation
        long = round(written * hour)
        return CallTokens(fresh, written - long, long, read, turn.output)


def _summary_output(compaction: ReplayedCompaction, facts: CompactionFacts) -> int | None:
    """Return the tokens of a summary: reported, of its text, else the median; None: unknown."""
    recorded = compaction.recorded
    own = None if recorded is None else recorded.summary_output or recorded.summary_tokens
    return own or (None if facts.summary is None else facts.summary.middle)


def is_summary_known(compaction: ReplayedCompaction, facts: CompactionFacts) -> bool:
    """Return whether the output of the call that wrote a summary is known; True without one."""
    kept = compaction.kept
    has_call = kept is None or kept.has_call
    return not has_call or _summary_output(compaction, facts) is not None


def usages(
    log: ChainLog, path: GrowthPath, calls: CachedCalls
) -> tuple[list[CallTokens], list[CallTokens]]:
    """Return the tokens of a path's responses, and of its compactions' own calls."""
    begins = {each.at for each in path.compactions}
    responses = []
    for at, size in enumerate(path.sizes):
        is_first = at == 0 or at in begins or log.between[at].is_reset
        responses.append(calls.response(at, size, None if is_first else path.sizes[at - 1]))
    return responses, [calls.summary(each) for each in path.compactions]
