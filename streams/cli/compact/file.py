"""`contextgauge compact FILE`: compacts the conversation of a file, and prints what that did."""

import asyncio
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.displays import event_line, status_text
from contextgauge.compaction.engine.compaction_receipt import Receipt
from contextgauge.compaction.engine.linked_messages import results_without_call
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.events import Hooks
from contextgauge.compaction.formats import write_sendable
from contextgauge.compaction.formats.sendable import answer_id
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Message
from contextgauge.compaction.ports import Summariser
from contextgauge.compaction.profiles import Profile, profile_named
from contextgauge.compaction.reading.transcripts import ReadConversation, read_conversation
from contextgauge.compaction.summary_call import NoSummaryError
from contextgauge.errors import ConfigError, StopError
from contextgauge.json_codec import dumps, dumps_indented
from streams.cli.screen.figures import count, duration, exact
from streams.cli.screen.output import err, out, say
from streams.edge.control.service_file import EXTRACTIVE, make_summariser
from streams.edge.files.content import DamagedError
from streams.edge.files.documents import HEAD_BYTES
from streams.edge.files.formats import UnsupportedFormatError, unsupported_in
from streams.edge.files.housekeeping import plain_path
from streams.edge.files.opening import read_whole
from streams.edge.files.watch import find_file

STANDARD = "-"

_NAMED_RESULTS: Final = 3


class FileOptions(NamedTuple):
    """The options of a file's compaction, as they are on the command line."""

    output: str | None
    force: bool
    if_due: bool
    profile: str
    window: int | None
    keep: int | None
    summariser: str
    url: str | None
    key_variable: str | None


def compact_file(
    file: str, options: FileOptions, *, instructions: str | None, as_json: bool
) -> None:
    """Compact the conversation of a file: write it, and print the receipt.

    The file is only read. Written is JSON that can be sent: of a request's body the whole body, of
    anything else a list of messages as the API takes them. What a transcript's last compaction
    archived is left out, as its model no longer sees it.
    """
    if options.if_due and instructions:
        raise ConfigError("--if-due takes no --instructions: they are for a requested compaction")
    target = _target(file, options.output, force=options.force)
    read = _read(file)
    history = History(read.request.messages)
    before = tuple(history.active)
    profile = _profile(options.profile, options.keep)
    compactor = Compactor(
        profile=profile,
        summariser=_summariser(options.summariser, options.url, options.key_variable),
        hooks=Hooks(on_event=lambda event: say(event_line(event))),
    )
    call = ModelCall(
        system=read.request.system,
        tools=read.request.tools,
        reserved_output_tokens=read.request.reserved_output_tokens,
        model=read.request.model,
        window_tokens=read.window_tokens if options.window is None else options.window,
        window_source="runtime" if options.window is None else "given",
        recall=False,  # of what is written nothing leads back to the file
    )
    try:
        if options.if_due:
            asyncio.run(compactor.before_call(history, call))
        else:
            asyncio.run(compactor.compact(history, call, instructions=instructions))
    except NoSummaryError as error:
        raise StopError(f"no summary, and nothing was written: {error}") from error
    if not history.receipts:
        if options.if_due:
            status = compactor.get_stats(history, call)
            say(f"Not due: {status_text(status.tokens, status.window_tokens)}")
        else:
            say(f"Nothing to compact: {compactor.why_not(history, call)}.")
        raise typer.Exit(1)
    receipt = history.receipts[-1]
    messages = write_sendable(history.active, read.format, leaves_last_open=True)
    _write(target, dumps_indented(read.rewrite(messages)), mode=_mode_of(file))
    screen = err if target is None else out
    if as_json:
        (sys.stderr if target is None else sys.stdout).write(f"{dumps(receipt).decode()}\n")
    else:
        _show(receipt, before, history, screen, profile)
        if target is not None:
            say(f"Written to {target}", to=screen)
    _warn_of_results_without_call(history)


def _warn_of_results_without_call(history: History) -> None:
    ids = results_without_call(history.active)
    if ids:
        named = ", ".join(ids[:_NAMED_RESULTS]) + (", …" if len(ids) > _NAMED_RESULTS else "")
        say(
            f"{count(len(ids), 'tool result')} without a call before it ({named}): written as "
            "text, since a provider refuses such a request",
            "yellow",
        )


def _read(file: str) -> ReadConversation:
    value = _bytes_of(file)
    other = unsupported_in(value[:HEAD_BYTES].split(b"\n"))
    if other is not None:
        raise ConfigError(f"{file}: {UnsupportedFormatError(other).strerror}")
    try:
        return read_conversation(value)
    except ConfigError as error:
        raise ConfigError(error if file in str(error) else f"{file}: {error}") from error


def _profile(name: str, keep: int | None) -> Profile:
    profile = profile_named(name)
    return profile if keep is None else replace(profile, keep_last=keep, keep_share=None)


def _summariser(name: str, url: str | None, key_variable: str | None) -> Summariser | None:
    if name == EXTRACTIVE:
        for option, value in (("--url", url), ("--key-variable", key_variable)):
            if value is not None:
                raise ConfigError(f"{option} is for a model: name it with --summariser")
        return None
    return make_summariser(name, url=url, key_env=key_variable, key_name="--key-variable")


