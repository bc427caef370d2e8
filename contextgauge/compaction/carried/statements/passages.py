"""A user's own statements: a turn's text without what it only quotes, cut into passages.

Fenced code, quoted lines, marked-up blocks and what a tool is reported to have printed are data,
not the user's wish. All cuts are verbatim: a passage is a slice of the turn.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

MAX_TURN_CHARACTERS: Final = 200_000
"""More than a person writes: of a longer turn the two ends are read, half of this each."""

MAX_STATEMENT_CHARACTERS: Final = 600
"""A longer sentence is cut: pasted text without punctuation."""

_FENCE: Final = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})(?![^`\n]{0,2000}```)")
_INLINE_FENCE: Final = re.compile(r"```[^`\n]{0,2000}```")
_OPEN_TAG: Final = re.compile(r"[ \t]*<([A-Za-z][\w:.-]{0,60})(?:\s[^<>]{0,300})?>")
_CLOSE_TAG: Final = re.compile(r"</([A-Za-z][\w:.-]{0,60})>")
_REPORTED: Final = re.compile(
    r"(?i)\b(?:tool|command|console|terminal|log|build|test|compiler|server|script|stdout|stderr|"
    r"file|page|e-?mail|document|readme|website|output|result)s?\b[^.:\n]{0,40}"
    r"\b(?:says?|said|reads?|returned|returns|printed|prints|reported|reports|output|answered|"
    r"contains?|shows?|wrote)\b[^\"“\n]{0,20}[:,]?\s*(\"[^\"\n]{1,2000}\"|“[^”\n]{1,2000}”)"
)
_OUTPUT_HEADING: Final = re.compile(
    r"(?i)[ \t]*(?:#{1,6} )?(?:\[)?(?:(?:tool|command|console|terminal|program|test|build|function)"
    r"[ _-]?)?(?:output|results?|logs?|stdout|stderr|traceback|response)"
    r"(?: \([^()\n]{0,60}\)| of [^:\n]{0,60})?\]?:[ \t]*$"
)
_BLANK: Final = ""
"""What ends the output of a tool that was pasted under a heading: an empty line."""

_BULLET: Final = re.compile(
    r"[ \t]*(?:[-*+•]|\d{1,4}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?|[ \t]*#{1,6}[ \t]+"
)
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<!etc\.)(?<!max\.)(?<!min\.)[ \t]+"
)
_REFERS_BACK: Final = re.compile(
    r"(?i)(?!(?:i|we|you|he|she|the|an?|our|my|let's)\b)(?:[\w'\u2019]+ ){1,3}"
    r"(?:it|them|these|those|its|their)\b|(?:it|they|this) (?:must|may|shall|should|can|has to|"
    r"have to|needs?)\b"
)
"""A sentence that says nothing without the one before it: «Never rename it.»"""

_LABEL: Final = re.compile(
    r"((?:[A-Za-z][\w'-]{0,40}[ ]){0,3}[A-Za-z][\w'-]{0,40})[ ]?:(?=\s|$)\s*"
)


class Statement(NamedTuple):
    """A passage of a turn. `label` is what stands before it with a colon, lower case, or empty.

    `paragraph` numbers the line that it comes from: passages of one line belong together.
    """

    text: str
    label: str
    paragraph: int


def statements(text: str) -> Iterator[Statement]:
    """Return the passages of a turn that are the user's own words, in order."""
    if len(text) <= MAX_TURN_CHARACTERS and _ONE_PLAIN_LINE.fullmatch(text):
        if not _MAY_END.search(text):
            return iter([Statement(_cut(text.rstrip()), "", 0)])
        return (Statement(each, "", 0) for each in _sentences(text))
    return _of_lines(text)


def _of_lines(text: str) -> Iterator[Statement]:
    heading = section = ""
    for number, line in enumerate(own_lines(text)):
        if not line.strip():
            heading = section
            continue
        bullet = _BULLET.match(line)
        body = line[bullet.end() if bullet else 0 :].strip().strip("*_").strip()
        if bullet and line.lstrip().startswith("#"):
            words = body.rstrip(":").lower()
            heading = section = words if kind_of_label(words) else ""
            if section:
                continue
        label = heading if bullet else ""
        if ":" in body and (match := _LABEL.match(body)):
            words = match[1].lower()
            if kind_of_label(words) is None:
                heading = ""
            elif match.end() == len(body):
                heading = words
                continue
            else:
                label, body = words, body[match.end() :]
        for sentence in _sentences(body):
            yield Statement(sentence, label, number)
            if label != heading and kind_of_label(label) in _OF_ONE_SENTENCE:
                label = ""


