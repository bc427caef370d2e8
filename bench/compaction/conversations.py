"""Generated conversations of coding agents with planted facts: the same seed gives the same one.

The texts of each language are in `phrases/`. Facts are written as people write them, not as a rule
would like them: a turn of two words, a sentence in the middle of a long turn or before pasted code,
an agent's open point at the end or in the middle of a long answer or in its list of todos, an error
at the head of a result or at the end of a trace or log, a requirement anywhere in a specification.
"""

import random
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from bench.compaction.facts import KINDS, Conversation, Fact
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.messages import FormatName, Message, Text, ToolCall, ToolResult
from contextgauge.json_codec import dumps

LANGUAGES: Final = ("en", "de", "es", "zh", "ja")
FORMATS: Final[tuple[FormatName, ...]] = ("anthropic", "openai-chat", "openai-responses", "gemini")
PLANTED_UNTIL: Final = 0.85
"""Share of a conversation after which nothing is planted: facts have to outlast compactions."""

MORE_FACTS: Final = (120_000, 250_000)
"""Sizes from which a conversation has one more fact of each kind; there are three of most."""

SPEC_SHARE: Final = 0.04
"""Characters of a specification for each token of the conversation, so that it can be kept at all;
at most `SPEC_CHARACTERS`."""
SPEC_CHARACTERS: Final = 13_000

_NEEDLE: Final = re.compile(r"\[\[(.*?)\]\]")
_WORDS: Final = (
    "order", "batch", "cursor", "ledger", "bucket", "lookup", "region", "policy", "signal",
    "router", "filter", "client", "shard", "replica", "voucher", "parcel", "tariff", "depot",
)  # fmt: skip
_FOLDERS: Final = ("src", "src/core", "src/web", "lib/store", "tests", "tools")
_OBSERVATIONS: Final = {
    "en": "Observation: {}",
    "de": "<returncode>0</returncode>\n<output>\n{}\n</output>",
    "es": "[read_file for '{path}'] Result:\n\n{}",
    "zh": "OBSERVATION:\n{}",
    "ja": "<tool_response>\n{}\n</tool_response>",
}
"""How agents that have no calls of tools show a result: as a turn of the user."""


class Phrases(NamedTuple):
    """A text without its marks, and what was marked in it."""

    text: str
    needles: tuple[str, ...]


@dataclass(eq=False)
class _Scene:
    """A user's turn and what the agent does then. `begin` and `end` frame the agent's answer."""

    user: str
    begin: str = ""
    middle: str = ""
    end: str = ""
    work: list[Message] = field(default_factory=list)
    replaces: bool = False


def generate(seed: int, language: str, format_: FormatName, tokens: int) -> Conversation:
    """Return a conversation of about so many tokens."""
    return _Writer(seed, language, format_, tokens).conversation()


