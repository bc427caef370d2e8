"""Summaries without a model: sentences of the conversation itself, newest first.

The same extract is the offline summariser's answer and the prose of the deterministic floor. Code
carries what the user wrote, so the extract leaves that out, and what an assistant repeats of it: a
value that was replaced does not come back through it.
"""

import re
from collections import Counter as Counts
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from contextgauge.compaction.carried.compaction_text import compose
from contextgauge.compaction.carried.statements.passages import Statement, statements
from contextgauge.compaction.carried.statements.pin_kinds import kind_of
from contextgauge.compaction.counting import CHARACTERS_PER_TOKEN, Counter
from contextgauge.compaction.messages import Carried, Image, Message, ToolResult, images_of
from contextgauge.compaction.ports import SummaryAnswer, SummaryRequest

_LINE_CHARACTERS: Final = 240
"""Of one message: its point, not its text."""

_READ_MESSAGES: Final = 5_000
"""The newest messages, of which a line is looked for: far more than a summary has lines."""

_READ_CHARACTERS: Final = 2_000
"""Characters that are read of one message's beginning."""

_READ_STATEMENTS: Final = 4
"""Statements of one message that are looked at."""

_POINT_CHARACTERS: Final = 16
"""Less says nothing: an acknowledgement."""

_DEFAULT_CHARACTERS: Final = 8_000

_LINES_OF_A_FORM: Final = 3
"""An agent that announces each file it reads says nothing more with the fourth line."""

_FOLDED_LINES: Final = 1_000
"""Then no older ones are read: they take no room, so that room alone would not end the reading."""

_ASSISTANT: Final = "- Assistant: "

_NAME: Final = re.compile(r"[\d/\\_`\"=]|\A['(]|\w\.\w")
"""In a word that names something: a path, a number, an identifier, something quoted."""

_FOLDED: Final = " [and {} earlier like it]"
_FOLDED_BEFORE: Final = re.compile(r" \[and ([1-9][0-9]{0,8}) earlier like it\]\Z")
_FOLDED_CHARACTERS: Final = len(_FOLDED) + 7


def floor(
    messages: Sequence[Message],
    carried: Carried,
    *,
    number: int,
    budget_tokens: int | None,
    counter: Counter,
) -> str:
    """Return the deterministic text of a compaction: of any conversation, in linear time."""
    limit = _DEFAULT_CHARACTERS
    if budget_tokens is not None:
        limit = min(limit, budget_tokens * CHARACTERS_PER_TOKEN)
    prose = extract(messages, limit)
    return compose(prose, carried, number=number, budget_tokens=budget_tokens, counter=counter)


def extract(messages: Sequence[Message], limit_characters: int, *, with_user: bool = False) -> str:
    """Return lines from the latest messages, oldest first; the newest are preferred."""
    return _extracted(messages, limit_characters, with_user=with_user).text


def _extracted(messages: Sequence[Message], limit_characters: int, *, with_user: bool) -> "_Lines":
    lines = _Lines(limit_characters)
    for message in islice(reversed(messages), _READ_MESSAGES):
        if not lines.add(_line(message, with_user=with_user)):
            break
    return lines


class _Lines:
    """Lines within a room, the newest first. Of an assistant's lines of one form three stay.

    Lines have one form where they differ only in what they name, as those of an agent that
    announces each file it reads. How many there were before stands at the oldest that stays.
    """

    def __init__(self, limit_characters: int) -> None:
        self._left = limit_characters
        self._forms: dict[str, str] = {}  # by line
        self._stay: Counts[str] = Counts()
        self._folded: Counts[str] = Counts()

    def add(self, line: str) -> bool:
        """Add an older line; False where there is no room for it."""
        if not line or line in self._forms:
            return True
        form = _form(line)
        if self._stay[form] == _LINES_OF_A_FORM:
            return self._folded.total() < _FOLDED_LINES and self._fold(form, 1)
        cost = len(line) + 1
        if cost > self._left:
            return False
        self._left -= cost
        self._forms[line] = form
        self._stay[form] += 1
        return True

    def without_folded(self, former: str) -> str:
        """Return a former extract without the lines that are counted at a newer one now."""
        lines: list[str] = []
        for line in reversed(former.splitlines()):
            before = _FOLDED_BEFORE.search(line)
            own, count = (line[: before.start()], int(before[1])) if before else (line, 0)
            form = _form(own)
            if form == own:
                lines.append(line)
            elif own in self._forms and (not count or self._fold(form, count)):
                continue
            elif self._stay[form] < _LINES_OF_A_FORM or not self._fold(form, count + 1):
                lines.append(line)
                self._stay[form] += 1
        return "\n".join(reversed(lines))

    def _fold(self, form: str, count: int) -> bool:
        if not self._folded[form]:
            if self._left < _FOLDED_CHARACTERS:
                return False
            self._left -= _FOLDED_CHARACTERS
        self._folded[form] += count
        return True

    @property
    def text(self) -> str:
        """The lines, oldest first."""
        lines: list[str] = []
        folded = +self._folded
        for line, form in reversed(self._forms.items()):
            count = folded.pop(form, 0)
            lines.append(f"{line}{_FOLDED.format(count)}" if count else line)
        return "\n".join(lines)


def _form(line: str) -> str:
    """Return an assistant's line without what it names; another's as it is."""
    if not line.startswith(_ASSISTANT):
        return line
    words = ("…" if _NAME.search(word) else word for word in line[len(_ASSISTANT) :].split())
    form = " ".join(words)
    return form if form.strip("… .") else line


def _line(message: Message, *, with_user: bool) -> str:
    if message.role == "system" or message.compaction is not None:
        return ""
    if message.role == "assistant":
        point = next(_points(message.text, all_kinds=with_user), "")
        return f"{_ASSISTANT}{point}" if point else ""
    if with_user and message.is_user_turn:
        point = next(_points(message.text, all_kinds=True), "")
        if point:
            return f"- User: {point}"
    for each in message.blocks:
        if isinstance(each, Image):
            return f"- User: {images_of(message.blocks)} (message {message.id})"
        if isinstance(each, ToolResult) and each.is_error and not message.is_user_turn:
            point = " ".join(each.text[:_LINE_CHARACTERS].split())
            return f"- Error of {each.name or 'a tool'}: {point}"
    return ""


def _points(text: str, *, all_kinds: bool) -> Iterator[str]:
    """Return statements that lay nothing down, or all."""
    for each in islice(statements(text[:_READ_CHARACTERS]), _READ_STATEMENTS):
        if len(each.text) >= _POINT_CHARACTERS and (
            all_kinds or kind_of(each)[0] in {"statement", "request"}
        ):
            yield _short(each)


def _short(each: Statement) -> str:
    text = " ".join(each.text.split())
    return text if len(text) <= _LINE_CHARACTERS else f"{text[:_LINE_CHARACTERS]}…"


class ExtractiveSummariser:
    """Needs no key and no network: the default where no other summariser is given."""

    @property
    def name(self) -> str:
        """What a receipt calls it."""
        return "extractive"

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        """Return an extract of the messages, after what is left of the former one."""
        tokens = request.target_tokens or request.max_tokens
        limit = tokens * CHARACTERS_PER_TOKEN
        lines = _extracted(request.messages, limit, with_user=not request.carried)
        former = lines.without_folded((request.previous or "").strip())
        new = lines.text
        left = limit - len(new) - 1
        if former and left > 0:
            former = former[-left:].split("\n", 1)[-1] if len(former) > left else former
        else:
            former = ""
        return SummaryAnswer("\n".join(part for part in (former, new) if part) or "Nothing new.")
