"""Summaries without a model: sentences of the conversation itself, newest first.

The same extract is the offline summariser's answer and the prose of the deterministic floor. Code
carries what the user wrote, so the extract leaves that out, and what an assistant repeats of it: a
value that was replaced does not come back through it.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from contextgauge.compaction.counting import CHARACTERS_PER_TOKEN, Counter
from contextgauge.compaction.document import compose
from contextgauge.compaction.kinds import kind_of
from contextgauge.compaction.messages import Carried, Image, Message, ToolResult, images_of
from contextgauge.compaction.ports import SummaryAnswer, SummaryRequest
from contextgauge.compaction.statements import Statement, statements

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
    lines: list[str] = []
    left = limit_characters
    seen: set[str] = set()
    for message in islice(reversed(messages), _READ_MESSAGES):
        line = _line(message, with_user=with_user)
        if not line or line in seen:
            continue
        if len(line) + 1 > left:
            break
        lines.append(line)
        left -= len(line) + 1
        seen.add(line)
    return "\n".join(reversed(lines))


def _line(message: Message, *, with_user: bool) -> str:
    if message.role == "system" or message.compaction is not None:
        return ""
    if message.role == "assistant":
        point = next(_points(message.text, all_kinds=with_user), "")
        return f"- Assistant: {point}" if point else ""
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

    quotes: Final = True
    """It writes nothing of its own, so what it quotes is not judged as a model's words are."""

    @property
    def name(self) -> str:
        """What a receipt calls it."""
        return "extractive"

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        """Return an extract of the messages, after what is left of the former one."""
        tokens = request.target_tokens or request.max_tokens
        limit = tokens * CHARACTERS_PER_TOKEN
        new = extract(request.messages, limit, with_user=not request.carried)
        left = limit - len(new) - 1
        former = (request.previous or "").strip()
        if former and left > 0:
            former = former[-left:].split("\n", 1)[-1] if len(former) > left else former
        else:
            former = ""
        return SummaryAnswer("\n".join(part for part in (former, new) if part) or "Nothing new.")