class _Writer:
    def __init__(self, seed: int, language: str, format_: FormatName, tokens: int) -> None:
        file = Path(__file__).parent / "phrases" / f"{language}.toml"
        self.phrases = tomllib.loads(file.read_text(encoding="utf-8"))
        self.rng = random.Random(f"{seed} {language} {format_}")  # noqa: S311 -- no secret
        self.language, self.format, self.tokens = language, format_, tokens
        # One format of each language is that of an agent without calls of tools.
        self.text_loop = FORMATS[LANGUAGES.index(language) % len(FORMATS)] == format_
        self.numbers = self.rng.sample(range(101, 1_000), 899)
        self.calls, self.has_todos = 0, False
        self.facts: list[Fact] = []
        self.orders: list[str] = []

    def conversation(self) -> Conversation:
        scenes = self._scenes()
        share = self.tokens // len(scenes)
        messages: list[Message] = []
        for number, scene in enumerate(scenes):
            said = [_text("user", scene.user), *scene.work]
            left = (number + 1) * share - sum(map(ESTIMATE.message, [*messages, *said]))
            said += self._work(left)
            messages += [*said, _text("assistant", self._reply(scene))]
        name = f"{self.language} {self.format}{' text loop' if self.text_loop else ''}"
        name += f" {self.tokens // 1000}k"
        return Conversation(
            name, self.format, tuple(messages), tuple(self.facts), tuple(self.orders)
        )

    # What is planted

    def _scenes(self) -> list[_Scene]:
        """Return all turns in order: a first request, facts among filler, then filler."""
        each_kind = 1 + sum(self.tokens > each for each in MORE_FACTS)
        groups = [self._group(kind, entry) for kind, entry in self._drawn(each_kind)]
        groups += [[self._ordering(number)] for number in range(3)]
        groups += [[self._filler()] for _ in range(1 + self.tokens // 30_000)]
        # A value and its replacement keep their order, with other scenes between them.
        replaced = [group for group in groups if group[-1].replaces]
        units = [group for group in groups if not group[-1].replaces]
        units += [[scene] for group in replaced for scene in group]
        self.rng.shuffle(units)
        for first, last in replaced:
            one, two = sorted((units.index([first]), units.index([last])))
            units[one], units[two] = [first], [last]
        planted = [scene for unit in units for scene in unit]
        filler = 1 + int(len(planted) * (1 / PLANTED_UNTIL - 1))
        first = _Scene(" ".join([self._say("requests"), self._say("talk"), self._say("talk")]))
        return [first, *planted, *(self._filler() for _ in range(filler))]

    def _drawn(self, each_kind: int) -> Iterator[tuple[str, list[str]]]:
        for kind in KINDS:
            count = 1 if kind == "spec" else each_kind
            if kind == "path":
                yield "changed", self.rng.choice(self.phrases["changed"])
            for entry in self.rng.sample(self.phrases[kind], count):
                yield kind, entry

    def _group(self, kind: str, entry: list[str]) -> list[_Scene]:
        """Return the scenes of a fact, which is noted."""
        if kind == "spec":
            return [self._specification()]
        values = self._values()
        *marked, question = entry
        phrases = [_unmarked(each.format(**values)) for each in marked]
        needles = tuple(needle for each in phrases for needle in each.needles)
        write: Callable[[list[Phrases]], tuple[str, list[_Scene]]] = getattr(self, f"_{kind}")
        place, scenes = write(phrases)
        fact = Fact("path" if kind == "changed" else kind, needles, question, place)
        if kind == "newest":
            fact = replace(fact, needles=needles[-1:], old=needles[:-1])
        if kind in {"decision", "answer"}:
            fact = replace(fact, ordered=True)
            if kind == "decision":
                fact = replace(fact, needles=(*needles, scenes[1].user))
        self.facts.append(fact)
        return scenes

    def _terse(self, phrases: list[Phrases]) -> tuple[str, list[_Scene]]:
        return "turn", [_Scene(phrases[0].text)]

    def _implicit(self, phrases: list[Phrases]) -> tuple[str, list[_Scene]]:
        place, text = self._placed(phrases[0].text)
        return place, [_Scene(text)]

    _correction = _path = _implicit

    def _newest(self, phrases: list[Phrases]) -> tuple[str, list[_Scene]]:
        first, (place, last) = self._placed(phrases[0].text)[1], self._placed(phrases[1].text)
        return place, [_Scene(first), _Scene(last, replaces=True)]

    def _decision(self, phrases: list[Phrases]) -> tuple[str, list[_Scene]]:
        proposal = phrases[0].text
        place, after = "end", ""
        if self.rng.random() < 0.25:  # noqa: PLR2004 -- a quarter
            place, after = "before the end", self._say("agent")
        asked = _Scene(self._request(), end=f"{proposal}\n{after}".strip())
        reply = phrases[1].text if len(phrases) > 1 else self._say("acceptances")
        return place, [asked, _Scene(reply)]

    _answer = _decision

    def _todo(self, phrases: list[Phrases]) -> tuple[str, list[_Scene]]:
        # One list a conversation: what a later list lacks is no todo any more.
        place = self.rng.choice(("end", "end", "middle", "list of todos")[: 4 - self.has_todos])
        text, scene = phrases[0].text, _Scene(self._request())
        if place == "list of todos" and not self.text_loop:
            self.has_todos = True
            done = {"content": self._say("agent"), "status": "completed"}
            arguments = {"todos": [done, {"content": text, "status": "pending"}]}
            scene.work += self._called("todo_write", arguments, "Todos were updated.")
        elif place == "middle":
            scene.middle = text
        else:
            place, scene.end = "end", text
        return place, [scene]

    def _fix(self, phrases: list[Phrases]) -> tuple[str, list[_Scene]]:
        error, fix = phrases[0].text, phrases[1].text
        scene = _Scene(self._request())
        where = self.rng.choice(("head of the error", "end of a trace", "end of a log"))
        if where == "end of a trace":
            frames = (f'  File "{self._path_name()}", line {self._number()}' for _ in range(12))
            head = "Traceback (most recent call last):"
            error = "\n".join((head, *frames, f"app.errors.CommandError: {error}"))
        elif where == "end of a log":
            error = f"{self._code(1_500)}{error}\nmake: *** [Makefile:12: test] Error 2"
        error = f"Exit code 1\n{error}"
        scene.work += self._called("bash", {"command": "make test"}, error, is_error=True)
        place = self.rng.choice(("begin", "begin", "middle"))
        setattr(scene, place, fix)
        return f"{where}, {place} of the answer", [scene]

    def _changed(self, phrases: list[Phrases]) -> tuple[str, list[_Scene]]:
        scene = _Scene(self._request())
        arguments = {"path": phrases[1].text, "content": self._code(1_500)}
        scene.work += self._called("write", arguments, "Written.", said=phrases[0].text)
        return "call", [scene]

    def _specification(self) -> _Scene:
        """Return a turn with a long list of requirements, of which some are facts."""
        size = min(SPEC_CHARACTERS, int(self.tokens * SPEC_SHARE))
        lines: list[str] = []
        while sum(map(len, lines)) < size:
            lines.append(self._say("spec_filler"))
        for entry in self.rng.sample(self.phrases["spec"], 4):
            text = _unmarked(entry[0].format(**self._values()))
            index = self.rng.randrange(len(lines) + 1)
            lines.insert(index, text.text)
            place = f"{index / len(lines):.1f} of the specification"
            self.facts.append(Fact("spec", text.needles, entry[1], place))
        numbered = [f"{number}. {line}" for number, line in enumerate(lines, 1)]
        return _Scene("\n".join((self.phrases["spec_title"], *numbered)))

    def _ordering(self, number: int) -> _Scene:
        """Return a turn during which data gives an order: in a result, an error, or next to one."""
        text = self.rng.choice(self.phrases["order"]).format(**self._values())
        self.orders.append(text)
        scene = _Scene(self._request())
        arguments = {"path": "README.md"}
        before, after = self._code(300), self._code(300)
        if number == 0 and self.format in {"anthropic", "gemini"} and not self.text_loop:
            call, result = self._called("fetch", arguments, "The page follows.")
            beside = Message("user", (*result.blocks, Text(f"{before}\n\n{text}\n{after}")))
            scene.work += [call, beside]
        else:
            content = f"{before}\n\n{text}\n{after}"
            scene.work += self._called("read", arguments, content, is_error=number == 1)
        return scene

    def _placed(self, text: str) -> tuple[str, str]:
        """Return where a sentence of the user stands, and its turn."""
        place = self.rng.choice(("turn", "turn", "long turn", "long turn", "before pasted code"))
        if place == "turn":
            return place, text
        sentences = [self._say("talk") for _ in range(self.rng.choice((2, 4, 8, 14)))]
        if place == "long turn":
            sentences.insert(self.rng.randrange(len(sentences) + 1), text)
            return place, " ".join(sentences)
        pasted = self._code(self.rng.choice((300, 800, 1_500)))
        return place, f"{sentences[0]} {text}\n\n```\n{pasted}```"

    # What is around it

    def _filler(self) -> _Scene:
        return _Scene(self._say("continue") if self.rng.random() < 0.4 else self._request())  # noqa: PLR2004

    def _request(self) -> str:
        talk = [self._say("talk") for _ in range(self.rng.choice((0, 0, 1, 3)))]
        return " ".join([self._say("requests"), *talk])

    def _reply(self, scene: _Scene) -> str:
        count = self.rng.choice((1, 3, 6, 12))
        first = [self._say("agent") for _ in range(count)]
        later = [self._say("agent") for _ in range(count)] if scene.middle else []
        paragraphs = (scene.begin, " ".join(first), scene.middle, " ".join(later), scene.end)
        return "\n\n".join(each for each in paragraphs if each)

    def _work(self, tokens: int) -> list[Message]:
        """Return calls and results of about so many tokens."""
        work: list[Message] = []
        while tokens > 0:
            size = min(self.rng.choice((400, 1_500, 4_000, 9_000, 24_000)), 4 * tokens)
            said = self._say("progress") if self.rng.random() < 0.4 else ""  # noqa: PLR2004
            name = self.rng.choice(("read", "read", "edit", "bash"))
            if name == "bash":
                added = self._called(name, {"command": "make test"}, self._code(size), said=said)
            else:
                arguments = {"path": self._path_name()}
                if name == "edit":
                    arguments |= {"old": self._code(size // 4), "new": self._code(size // 4)}
                added = self._called(name, arguments, self._code(size), said=said)
            tokens -= sum(map(ESTIMATE.message, added))
            work += added
        return work

    def _called(
        self,
        name: str,
        arguments: Mapping[str, object],
        result: str,
        *,
        said: str = "",
        is_error: bool = False,
    ) -> list[Message]:
        if self.text_loop:
            content = dumps(dict(arguments)).decode()
            shown = _OBSERVATIONS[self.language].replace("{path}", str(arguments.get("path", name)))
            thought = f"{said}\nAction: {name}\nAction Input: {content}".strip()
            return [_text("assistant", thought), _text("user", shown.replace("{}", result))]
        self.calls += 1
        call = ToolCall(f"call_{self.calls}", name, dumps(dict(arguments)).decode())
        answer = ToolResult(call.id, (Text(result),), name, is_error)
        blocks = (Text(said), call) if said else (call,)
        return [Message("assistant", blocks), Message("tool", (answer,))]

    def _code(self, characters: int) -> str:
        lines: list[str] = []
        while characters > 0:
            one, two, three = self.rng.choices(_WORDS, k=3)
            lines.append(f"    {one}_{two} = self.{three}({two}, {self.rng.randrange(90)})\n")
            characters -= len(lines[-1])
        return "".join(lines)

    def _say(self, of: str) -> str:
        choice = self.rng.choice
        noun, adjective = choice(self.phrases["nouns"]), choice(self.phrases["adjectives"])
        text: str = choice(self.phrases[of])
        return text.format(noun=noun, adjective=adjective, path=self._path_name())

    def _path_name(self) -> str:
        one, two = self.rng.choices(_WORDS, k=2)
        return f"{self.rng.choice(_FOLDERS)}/{one}_{two}.py"

    def _number(self) -> int:
        return self.numbers.pop()

    def _values(self) -> dict[str, object]:
        return {"n": self._number(), "m": self._number(), "w": self.rng.choice(_WORDS)}


def _text(role: str, text: str) -> Message:
    return Message("user" if role == "user" else "assistant", (Text(text),))


def _unmarked(text: str) -> Phrases:
    return Phrases(_NEEDLE.sub(r"\1", text), tuple(_NEEDLE.findall(text)))


def all_conversations(seed: int, sizes: Sequence[int]) -> list[Conversation]:
    """Return a conversation of each language in each format; sizes take turns."""
    pairs = [(language, each) for each in FORMATS for language in LANGUAGES]
    return [
        generate(seed, language, each, sizes[index % len(sizes)])
        for index, (language, each) in enumerate(pairs)
    ]
