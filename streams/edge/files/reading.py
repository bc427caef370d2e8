"""Reads lines from files, folders of sessions and standard input, with their sessions' hints.

What a path may be:

- a file: that file alone, even if subagents' files lie next to it;
- a session's folder `X` (it has a `subagents` folder in it, or `X.jsonl` next to it and no
  transcripts of its own): `X.jsonl`, then `X/subagents/**/*.jsonl` by name; compactions' own
  calls (`agent-acompact-*.jsonl`) come first: their boundaries are in `X.jsonl`;
- Codex's folder `sessions`, or one of its days: with what Codex moved from there to
  `archived_sessions`;
- any other folder, such as a projects folder: every session below it, by path, each with its
  subagents after it, and JSON documents of messages, which their content shows; loose
  `agent-*.jsonl` files (as early versions wrote them) come last in their folder; of a session in
  several folders, as in that of a worktree too, the files that were written last come last;
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
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from contextgauge.containers import Container, Line, Scout
from contextgauge.errors import ConfigError
from contextgauge.normalise import runtimes
from schemas.messages import DeadLetter
from schemas.topics import MIB
from streams import codec
from streams.edge.files.content import HELD_LINE_BYTES, DamagedError
from streams.edge.files.documents import document_of, may_be_document
from streams.edge.files.formats import (
    FIRST_LINES,
    UnknownFormatError,
    UnsupportedFormatError,
    label_of,
    refusal_of,
    shape_of,
)
from streams.edge.files.housekeeping import DOCUMENT, SUFFIX
from streams.edge.files.lines import line_of, split_values
from streams.edge.files.order import oldest_first
from streams.edge.files.positions import Position
from streams.edge.files.tail import LOOK_AHEAD_BYTES, LOOK_AHEAD_LINES, FileTail
from streams.edge.files.torn import whole_objects
from streams.edge.files.watch import (
    Failed,
    InputSource,
    TranscriptFile,
    TranscriptFinder,
    find_file,
    source_of,
)
from streams.ports.tables import OWN_FOLDER

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
    return [each for text in paths for each in _files_of(text, failed)]


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
    if not transcripts and (path / OWN_FOLDER).is_dir():
        raise ConfigError(
            f"{text} is an export of tables: `contextgauge query`, `report` and `export` read it"
        )
    if not transcripts:
        raise ConfigError(
            f"{text}: no {SUFFIX} file in this folder, and no {DOCUMENT} file that holds messages"
        )
    return transcripts


def expand(
    paths: Iterable[str], failed: Failed = refuse, unsupported: Counter[str] | None = None
) -> list[InputSource]:
    """Return the containers that the paths stand for, in reading order. Raises as `find` does.

    `failed` also gets the files that this process may not read, and those that were named and are
    of a runtime that it does not read. In a folder these are left out and counted: `unsupported`.
    """
    sources: list[InputSource] = []
    for text in paths:
        if text == STANDARD_INPUT:
            sources.append(InputSource("<stdin>", None, None))
        else:
            sources += _readable(find([text], failed), text, failed, unsupported)
    each_once = list({source.name: source for source in sources}.values())
    return oldest_first(each_once, lambda source: source.name, _modified_ns)


def expand_folders(
    folders: Iterable[str], failed: Failed, unsupported: Counter[str] | None = None
) -> list[InputSource]:
    """Return the containers in runtimes' folders, which may not be there; see `expand`."""
    files = TranscriptFinder((), folders).look(0.0, failed)
    sources = list(_readable(files, None, failed, unsupported))
    return oldest_first(sources, lambda source: source.name, _modified_ns)


def _readable(
    files: Iterable[TranscriptFile],
    named: str | None,
    failed: Failed,
    unsupported: Counter[str] | None,
) -> Iterator[InputSource]:
    for each in files:
        if not os.access(each.place, os.R_OK):
            failed(each.place, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
            continue
        refusal = refusal_of(each.place) if stat.S_ISREG(each.stat.st_mode) else None
        if refusal is None:
            yield source_of(each.place)
        elif unsupported is None or each.place == named:
            failed(each.place, refusal)
        else:
            unsupported[label_of(refusal)] += 1


def refuse_unknown(paths: Iterable[str]) -> None:
    """Raise ConfigError for a file among paths that is not read; see `refusal_of`."""
    for text in paths:
        file = find_file(text)
        refusal = None if file is None else refusal_of(file.place)
        if refusal is not None:
            refuse(text, refusal)


def _modified_ns(source: InputSource) -> int:
    try:
        return 0 if source.path is None else source.path.stat().st_mtime_ns
    except OSError:  # reading it shows why
        return 0


def read(
    sources: Iterable[InputSource], fallback: str | None = None, failed: Failed = refuse
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


def _read_source(source: InputSource, fallback: str | None) -> Iterator[Block]:
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


def _read_pipe(source: InputSource, descriptor: int, fallback: str | None) -> Iterator[Block]:
    scout = Scout()
    container: Container | None = None
    held: list[Line] = []
    held_bytes = lines = 0
    for block in _split(source.name, descriptor):
        if container is not None:
            yield _hinted(container, block)
            continue
        for line in block:
            lines += 1
            held_bytes += line.size
            known = _looked_at(scout, line.value, is_first=lines <= FIRST_LINES)
            if known or held_bytes > LOOK_AHEAD_BYTES:
                container = scout.container(source.session, fallback, source.thread_id)
                break
        held.extend(block)
        if container is None and scout.in_stream:
            container = scout.container(source.session, fallback, source.thread_id)
        if container is None and len(held) >= LOOK_AHEAD_LINES:
            container = scout.container(source.session, fallback, source.thread_id)
        if container is not None:
            _refuse_unknown_lines(scout, held)
            yield _hinted(container, held)
            held = []
    if held:
        _refuse_unknown_lines(scout, held)
        yield _hinted(scout.container(source.session, fallback, source.thread_id), held)


def _refuse_unknown_lines(scout: Scout, lines: Block) -> None:
    """Raise UnknownFormatError for a pipe's first lines, if none is of a form that is read."""
    shape = None if scout.is_known else shape_of(line.value for line in lines)
    if shape is not None:
        raise UnknownFormatError(shape)


def _looked_at(scout: Scout, value: bytes, *, is_first: bool) -> bool:
    """Show a line of a pipe to the scout; return whether no later line can change its answer.

    Raises UnsupportedFormatError.
    """
    body = codec.decode(value, limit=HELD_LINE_BYTES)
    if isinstance(body, DeadLetter):
        return False
    if scout.in_stream:
        scout.note(body)
        return False
    if is_first and (other := runtimes.unsupported(body)) is not None:
        raise UnsupportedFormatError(other)
    return scout.look(body)


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
    """Yield the descriptor's lines or objects, those of one reading at a time."""
    number = 0
    blocks = iter(partial(os.read, descriptor, _BLOCK_BYTES), b"")
    head = next(blocks, b"")
    while may_be_document(head) and (more := next(blocks, b"")):
        head += more
    for lines in split_values(document_of(head), chain([head], blocks)):
        yield [
            line_of(name, at, part, len(part) if len(parts) > 1 else size, None)
            for at, (value, size) in enumerate(lines, number + 1)
            for parts in (whole_objects(value),)
            for part in parts
        ]
        number += len(lines)
