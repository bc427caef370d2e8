"""`contextgauge share`: a session's context over time as one HTML file for others."""

import getpass
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contextgauge.errors import ConfigError, StopError
from schemas.records import Record, SessionInfo
from streams.cli.local_session import file_of
from streams.cli.pages.document import write_whole
from streams.cli.screen.figures import count, exact, safe, size
from streams.cli.screen.options import OneSession, SessionOrPath
from streams.cli.screen.output import reading, say
from streams.cli.share.cleaning import Cleaning, names_of
from streams.cli.share.share_page import share_page
from streams.cli.share.shared import SharedSession, shared, shared_of_stored
from streams.cli.share.texts import MOST_CHARACTERS, spoken

if TYPE_CHECKING:
    from streams.cli.transcripts import ReplayedSession
    from streams.serve.views.sessions import Sessions


def share(
    session: SessionOrPath,
    *,
    one: OneSession = None,
    target: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Where to write it.")
    ] = Path("session.html"),
    text: Annotated[
        bool,
        typer.Option(
            "--text",
            help="With the texts of the conversation, without what looks like a secret, path, "
            "name or address. Needs the transcript.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Write it without asking.")] = False,
) -> None:
    """Write a session's context over time as one HTML file that can be given to others.

    Its size after each response, with the window, warnings and compactions, to be played step by
    step. No text, name, folder, id or date is in it, and no model's name but public ones. What it
    will have is shown first.
    """
    made, replayed = _session(session, one)
    if not made.steps:
        raise StopError(f"{safe(session)}: no response has a size: there is nothing to show")
    rows = _contents(made)
    left_out = "ids, names, folders, versions, dates, errors"
    rows.append(("left out", f"{left_out}, except in the texts" if text else left_out))
    if text:
        if replayed is None:
            raise ConfigError("--text needs the transcript: name its file instead of the session")
        rows += _add_texts(made, replayed)
    else:
        rows.append(("texts", "none (--text adds them)"))
    content = share_page(made)
    say(f"{target} will have:")
    for name, value in rows:
        say(f"  {name}: {value}")
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigError("no one can be asked here: add --yes to write it")
        if not typer.confirm(f"Write {target} ({size(len(content))})?", err=True):
            raise typer.Exit(1)
    write_whole(target, content)
    say(f"wrote {target} ({size(len(content))})")


def _session(session: str, one: str | None) -> tuple[SharedSession, "ReplayedSession | None"]:
    """Return what is shared of a session; from a transcript also what was read."""
    from streams.cli.transcripts import session_of  # noqa: PLC0415 -- derives, for files

    file = file_of(session, one)
    if file is not None:
        with reading():
            replayed = session_of(*file)
        return shared(replayed.records), replayed

    from streams.cli.stored import read_views  # noqa: PLC0415 -- paths need no Redis

    async def read(reader: "Sessions") -> Sequence[Record]:
        view = await reader.find(session)
        return await reader.records(view.session_id, readings=True)

    return shared_of_stored(read_views(read)), None


def _contents(made: SharedSession) -> list[tuple[str, str]]:
    """Return what the file has, in words."""
    kinds = {
        "warning": "warning",
        "compaction": "compaction",
        "failed": "failed attempt",
        "reset": "reset",
        "edit": "edit",
        "exhausted": "full window",
    }
    events = [(len(made.events(kind)), name) for kind, name in kinds.items()]
    number, since = f"{len(made.steps):,}", "the beginning"
    if not made.is_whole:
        number = f"the newest {number} (older ones are not stored; a transcript has all)"
        since = "the first of these"
    return [
        ("responses", f"{number}, with size, window and time since {since}"),
        (
            "events",
            ", ".join(count(number, name) for number, name in events if number) or "none",
        ),
        ("models", ", ".join(made.models)),
        ("subagents", f"{made.subagents} (their number alone)"),
    ]


def _add_texts(made: SharedSession, replayed: "ReplayedSession") -> list[tuple[str, str]]:
    """Add the cleaned texts to the steps; return what was added and taken out, in words."""
    texts = spoken(replayed, made)
    folders = {
        record.data.cwd
        for record in replayed.records
        if isinstance(record.data, SessionInfo) and record.data.cwd is not None
    }
    own = [Path.home().name]
    with suppress(OSError, KeyError):
        own.append(getpass.getuser())
    cleaning = Cleaning(names_of((each.text for each in texts), sorted(folders), own))
    characters = shortened = 0
    for each in texts:
        # Cleaned before it is shortened: half a secret is not recognised.
        clean = cleaning.text(each.text)
        shortened += len(clean) > MOST_CHARACTERS
        clean = clean if len(clean) <= MOST_CHARACTERS else f"{clean[:MOST_CHARACTERS]} …"
        characters += len(clean)
        made.steps[each.step].texts.append({"of": each.of, "text": clean})
    taken = ", ".join(f"{kind} {number:,}" for kind, number in cleaning.removed.items() if number)
    sizes = f"{count(len(texts), 'text')} of {count(characters, 'character')}"
    return [
        ("texts", f"{sizes}, {exact(shortened)} shortened"),
        ("taken out of texts", taken or "nothing was recognised"),
        ("note", "what is recognised goes by its shape: read the file before you share it"),
    ]
