"""Reads lines from files, folders of sessions and standard input, with their sessions' hints.

What a path may be:

- a file: that file alone, even if subagents' files lie next to it;
- a session's folder `X` (it has a `subagents` folder in it, or `X.jsonl` next to it and no
  transcripts of its own): `X.jsonl` first, then `X/subagents/**/*.jsonl` by name;
- Codex's folder `sessions`, or one of its days: with what Codex moved from there to
  `archived_sessions`;
- any other folder, such as a projects folder: every session below it, by path, each with its
  subagents after it; loose `agent-*.jsonl` files (as early versions wrote them) come last in
  their folder;
- `-`: standard input.

Each `.jsonl` may be a `.jsonl.zst`; of both forms of a file the plain one is read.

A regular file is read twice, so that a transcript's first `sessionId` serves the lines before it
too. A pipe cannot be: there, lines are held back until one shows what they are, but at most
`LOOK_AHEAD_LINES` or `LOOK_AHEAD_BYTES`, and what is then not known to be a transcript or a
rollout is a stream.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from contextgauge.containers import Container, Line, Scout
from contextgauge.errors import ConfigError
from schemas.messages import DeadLetter
from schemas.topics import MIB
from streams import codec
from streams.edge.files.content import HELD_LINE_BYTES, DamagedError, split_lines
from streams.edge.files.housekeeping import SUFFIX
from streams.edge.files.positions import Position
from streams.edge.files.tail import LOOK_AHEAD_BYTES, LOOK_AHEAD_LINES, FileTail, line_of
from streams.edge.files.watch import (
    Failed,
    Source,
    TranscriptFile,
    TranscriptFinder,
    find_file,
    source_of,
)

STANDARD_INPUT = "-"

_BLOCK_BYTES = MIB

Block = Sequence[Line]


def refuse(path: str, error: OSError) -> None:
    """Raise ConfigError for a file or folder that cannot be read."""
    raise ConfigError(f"{path}: {error.strerror}") from error


def find(paths: Iterable[str], failed: Failed = refuse) -> list[TranscriptFile]:
    """Return the files that the paths stand for, in reading order.

    `failed` gets what cannot be looked at below a folder. Raises ConfigError for a path that is not
    there, cannot be looked at or holds no transcripts.
    """
    files: dict[str, TranscriptFile] = {}
    for text in paths:
        for each in _files_of(text, failed):
            files.setdefault(each.path, each)
    return list(files.values())


def _files_of(text: str, failed: Failed) -> list[TranscriptFile]:
    path, file = Path(text), find_file(text)
    try:
        status = path.stat() if file is None else file.stat
    except FileNotFoundError:
        raise ConfigError(f"{text}: no such file or folder") from None
    except OSError as error:
        raise ConfigError(f"{text}: {error.strerror}") from error
    if file is not None:
        return [file]
    if not stat.S_ISDIR(status.st_mode):
        return [TranscriptFile(str(path), status, str(path))]
    transcripts = TranscriptFinder([text]).look(0.0, failed)
    if not transcripts:
        raise ConfigError(f"{text}: no {SUFFIX} file in this folder")
    return transcripts


def expand(paths: Iterable[str], failed: Failed = refuse) -> list[Source]:
    """Return the containers that the paths stand for, in reading order. Raises as `find` does.

    `failed` also gets the files that this process may not read.
    """
    sources: dict[str, Source] = {}
    for text in paths:
        if text == STANDARD_INPUT:
            sources[text] = Source("<stdin>", None, None)
            continue
        for each in find([text], failed):
            if os.access(each.place, os.R_OK):
                sources.setdefault(each.path, source_of(each.place))
            else:
                failed(each.place, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    return list(sources.values())


def read(
    sources: Iterable[Source], fallback: str | None = None, failed: Failed = refuse
) -> Iterator[Block]:
    """Yield the lines of all sources in order, in blocks of what one reading gave.

    `fallback` is the session of lines that neither they nor their container name one for. `failed`
    gets the files of which only a part could be read. Raises ConfigError for one that cannot be.
    """
    for source in sources:
        try:
            yield from _read_source(source, fallback)
        except DamagedError as error:
            failed(source.name, error)
        except OSError as error:
            raise ConfigError(f"{source.name}: {error.strerror or error}") from error


def _read_source(source: Source, fallback: str | None) -> Iterator[Block]:
    if source.path is None:
        yield from _read_pipe(source, sys.stdin.fileno(), fallback)
        return
    descriptor = os.open(source.path, os.O_RDONLY)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            yield from _read_pipe(source, descriptor, fallback)
            return
    finally:
        os.close(descriptor)
    tail = FileTail(source, Position(source.name, status.st_dev, status.st_ino), fallback)
    tail.size = status.st_size
    try:
        for piece in tail.pieces(0.0, final=True):
            yield piece.lines
        if tail.read.end < tail.size or not tail.holds_what_was_read(tail.open(source.name)):
            raise ConfigError(f"{source.name}: rewritten while it was read: read it again")
    finally:
        tail.close()


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
        hint, thread_id = container.hint, container.thread_id
        return [line._replace(session_hint=hint, thread_id=thread_id) for line in block]
    hinted: list[Line] = []
    for line in block:
        hinted.append(line._replace(session_hint=container.hint))
        if not container.may_change(line.value):
            continue
        body = codec.decode(line.value, limit=HELD_LINE_BYTES)
        if not isinstance(body, DeadLetter):
            container.pass_over(body)
    return hinted


def _split(name: str, descriptor: int) -> Iterator[list[Line]]:
    """Yield the descriptor's lines, those of one reading at a time, without their line ends."""
    number = 0
    for lines in split_lines(iter(partial(os.read, descriptor, _BLOCK_BYTES), b"")):
        yield [
            line_of(name, at, value, size, None)
            for at, (value, size) in enumerate(lines, number + 1)
        ]
        number += len(lines)
