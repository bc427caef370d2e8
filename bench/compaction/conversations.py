"""Generated coding sessions with known answers: the same seed gives the same session.

A session has rounds. In each the user asks for things, the agent reads, edits and runs, and most of
the tokens are results of tools. Hidden among that are the user's sentences whose survival is
measured: constraints, early and late, which stay valid, and values that a later sentence replaces
in other words, without repeating the old value.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from bench.compaction import wording
from bench.compaction.values import Values
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.messages import Block, Message, Text, ToolCall, ToolResult
from contextgauge.json_codec import dumps

CONSTRAINTS_A_ROUND: Final = 4
"""Of five rounds fewer than there are phrases: a second one of the same would be a replacement."""

CHANGING_TOPICS: Final = 10
EARLY: Final = 3
"""Constraints that the first two turns lay down."""

PASTED: Final = 0.2
"""Share of the user's turns that end with pasted code."""

UNFINISHED: Final = 0.5
"""Share of the rounds that end with a tool's result, before the model's next call."""

SILENT: Final = 0.4
"""Share of the calls that the agent makes without a word."""

FAILED: Final = 0.2
"""Share of the commands that fail."""

SYSTEM: Final = "You are a coding agent. Use the tools; do what the user asks. " * 8


class Constraint(NamedTuple):
    """A value that the user laid down in a round and that stays valid."""

    round: int
    value: str


class Topic(NamedTuple):
    """Values of one thing in the order in which the user gave them, each with its round."""

    values: tuple[Constraint, ...]


@dataclass(frozen=True)
class Conversation:
    """A session: its messages round by round, and what is to be known of it."""

    rounds: tuple[tuple[Message, ...], ...]
    constraints: tuple[Constraint, ...]
    topics: tuple[Topic, ...]


def generate(seed: int, *, rounds: int, round_tokens: int) -> Conversation:
    """Return a session of rounds of about this many tokens each."""
    return _Session(seed, round_tokens).play(rounds)


