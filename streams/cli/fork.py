"""`contextgauge fork`: a new session that begins where another one was compacted."""

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

from contextgauge.clock import SystemClock
from contextgauge.compaction.formats import write_sendable
from contextgauge.compaction.messages import FormatName
from contextgauge.compaction.reading.lines import folder_of
from contextgauge.errors import ConfigError, StopError
from contextgauge.json_codec import dumps, dumps_indented
from contextgauge.normalise.adapter import Adapter
from contextgauge.normalise.fork_form import ForkForm, NewFork, PastCompaction
from contextgauge.normalise.runtimes import ADAPTERS
from contextgauge.user_folders import expanded
from schemas.records import Json
from schemas.views import Compaction
from streams.cli.screen.figures import count, exact, safe
from streams.cli.screen.lines import is_terminal, write_lines
from streams.cli.screen.options import OneSession, SessionOrPath
from streams.cli.screen.output import out, say
from streams.cli.session_checkpoints import CheckpointSession, checkpoint_session
from streams.core.conversation.checkpoints import (
    HeldContext,
    SeenContext,
    seen_context,
    with_known,
    written,
)
from streams.edge.commands import new_id
from streams.edge.files.new_file import write_new
from streams.edge.files.runtime_folders import folders_of

_RUNTIMES: Final[dict[str, tuple[Adapter, ForkForm]]] = {
    each.fork.name: (each, each.fork) for each in ADAPTERS if each.fork is not None
}
_FORMATS: Final[dict[str, FormatName]] = {
    "messages": "plain",
    "anthropic": "anthropic",
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
    "gemini": "gemini",
}
_STANDARD: Final = "-"
_PRIVATE: Final = 0o600
_USUAL: Final = 0o666


class _Context(NamedTuple):
    """What a fork begins with; `lines` are the session's, None of a kept conversation."""

    held: HeldContext
    lines: Sequence[dict[str, Any]] | None
    seen: SeenContext


def fork(
    session: SessionOrPath,
    number: Annotated[
        int,
        typer.Argument(
            metavar="NUMBER", min=1, help="Of the compaction, as `contextgauge checkpoints` has it."
        ),
    ],
    *,
    one: OneSession = None,
    after: Annotated[
        bool,
        typer.Option(
            "--after/--before",
            help="Right after the compaction: its summary, and what was kept. By default just "
            "before it: all that the model saw.",
        ),
    ] = False,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORM",
            help=f"{', '.join(_RUNTIMES)}: a session of that runtime; {', '.join(_FORMATS)}: a "
            "JSON list of messages. By default the session's own runtime, else messages.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A new file; - for standard output, which is the default but on a terminal.",
        ),
    ] = None,
    install: Annotated[
        bool,
        typer.Option(
            "--install", help="Write it where the runtime finds it, and print the new session's ID."
        ),
    ] = False,
) -> None:
    """Fork a session from one of its compactions, for its runtime or another one.

    The fork is a new session with an ID of its own, and begins with the history of this one, whose
    sizes and compactions it inherits: they count for this session only. A session's own runtime
    gets its lines, unchanged but for what names the session; another one gets the messages. Nothing
    is changed or overwritten.

    The fork is of the main conversation: subagents' transcripts are left out, and what a runtime
    attaches is, where the form is another one.
    """
    _check(to, output, install=install)
    of_session = checkpoint_session(session, one)
    compaction = _compaction_of(of_session, number)
    context = _context_of(of_session, number, is_after=after)
    form = _own_form(of_session, install=install) if to is None else to
    side = f"{'right after' if after else 'just before'} compaction {number}"
    past = of_session.compactions[: of_session.compactions.index(compaction) + after]
    if form in _FORMATS:
        value = _list(form, context, past)
        _write(output or _STANDARD, [dumps_indented(value)])
        held, items = count(context.held.messages, "message"), count(len(value), "item")
        say(f"{held}, as {items} in the form {form}, {side} of {_name(of_session)}.")
    else:
        new = _new_fork(of_session, form, context, side, past)
        _write_session(of_session, form, context, new, None if install else output or _STANDARD)
    _say_limits(of_session, compaction, context, is_after=after)


def _list(form: str, context: _Context, past: Sequence[Compaction]) -> list[Json]:
    """Return the messages as a request has them; the last of the past compactions is marked."""
    messages = context.seen.messages
    if past:
        messages = with_known(messages, past[-1].time_ms, past[-1].tokens_before)
    return write_sendable(messages, _FORMATS[form])


def _write_session(
    of_session: CheckpointSession, form: str, context: _Context, new: NewFork, output: str | None
) -> None:
    """Write a session of a runtime; None: where that finds it."""
    adapter, fork_form = _RUNTIMES[form]
    path = _place(adapter, fork_form, of_session, new) if output is None else output
    _write(path, [dumps(each) for each in _lines(fork_form, context, new)], private=output is None)
    if output is None:
        say(new.id, to=out)
    say(f"{count(context.held.messages, 'message')} in session {new.id}, {new.title}.")
    command = fork_form.command.format(new.id)
    if output is None:
        say(f"Written to {path}")
        say(f"Go on with: cd {shlex.quote(new.folder)} && {command}")
    else:
        say(f"With --install, it is written where `{command}` finds it.")


def _name(of_session: CheckpointSession) -> str:
    return of_session.view.session_id