_ONE_PLAIN_LINE: Final = re.compile(
    r"[A-Za-z][^\x00-\x1f\x85\u2028\u2029`<\"\u201c:]*[^\s\x00-\x1f`<\"\u201c:*_] *"
)
"""A turn without lines, labels, quotes or code: as most are in a long conversation."""

_MAY_END: Final = re.compile(r"[.!?][ \t]")
"""Without this a line is one sentence: cheaper than the pattern of all ends."""


def _sentences(line: str) -> Iterator[str]:
    """Return sentences whole; one that only goes on about the thing before it stays with it."""
    if not _MAY_END.search(line):
        if line := line.strip():
            yield _cut(line)
        return
    start = end = 0
    for match in (*_SENTENCE_END.finditer(line), None):
        next_start = match.end() if match else len(line)
        last = match.start() if match else len(line)
        if start < end and not _continues(line[start:end], line[end:last].strip()):
            yield _cut(line[start:end].strip())
            start = end
        end = next_start
    if rest := line[start:].strip():
        yield _cut(rest)


def _continues(former: str, sentence: str) -> bool:
    """Return whether a sentence stays with the one before it, within one statement's length."""
    return (
        len(former) + len(sentence) < MAX_STATEMENT_CHARACTERS
        and not former.rstrip().endswith("?")
        and not sentence.endswith("?")
        and _REFERS_BACK.match(sentence) is not None
    )


def own_lines(text: str) -> Iterator[str]:
    """Return the lines of a turn that are its author's own words; data becomes empty lines."""
    if len(text) > MAX_TURN_CHARACTERS:
        half = MAX_TURN_CHARACTERS // 2
        text = f"{text[:half]}\n\n{text[-half:]}"
    closed = {name.lower() for name in _CLOSE_TAG.findall(text)} if "</" in text else set()
    end: str | None = None
    for line in text.splitlines():
        if end is not None:
            if _ends(line, end):
                end = None
            yield ""
            continue
        end = _data_end(line, closed)
        own = end is None and not line.lstrip().startswith(">")
        yield _own_part(line) if own else ""
        if end and end.startswith("</") and end in line.lower():
            end = None


def _own_part(line: str) -> str:
    if "```" in line:
        line = _INLINE_FENCE.sub("", line)
    return _REPORTED.sub("", line) if '"' in line or "\u201c" in line else line


def _data_end(line: str, closed: set[str]) -> str | None:
    """Return what ends the data that begins with a line, None where none begins."""
    if ("`" in line or "~" in line) and (match := _FENCE.match(line)):
        return match[1]
    if closed and (match := _OPEN_TAG.match(line)) and match[1].lower() in closed:
        return f"</{match[1].lower()}>"
    return _BLANK if ":" in line and _OUTPUT_HEADING.match(line) else None


def _ends(line: str, end: str) -> bool:
    if end == _BLANK:
        return not line.strip()
    return end in line.lower() if end.startswith("</") else line.strip().startswith(end)


def _cut(text: str) -> str:
    if len(text) <= MAX_STATEMENT_CHARACTERS:
        return text
    return f"{text[:MAX_STATEMENT_CHARACTERS]}…"


_LABELS: Final = {
    "constraint": "rule rules constraint constraints requirement requirements restriction "
    "restrictions limit limits policy guardrail guardrails must important warning safety security "
    "forbidden non-negotiable",
    "preference": "preference preferences style convention conventions",
    "goal": "goal goals objective objectives state status task tasks todo plan milestone",
    "fact": "fact facts note notes info context fyi reminder remember correction update background",
    "request": "request requests question questions ask",
}

_OF_ONE_SENTENCE: Final = {"goal", "request"}
"""Kinds whose label says nothing of what follows its sentence on the line."""

_KIND_OF_WORD: Final = {word: kind for kind, words in _LABELS.items() for word in words.split()}


def kind_of_label(label: str) -> str | None:
    """Return the kind of pin that a label announces, by its last or first word."""
    words = label.replace("_", " ").split()
    if not words:
        return None
    first = _KIND_OF_WORD.get(words[0])
    return _KIND_OF_WORD.get(words[-1]) or (first if first != "fact" else None)
