"""Reads lines from files, folders of sessions and standard input, with their sessions' hints.

What a path may be:

- a file: that file alone, even if subagents' files lie next to it;
- a session's folder `X` (it has a `subagents` folder in it, or `X.jsonl` next to it and no
  transcripts of its own): `X.jsonl` first, then `X/subagents/**/*.jsonl` by name;
- any other folder, such as a projects folder: every session below it, by path, each with its
  subagents after it; loose `agent-*.jsonl` files (as early versions wrote them) come last in
  their folder;
- `-`: standard input.

A regular file is read twice, so that a transcript's first `sessionId` serves the lines before it
too. A pipe cannot be: there, lines are held back until one shows what they are, but at most
`LOOK_AHEAD_LINES` or `LOOK_AHEAD_BYTES`, and what is then not known to be a transcript or a
rollout is a stream.
"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from contextgauge.containers import SIGN_FIELDS, Container, Line, Scout
from contextgauge.errors import ConfigError
from schemas.messages import DeadLetter
from schemas.topics import MIB
from streams import codec

STANDARD_INPUT = "-"

LOOK_AHEAD_LINES = 1_000
LOOK_AHEAD_BYTES = 16 * MIB
"""What a pipe's reader may wait for at most; a transcript names its session in its first lines."""

HELD_LINE_BYTES = 256 * MIB
"""Longest line that is held in memory whole; of a longer one only its beginning and size stay."""

_BLOCK_BYTES = MIB
SUFFIX = ".jsonl"
SUBAGENTS = "subagents"
_AGENT_PREFIX = "agent-"

_LAST = "\U0010ffff"
"""Sorts behind all names."""

Block = Sequence[Line]


class Source(NamedTuple):
    """One container to read. `name` is for messages; `session` what the file's name stands for."""

    name: str
    path: Path | None
    session: str | None


def expand(paths: Iterable[str]) -> list[Source]:
    """Return the containers that the paths stand for, in reading order.

    Raises ConfigError for a path that is not there or holds no transcripts.
    """
    sources: list[Source] = []
    for text in paths:
        path = Path(text)
        if text == STANDARD_INPUT:
            sources.append(Source("<stdin>", None, None))
        elif path.is_dir():
            transcripts = list(_in_folder(path))
            if not transcripts:
                raise ConfigError(f"{text}: no {SUFFIX} file in this folder")
            sources.extend(transcripts)
        elif path.exists():
            sources.append(source_of(path))
        else:
            raise ConfigError(f"{text}: no such file or folder")
    return sources


def size_bytes(sources: Iterable[Source]) -> int | None:
    """Return the sum of the files' sizes, None where a pipe is among them."""
    total = 0
    for source in sources:
        if source.path is None or not source.path.is_file():
            return None
        total += source.path.stat().st_size
    return total


def source_of(path: Path) -> Source:
    """Return a file's source; a subagent's file belongs to the session whose folder holds it."""
    folders = path.absolute().parts
    if path.name.startswith(_AGENT_PREFIX) and SUBAGENTS in folders[:-1]:
        inner = len(folders) - 1 - folders[::-1].index(SUBAGENTS)
        return Source(str(path), path, folders[inner - 1])
    return Source(str(path), path, path.name.removesuffix(SUFFIX))


def _in_folder(folder: Path) -> Iterator[Source]:
    main = folder.with_name(folder.absolute().name + SUFFIX)
    if is_session_folder(folder, main):
        if main.is_file():
            yield source_of(main)
        yield from _subagents(folder)
        return
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    files = [entry for entry in entries if entry.name.endswith(SUFFIX) and entry.is_file()]
    files.sort(key=lambda entry: entry.name.startswith(_AGENT_PREFIX))
    seen: set[Path] = set()
    for entry in files:
        yield source_of(entry)
        own_folder = entry.with_name(entry.name.removesuffix(SUFFIX))
        if is_session_folder(own_folder, entry):
            seen.add(own_folder)
            yield from _subagents(own_folder)
    for entry in entries:
        # A link to a folder is not followed: it could lead round in a circle.
        if entry not in seen and entry.is_dir() and not entry.is_symlink():
            yield from _in_folder(entry)


def order_of(path: str) -> list[str]:
    """Return by what transcripts below a folder are put in reading order.

    A session comes before its subagents, and loose agents' files come last in their folder.
    """
    *folders, name = Path(path.removesuffix(SUFFIX)).parts
    is_loose = name.startswith(_AGENT_PREFIX) and SUBAGENTS not in folders
    return [*folders, _LAST + name if is_loose else name]