class _Session:
    """Plays one session: first all turns without what is measured, then that is put into them."""

    def __init__(self, seed: int, round_tokens: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311 -- a repeatable session, not a secret
        self.values = Values(self.rng)
        self.round_tokens = round_tokens
        self.files: dict[str, str] = {}
        self.number = 0

    def play(self, rounds: int) -> Conversation:
        turns = [self._round() for _ in range(rounds)]
        places = [(number, at) for number, each in enumerate(turns) for at in range(len(each))]
        sentences: dict[tuple[int, int], list[str]] = {}
        constraints = self._constraints(rounds, places, sentences)
        topics = self._topics(places, sentences)
        messages: list[tuple[Message, ...]] = []
        for number, each in enumerate(turns):
            spoken: list[Message] = []
            for at, turn in enumerate(each):
                spoken += [self._user(turn.request, sentences.get((number, at), ())), *turn.work]
            messages.append(tuple(spoken))
        system = Message("system", (Text(SYSTEM),), id="system")
        messages[0] = (system, *messages[0])
        return Conversation(tuple(messages), constraints, topics)

    def _constraints(
        self,
        rounds: int,
        places: Sequence[tuple[int, int]],
        sentences: dict[tuple[int, int], list[str]],
    ) -> tuple[Constraint, ...]:
        early = [place for place in places if place[0] == 0][:2]
        given: list[Constraint] = []
        phrases = _endless(self.rng)
        for count in range(rounds * CONSTRAINTS_A_ROUND):
            phrase = next(phrases)
            value = self.values.of(phrase.kind)
            of_round = [each for each in places if each[0] == count // CONSTRAINTS_A_ROUND]
            place = self.rng.choice(early if count < EARLY else of_round)
            sentences.setdefault(place, []).append(phrase.text.format(v=value))
            given.append(Constraint(place[0], value))
        return tuple(given)

    def _topics(
        self, places: Sequence[tuple[int, int]], sentences: dict[tuple[int, int], list[str]]
    ) -> tuple[Topic, ...]:
        topics: list[Topic] = []
        for changing in self.rng.sample(wording.CHANGING, CHANGING_TOPICS):
            count = min(self.rng.choice((2, 2, 3)), len(places))
            stated = sorted(self.rng.sample(range(len(places)), count))
            texts = (changing.first, *self.rng.sample(changing.later, len(stated) - 1))
            values: list[Constraint] = []
            for index, text in zip(stated, texts, strict=True):
                value = self.values.of(changing.kind)
                sentences.setdefault(places[index], []).append(text.format(v=value))
                values.append(Constraint(places[index][0], value))
            topics.append(Topic(tuple(values)))
        return tuple(topics)

    def _user(self, request: list[str], sentences: Sequence[str]) -> Message:
        parts = list(request)
        for each in sentences:
            parts.insert(self.rng.randrange(len(parts) + 1), each)
        text = " ".join(parts)
        if self.rng.random() < PASTED:
            text += f"\n\n```\n{self._lines(self.rng.randrange(300, 2_500))}```"
        return Message("user", (Text(text),), id=self._id())

    def _round(self) -> list["_Turn"]:
        turns: list[_Turn] = []
        tokens = 0
        while tokens < self.round_tokens:
            turn = self._turn()
            tokens += 60 + sum(map(ESTIMATE.message, turn.work))
            turns.append(turn)
        if self.rng.random() < UNFINISHED:
            turns[-1].work.pop()
        return turns

    def _turn(self) -> "_Turn":
        request = [self._say(wording.REQUESTS)]
        request += [self._say(wording.TALK) for _ in range(self.rng.randrange(1, 6))]
        work: list[Message] = []
        for _ in range(self.rng.randrange(1, 7)):
            calls, results = self._calls()
            blocks: tuple[Block, ...] = (Text(self._say(wording.PROGRESS)), *calls)
            work.append(Message("assistant", blocks[self.rng.random() < SILENT :], id=self._id()))
            work += [Message("tool", (each,), id=self._id()) for each in results]
        answer = " ".join(self._say(wording.ANSWERS) for _ in range(self.rng.randrange(1, 4)))
        work.append(Message("assistant", (Text(answer),), id=self._id()))
        return _Turn(request, work)

    def _calls(self) -> tuple[list[ToolCall], list[ToolResult]]:
        pairs = [self._call() for _ in range(self.rng.choice((1, 1, 1, 1, 2, 3)))]
        return [call for call, _ in pairs], [result for _, result in pairs]

    def _call(self) -> tuple[ToolCall, ToolResult]:
        tool = self.rng.choices(("read", "edit", "write", "bash"), (5, 3, 1, 3))[0]
        arguments: dict[str, str] = {}
        if tool == "bash":
            word = self.rng.choice(wording.WORDS)
            arguments["command"] = f"pytest -q -k {word}"
            answer = self._lines(self.rng.choice((400, 1_500, 6_000)))
        else:
            path = arguments["path"] = self._path()
            answer = "The file was written."
            if tool == "read":
                answer = self._content(path)
            elif tool == "edit":
                arguments["old"] = self._lines(self.rng.randrange(80, 900))
                arguments["new"] = self._lines(self.rng.randrange(80, 1_500))
                self.files.pop(path, None)
            else:
                self.files[path] = arguments["content"] = self._lines(
                    self.rng.randrange(500, 5_000)
                )
        call = ToolCall(self._id(), tool, dumps(dict(arguments)).decode())
        failed = tool == "bash" and self.rng.random() < FAILED
        return call, ToolResult(call.id, (Text(answer),), tool, is_error=failed)

    def _path(self) -> str:
        folder, word = self.rng.choice(wording.FOLDERS), self.rng.choice(wording.WORDS)
        return f"{folder}/{word}_{self.rng.choice(wording.WORDS)}.py"

    def _content(self, path: str) -> str:
        """Return what a file holds: the same until it is changed."""
        if path not in self.files:
            size = self.rng.choice((900, 2_500, 5_000, 9_000, 30_000))
            self.files[path] = self._lines(size)
        return self.files[path]

    def _lines(self, characters: int) -> str:
        rng, lines, left = self.rng, list[str](), characters
        while left > 0:
            first, second, third = rng.choices(wording.WORDS, k=3)
            lines.append(f"    {first}_{second} = self.{third}({second}, {rng.randrange(90)})\n")
            left -= len(lines[-1])
        return "".join(lines)

    def _say(self, sentences: Sequence[str]) -> str:
        choice = self.rng.choice
        return choice(sentences).format(
            path=self._path(),
            noun=choice(wording.NOUNS),
            adjective=choice(wording.ADJECTIVES),
            verb=choice(wording.VERBS),
        )

    def _id(self) -> str:
        self.number += 1
        return f"n{self.number}"


class _Turn(NamedTuple):
    """A user's turn without what is measured, and what the agent does then."""

    request: list[str]
    work: list[Message]


def _endless(rng: random.Random) -> Iterator[wording.Phrase]:
    """Draw constraints without repetition until all were drawn, then again."""
    while True:
        yield from rng.sample(wording.CONSTRAINTS, len(wording.CONSTRAINTS))