def _target(file: str, output: str | None, *, force: bool) -> Path | None:
    """Return where to write, None for standard output. Raises ConfigError."""
    if output == STANDARD or (output is None and file == STANDARD):
        return None
    target = Path(output or f"{Path(plain_path(file)).stem}.compacted.json")
    if target.exists() and not force:
        raise ConfigError(f"{target} exists: name another --output, or overwrite it with --force")
    _check_writable(target)
    return target


def _check_writable(target: Path) -> None:
    """Raise ConfigError where a file cannot be written, before work is done for it."""
    is_new = not target.exists()
    if target.is_fifo():  # its reader would see the end
        return
    try:
        target.open("ab").close()
        if is_new:
            target.unlink()
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror}") from error


def _bytes_of(file: str) -> bytes:
    if file == STANDARD:
        return sys.stdin.buffer.read()
    target = find_file(file)
    try:
        return Path(file).read_bytes() if target is None else read_whole(target.place)
    except DamagedError as error:
        raise ConfigError(f"{file}: {error.strerror}") from error
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error


def _mode_of(file: str) -> int:
    """Return who may read and write the conversation's file: no others what is written of it.

    Its owner may write that, also where the conversation's file is read-only.
    """
    target = None if file == STANDARD else find_file(file)
    return 0o666 if target is None else target.stat.st_mode & 0o666 | 0o600


def _write(target: Path | None, value: bytes, *, mode: int) -> None:
    if target is None:
        sys.stdout.buffer.write(value)
        return
    try:
        if not target.exists():
            target.touch(mode)
        target.write_bytes(value)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror}") from error


def _basis_before(receipt: Receipt, before: Sequence[Message]) -> str:
    """Return what of the size before was reported: as `status` shows it, what was read last."""
    reported = next((each.usage.context for each in reversed(before) if each.usage is not None), 0)
    since = receipt.tokens_before - reported
    if receipt.basis == "estimated" or since <= 0:
        return receipt.basis
    return f"{exact(reported)} reported + {exact(since)} since"


def _whole(messages: Iterable[Message]) -> int:
    """Return the number of messages; the lines of one answer, a block each, are one."""
    return len({answer_id(each) or each.id for each in messages})


def _counted(messages: Sequence[Message]) -> str:
    results = sum(each.role == "tool" for each in messages)
    of_tools = f", {exact(results)} of them tool results" if results else ""
    return f"{count(_whole(messages), 'message')}{of_tools}"


def _sizes(receipt: Receipt, before: Sequence[Message], after: Sequence[Message]) -> Table:
    """Return the sizes of the whole request, with the numbers of messages before and after."""
    is_reported = receipt.basis == "reported"
    sizes = Table.grid(padding=(0, 2))
    for name, tokens, basis, part in (
        ("Before", receipt.tokens_before, _basis_before(receipt, before), _counted(before)),
        ("After", receipt.tokens_after, "estimated", _counted(after)),
        ("Saved", receipt.tokens_saved, "estimated", ""),
    ):
        sizes.add_row(name, f"{exact(tokens)} tokens", basis, part)
    rest = receipt.tokens_after - receipt.steps[-1].tokens_after
    if rest > 0:
        more = ", and what the estimate of the messages lacks" if is_reported else ""
        sizes.add_row("Rest", f"{exact(rest)} tokens", "", f"of After: system, tools{more}")
    return sizes


def _show(
    receipt: Receipt,
    before: Sequence[Message],
    history: History,
    screen: Console,
    profile: Profile,
) -> None:
    screen.print(_sizes(receipt, before, history.active))
    window, goal = receipt.window, receipt.target_tokens
    has_goal = profile.compact_to < profile.compact_at
    shown_goal = f", goal {exact(goal)}" if has_goal else ""
    say(f"Window {exact(window.tokens)} tokens ({window.source}){shown_goal}", to=screen)
    is_above = receipt.steps[-1].tokens_after > receipt.tokens_after
    above = ", above what was reported" if is_above else ""
    say(f"Steps, with estimates of the messages alone{above}:", to=screen)
    steps = Table.grid(padding=(0, 2))
    for step in receipt.steps:
        steps.add_row(
            step.rung,
            f"{exact(step.tokens_before)} → {exact(step.tokens_after)}",
            count(_whole(filter(None, map(history.original, step.message_ids))), "message"),
            step.reason,
        )
    screen.print(steps)
    carried: Sequence[str] = (count(receipt.pins, "turn"), count(receipt.files, "file"))
    if receipt.number is not None:
        say(f"Carried {' and '.join(carried)}; summary by {receipt.summariser}", to=screen)
    if receipt.tokens_after >= window.tokens:
        is_exact = profile.keep_share is None and profile.keep_last > 0
        hint = ": less --keep may help" if is_exact else ""
        say(f"After it the conversation still does not fit the window{hint}", to=err)
    elif has_goal and receipt.tokens_after > goal:
        say("The goal was not reached: the rest is recent or always stays", to=err)
    say(f"Compacting took {duration(receipt.duration_ms)}", to=screen)
