"""`contextgauge checkpoints`: a session's compactions as places to fork it from."""

from collections.abc import Mapping
from typing import Final

from rich.table import Table
from rich.text import Text

from contextgauge.clock import SystemClock
from schemas.records import Json
from streams.cli.screen.figures import GUESS, ago, count, duration, exact
from streams.cli.screen.options import AsJson, OneSession, SessionOrPath
from streams.cli.screen.output import cell, err, out, say, write_json
from streams.cli.screen.tables import plain_table
from streams.cli.session_checkpoints import CheckpointSession, checkpoint_session
from streams.core.conversation.checkpoints import HeldContext, SessionCheckpoint
from streams.edge.files.known_forks import KnownForks

_NOT_HERE: Final = (
    "Neither the session's transcript nor its messages are here, so it cannot be forked: run this "
    "where its agent runs, or keep its messages with `contextgauge conversations`."
)


def checkpoints(session: SessionOrPath, *, one: OneSession = None, as_json: AsJson = False) -> None:
    """List a session's compactions as checkpoints, and its forks on this machine.

    A session can be forked just before each compaction, with all that its model saw then, and right
    after it, with the summary and what was kept: `contextgauge fork SESSION NUMBER`. `Fork` is how
    many messages a fork's model sees, before and after; `~` where a part of them is not here.

    A path is read as it is; else the session is one of the views in Redis, or where none is
    configured, one of this machine's transcripts.
    """
    of_session = checkpoint_session(session, one)
    held, forks = of_session.held(), of_session.forks()
    if as_json:
        write_json(_document(of_session, held, forks))
        return
    if of_session.view.identity.forked_from is not None:
        say(f"Forked from {of_session.view.identity.forked_from}.", to=out)
    if of_session.compactions:
        out.print(_table(of_session, held))
    else:
        say("No compaction yet: there is no checkpoint.", to=out)
    _say_forks(forks)
    if of_session.compactions and not held:
        err.print(_NOT_HERE, style="dim")


def _say_forks(forks: KnownForks) -> None:
    least = "" if forks.are_all else "at least "
    own = [each for each in forks.found if each.says_origin]
    like = [each for each in forks.found if not each.says_origin]
    for sessions, what in (
        (own, f"{least}{count(len(own), 'fork')} on this machine"),
        (like, f"{least}{count(len(like), 'session')} on this machine with the same beginning"),
    ):
        if sessions:
            say(f"{what[0].upper()}{what[1:]}:", to=out)
        for each in sessions:
            say(f"  {each.session_id}  {each.path}", to=out)
    if not forks.are_all:
        err.print("Only the transcripts that were written last were looked at.", style="dim")


def _table(of_session: CheckpointSession, held: Mapping[int, SessionCheckpoint]) -> Table:
    figures = ("Before", "After", "Took", "Messages")
    table = plain_table("#", "Trigger", *figures, "Fork", "When", right=("#", *figures))
    now_ms = SystemClock().now_ms()
    for each in of_session.compactions:
        inherited = ", inherited" if each.inherited else ""
        table.add_row(
            str(each.number),
            Text(f"{each.trigger or 'unknown trigger'}{inherited}"),
            _figure(each.tokens_before),
            _figure(each.post_tokens if each.tokens_after is None else each.tokens_after),
            duration(each.duration_ms),
            exact(each.messages_since_last),
            Text(_held_words(held.get(each.number))),
            Text(ago(each.time_ms, now_ms), style="dim"),
        )
    return table


def _figure(tokens: int | None) -> Text:
    return cell(None if tokens is None else exact(tokens))


def _held_words(checkpoint: SessionCheckpoint | None) -> str:
    if checkpoint is None:
        return "not here"
    return f"{_messages(checkpoint.before)} before, {_messages(checkpoint.after)} after"


def _messages(held: HeldContext) -> str:
    return ("" if held.is_whole else GUESS) + exact(held.messages)


def _document(
    of_session: CheckpointSession, held: Mapping[int, SessionCheckpoint], forks: KnownForks
) -> dict[str, Json]:
    identity, lines = of_session.view.identity, of_session.lines
    return {
        "session_id": of_session.view.session_id,
        "runtime": identity.runtime,
        "forked_from": identity.forked_from,
        "file": None if lines is None or lines.path is None else str(lines.path),
        "checkpoints": [
            {
                "number": each.number,
                "boundary_id": each.boundary_id,
                "time_ms": each.time_ms,
                "trigger": each.trigger,
                "tokens_before": each.tokens_before,
                "post_tokens": each.post_tokens,
                "tokens_after": each.tokens_after,
                "duration_ms": each.duration_ms,
                "messages_since_last": each.messages_since_last,
                "inherited": each.inherited,
                "before": _side(held, each.number, 0),
                "after": _side(held, each.number, 1),
            }
            for each in of_session.compactions
        ],
        "forks": [
            {
                "session_id": each.session_id,
                "file": str(each.path),
                "says_origin": each.says_origin,
            }
            for each in forks.found
        ],
        "forks_are_all": forks.are_all,
    }


def _side(held: Mapping[int, SessionCheckpoint], number: int, side: int) -> dict[str, Json] | None:
    checkpoint = held.get(number)
    if checkpoint is None:
        return None
    context = (checkpoint.before, checkpoint.after)[side]
    return {"messages": context.messages, "is_whole": context.is_whole}