def is_session_folder(folder: Path, main: Path) -> bool:
    """Return whether a folder is a session's; `main` is the transcript that would be next to it."""
    if (folder / SUBAGENTS).is_dir():
        return True
    return main.is_file() and folder.is_dir() and not any(folder.rglob(f"*{SUFFIX}"))


def _subagents(session_folder: Path) -> Iterator[Source]:
    for path in sorted((session_folder / SUBAGENTS).rglob(f"*{SUFFIX}")):
        yield source_of(path)


def read(sources: Iterable[Source], fallback: str | None = None) -> Iterator[Block]:
    """Yield the lines of all sources in order, in blocks of what one reading gave.

    `fallback` is the session of lines that neither they nor their container name one for.
    Raises ConfigError for a file that cannot be read.
    """
    for source in sources:
        try:
            yield from _read_source(source, fallback)
        except OSError as error:
            raise ConfigError(f"{source.name}: {error.strerror or error}") from error


def _read_source(source: Source, fallback: str | None) -> Iterator[Block]:
    if source.path is None:
        yield from _read_pipe(source, sys.stdin.fileno(), fallback)
        return
    descriptor = os.open(source.path, os.O_RDONLY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            yield from _read_pipe(source, descriptor, fallback)
            return
        scout = Scout()
        for block in _split(source.name, descriptor):
            if any(_decides(scout, line) for line in block):
                break
        os.lseek(descriptor, 0, os.SEEK_SET)
        container = scout.container(source.session, fallback)
        if container.kind == "stream":
            for block in _split(source.name, descriptor):
                yield _hinted(container, block)
        else:
            yield from _split(source.name, descriptor, container.hint)
    finally:
        os.close(descriptor)


def _decides(scout: Scout, line: Line) -> bool:
    """Show the scout a line; the bytes rule out most lines quickly."""
    if not any(sign in line.value for sign in SIGN_FIELDS):
        return False
    body = codec.decode(line.value, limit=HELD_LINE_BYTES)
    return not isinstance(body, DeadLetter) and scout.look(body)


def _read_pipe(source: Source, descriptor: int, fallback: str | None) -> Iterator[Block]:
    scout = Scout()
    container: Container | None = None
    held: list[Line] = []
    held_bytes = 0
    for block in _split(source.name, descriptor):
        if container is not None:
            yield _hinted(container, block)
            continue
        for line in block:
            body = codec.decode(line.value, limit=HELD_LINE_BYTES)
            known = not isinstance(body, DeadLetter) and (scout.look(body) or scout.in_stream)
            held_bytes += line.size
            if known or held_bytes > LOOK_AHEAD_BYTES:
                container = scout.container(source.session, fallback)
                break
        held.extend(block)
        if container is None and len(held) >= LOOK_AHEAD_LINES:
            container = scout.container(source.session, fallback)
        if container is not None:
            yield _hinted(container, held)
            held = []
    if held:
        yield _hinted(scout.container(source.session, fallback), held)


def _hinted(container: Container, block: Block) -> Block:
    """Return the lines with their hints; only in a stream does a line matter to those after it."""
    if container.kind != "stream":
        return [line._replace(session_hint=container.hint) for line in block]
    hinted: list[Line] = []
    for line in block:
        hinted.append(line._replace(session_hint=container.hint))
        body = codec.decode(line.value, limit=HELD_LINE_BYTES)
        if not isinstance(body, DeadLetter):
            container.pass_over(body)
    return hinted


def _split(name: str, descriptor: int, hint: str | None = None) -> Iterator[list[Line]]:
    """Yield the descriptor's lines, those of one reading at a time, without their line ends."""
    number = 0
    pending: list[bytes] = []
    pending_bytes = 0
    while chunk := os.read(descriptor, _BLOCK_BYTES):
        head, newline, rest = chunk.partition(b"\n")
        pending_bytes += len(head)
        if pending_bytes <= HELD_LINE_BYTES:
            pending.append(head)
        if not newline:
            continue
        number += 1
        block = [_line(name, number, b"".join(pending), pending_bytes, hint)]
        *whole, last = rest.split(b"\n")
        for value in whole:
            number += 1
            block.append(_line(name, number, value, len(value), hint))
        pending, pending_bytes = [last], len(last)
        yield block
    if pending_bytes:
        yield [_line(name, number + 1, b"".join(pending), pending_bytes, hint)]


def _line(name: str, number: int, value: bytes, size: int, hint: str | None) -> Line:
    if value.endswith(b"\r"):
        return Line(name, number, value[:-1], size - 1, hint)
    return Line(name, number, value, size, hint)