def _check(to: str | None, output: str | None, *, install: bool) -> None:
    """Raise ConfigError for options that contradict each other, or lack something."""
    if to is not None and to not in _RUNTIMES and to not in _FORMATS:
        raise ConfigError(f"--to {to}: one of {', '.join([*_RUNTIMES, *_FORMATS])}")
    if install and (output is not None or to in _FORMATS):
        raise ConfigError(
            "--install writes a session of a runtime where that finds it: without --output, and "
            f"with --to {' or '.join(_RUNTIMES)}"
        )
    if output is None and not install and is_terminal():
        raise ConfigError("name a file with --output, or add --install; `--output -` prints it")


def _own_form(of_session: CheckpointSession, *, install: bool) -> str:
    """Return the form of the session's own runtime, else that of messages."""
    runtime = of_session.view.identity.runtime
    own = (name for name, (each, _) in _RUNTIMES.items() if each.runtime == runtime)
    form = next(own, "messages")
    if install and form in _FORMATS:
        raise ConfigError(f"--install: add --to {' or '.join(_RUNTIMES)}")
    return form


def _compaction_of(of_session: CheckpointSession, number: int) -> Compaction:
    for each in of_session.compactions:
        if each.number == number:
            return each
    session = _name(of_session)
    if not of_session.compactions:
        raise StopError(f"session {safe(session)} has no compaction to fork from yet")
    numbers = [str(each.number) for each in of_session.compactions]
    raise StopError(
        f"session {safe(session)} has no compaction {number}: it has {', '.join(numbers)} "
        "(`contextgauge checkpoints`)"
    )


def _context_of(of_session: CheckpointSession, number: int, *, is_after: bool) -> _Context:
    checkpoint = of_session.held().get(number)
    if checkpoint is None:
        raise StopError(
            "neither the session's transcript nor its messages up to that compaction are here: run "
            "this where its agent runs, or keep its messages with `contextgauge conversations`"
        )
    held = checkpoint.after if is_after else checkpoint.before
    if not held.messages:
        raise StopError("what the model saw there is not in what is here: fork its origin")
    if of_session.lines is not None:
        lines = of_session.lines.lines[: held.lines]
        return _Context(held, lines, seen_context(lines))
    around, conversation = of_session.kept_around(number), of_session.kept
    if around is None or conversation is None or conversation.state == "without_text":
        raise StopError("the session's messages were published without text")
    return _Context(held, None, SeenContext(around[is_after].active, conversation.model, {}))


def _new_fork(
    of_session: CheckpointSession,
    form: str,
    context: _Context,
    title: str,
    past: Sequence[Compaction],
) -> NewFork:
    made_ms = SystemClock().now_ms()
    folders = (folder_of(each) for each in context.lines or ())
    # The folder that the session began in: runtimes look for its file by that.
    folder = next((each for each in folders if each is not None), of_session.view.identity.cwd)
    if folder is None:
        raise StopError("the session does not say in which folder its agent works: --to messages")
    session = _name(of_session)
    return NewFork(
        _RUNTIMES[form][1].new_id(made_ms, new_id()),
        session,
        made_ms,
        folder,
        context.seen.model,
        f"{title} of {session}",
        [PastCompaction(each.trigger, each.tokens_before, each.time_ms) for each in past],
    )


def _lines(form: ForkForm, context: _Context, new: NewFork) -> Iterable[dict[str, Any]]:
    if context.lines is not None and any(map(form.is_line, context.lines)):
        return form.copy(context.lines, new, context.seen.prompts)
    return form.write(written(context.seen.messages, form.format), new)


def _place(adapter: Adapter, form: ForkForm, of_session: CheckpointSession, new: NewFork) -> str:
    """Return where a runtime finds a fork. Raises ConfigError where that is not known."""
    folders = folders_of(adapter, os.environ)
    try:
        path = folders[0] / form.path(new)
    except ValueError as error:
        raise ConfigError(f"{error}: write it with --output, and move it there") from error
    origins = [] if of_session.lines is None or not form.is_with_origin else of_session.lines.paths
    near = [
        folder
        for each in origins
        if any((folder := each.absolute().parent).is_relative_to(root) for root in folders)
    ]
    # Where it went on in other folders too, that of the folder in which it is resumed.
    own = [each for each in near if each.name == path.parent.name]
    return str((own or near or [path.parent])[-1] / path.name)


def _write(target: str, lines: Sequence[bytes], *, private: bool = False) -> None:
    """Write a new file, or to standard output. Raises ConfigError."""
    if target == _STANDARD:
        write_lines(lines)
        return
    path = Path(expanded(target))
    try:
        if private:
            path.parent.mkdir(parents=True, exist_ok=True)
        write_new(path, lines, _PRIVATE if private else _USUAL)
    except FileExistsError:
        raise ConfigError(f"{path} is there: a fork overwrites nothing") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error


def _say_limits(
    of_session: CheckpointSession, compaction: Compaction, context: _Context, *, is_after: bool
) -> None:
    """Say what is left out, and what to reckon with."""
    lines = of_session.lines
    if lines is not None:
        later = len(lines.lines) - context.held.lines
        left_out = [count(later, "later line")] if later else []
        if lines.subagents:
            left_out.append(f"{count(lines.subagents, 'transcript')} of subagents")
        if left_out:
            say(f"Left out: {' and '.join(left_out)}.")
    if not context.held.is_whole:
        say("A part of what the model saw there is missing: it is not in what is here.", "yellow")
    if not is_after and compaction.trigger == "auto" and compaction.tokens_before is not None:
        say(
            f"With {exact(compaction.tokens_before)} tokens, this is where it was compacted: its "
            "runtime may do so again at once."
        )
