"""opencode: the events of `opencode run --format json`, and what it stores of them.

Before 1.2 that is in JSON files (`stored`), since then in a database (`tables`). Checked against
anomalyco/opencode (packages/opencode up to 1.18; sql.ts, projector.ts and compaction.ts of
packages/core at 2.0), databases that 1.15 to 2.0.26 wrote, and files that 0.5 to 1.0 wrote.

An event holds one part of a message. `step-finish` has the usage of one call of the model, next to
the input what was cached; a part `compaction` asks for one, and the call that answers it is of a
message with `summary`. The database names the message's model and the folder, and of a subagent's
session the one that it belongs to; the stream names neither. From 2.0 on a row is a whole message,
which counts once it is complete; messages that were copied from the older tables do not count.

A model's window is known where its maker serves it: what a provider in between allows is not.
"""

from functools import partial
from typing import Final

from contextgauge.normalise.adapter import (
    Adapter,
    Fields,
    Folders,
    Inside,
    LineType,
    Meaning,
    Sign,
    named,
)
from contextgauge.normalise.fields import (
    count,
    flag,
    in_range,
    long_name,
    mapping,
    name,
    text,
    truth,
)
from contextgauge.normalise.opencode import stored, tables
from contextgauge.normalise.served_models import served_model
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    CompactionRefused,
    CompactionStatus,
    Response,
    SessionFacts,
    Signal,
    TriggerHint,
    Usage,
    UserLine,
)
from contextgauge.normalise.spellings import COMMON
from contextgauge.normalise.tells import Compared, Source, Tells
from contextgauge.normalise.usage import summary_cost, without_cached
from contextgauge.record_words import Runtime, Trigger
from contextgauge.records import Json


def moment(body: Body) -> int | None:
    """Return a line's own time: milliseconds since 1970."""
    written_ms = count(body, "timestamp")
    return None if written_ms is None else in_range(written_ms)


def cause(body: Body) -> str | None:
    """Return a part's id: the folder and the version of its session may change later."""
    return name(mapping(body, "part") or {}, "id")


def step_finish(runtime: Runtime, body: Body) -> tuple[Signal, ...]:
    """Return the response that one call of the model is, or the compaction that it made."""
    part = mapping(body, "part") or {}
    tokens = mapping(part, "tokens")
    if tokens is None:
        return ()
    usage, output = _counts(tokens)
    message = mapping(body, "message") or {}
    # What a provider does not report is written as 0.
    if flag(message, "summary"):
        cost = summary_cost(usage, output) if usage.used else None
        trigger, written = _TRIGGERS.get(truth(message, "auto")), text(part, "text")
        return (
            *_facts(runtime, body),
            Boundary(trigger, None, None, None, None, {}, written, receipt=cost),
        )
    if not usage.used:
        return ()
    key = name(part, "id")
    response = Response(
        key, key, _model(message), usage, output, (), exhausted=False, boundary=None, is_whole=True
    )
    return (*_facts(runtime, body), response)


def _counts(tokens: Body) -> tuple[Usage, int | None]:
    """Return the counts of a call, and all that the model wrote.

    `output` leaves the reasoning out or not, by version.
    """
    cache = mapping(tokens, "cache") or {}
    counted = without_cached(tokens.get("input"), count(cache, "read"), count(cache, "write"))
    usage = counted or Usage(None, None, None)
    total = count(tokens, "total")
    return usage, count(tokens, "output") if total is None else max(0, total - usage.used)


def _model(message: Body) -> str | None:
    """Return the model; OpenAI's windows are smaller where a subscription pays, which is not known.

    See anomalyco/opencode: packages/opencode/src/plugin/codex.ts.
    """
    return served_model(name(message, "modelID"), name(message, "providerID"))


_TRIGGERS: Final[dict[bool | None, Trigger]] = {False: "manual", True: "auto"}


def compaction(runtime: Runtime, body: Body) -> tuple[Signal, ...]:
    """Return that a compaction begins, and what triggers it."""
    part = mapping(body, "part") or {}
    trigger = TriggerHint("auto" if flag(part, "auto") else "manual")
    return (*_facts(runtime, body), trigger, CompactionStatus("COMPACTING"))


def compacted(runtime: Runtime, body: Body) -> tuple[Signal, ...]:
    """Return the boundary that a compaction is which ended, or that it failed."""
    part = mapping(body, "part") or {}
    if part.get("status") == "failed":
        return (*_facts(runtime, body), CompactionRefused(text(part, "text"), blocked=False))
    tokens = mapping(part, "tokens")
    counted, output = _counts(tokens) if tokens is not None else (None, None)
    begun_ms, ended_ms = count(part, "created"), count(body, "timestamp")
    boundary = Boundary(
        "auto" if flag(part, "auto") else "manual",
        None,
        None,
        None if begun_ms is None or ended_ms is None else max(0, ended_ms - begun_ms),
        None,
        {},
        text(part, "text"),
        receipt=summary_cost(counted, output),
    )
    return (*_facts(runtime, body), boundary)


def words(body: Body) -> tuple[Signal, ...]:
    """Return the user line that a person's text is."""
    if prompt(body) is None:
        return ()
    return (UserLine(counted=True, mark=None, uuid=None, text=None),)


def prompt(body: Body) -> Json:
    """Return a person's text; opencode marks what it adds to a message as `synthetic`."""
    part, message = mapping(body, "part") or {}, mapping(body, "message") or {}
    if message.get("role") != "user" or flag(part, "synthetic", "ignored"):
        return None
    return text(part, "text")


def _facts(runtime: Runtime, body: Body) -> tuple[SessionFacts, ...]:
    session = mapping(body, "session") or {}
    folder, version = long_name(session, "directory"), name(session, "version")
    is_subagent = flag(body, *COMMON.sidechain)
    return (SessionFacts(runtime, version, None, folder, None, only_new=is_subagent),)


_FIELDS: Final[Fields] = {
    **named(Meaning.NAME, "runtime agentId"),
    **named(Meaning.LONG_NAME, "sessionID"),
    **named(Meaning.FIGURES, "timestamp isSidechain"),
    "part": Inside(
        {
            **named(Meaning.NAME, "id messageID"),
            **named(Meaning.LONG_NAME, "sessionID"),
            **named(Meaning.WORD, "type status"),
            **named(Meaning.FIGURES, "tokens auto overflow synthetic ignored cost created"),
            "text": Meaning.TEXT,
        }
    ),
    "message": Inside(
        {
            **named(Meaning.NAME, "modelID providerID"),
            **named(Meaning.WORD, "role"),
            **named(Meaning.FIGURES, "summary auto"),
        }
    ),
    "session": Inside({"directory": Meaning.LONG_NAME, "version": Meaning.NAME}),
}


def stored_adapter(
    label: str,
    key: Runtime,
    version: str,
    compared: Compared,
    *,
    stored_at: str,
    **sign: object,
) -> Adapter:
    """Return the adapter of a runtime that stores sessions as opencode does.

    Its lines have this sign, too; `stored_at` is how the path of the folder of its JSON files ends.
    """
    line: Sign = {**sign, "sessionID": str, "part": dict}
    return Adapter(
        label=label,
        signs=(line, stored.SESSION),
        line_signs=(line,),
        types={
            "step_finish": LineType(partial(step_finish, key), moment=moment),
            "compaction": LineType(partial(compaction, key), moment=moment),
            "compacted": LineType(partial(compacted, key), moment=moment),
            "text": LineType(words, prompt=prompt, moment=moment),
        },
        fields=_FIELDS,
        spelling=COMMON._replace(session=("sessionID",)),
        cause=cause,
        compacts_itself=True,
        database=tables.database(key),
        joined=stored.joined(key),
        files=(
            rf"{key}[^/]*\.db",
            stored_at + r"storage/session/[^/]+/(?P<session>ses_[^/]+)\.json",
        ),
        other_files=(
            rf"{key}/(?:storage|project/[^/]+/storage/session)/(?:message|part)(?:/.*)?",
            r"(?:message|part)/(?:ses|msg)_[^/]+(?:/.*)?",
        ),
        folders=Folders(("XDG_DATA_HOME",), ("~/.local/share",), key),
        prompt_words=('"text"',),
        tells=Tells(
            version,
            compared=compared,
            window=Source.DERIVED,
            size=Source.MEASURED,
            start=Source.MEASURED,
            end=Source.MEASURED,
            trigger=Source.MEASURED,
            duration=Source.DERIVED,
            summary=Source.MEASURED,
            own_cost=Source.MEASURED,
            subagents=Source.MEASURED,
            note="A window is known where the model's maker serves it. Up to 1.18 a compaction "
            "that failed is one without an end; from 2.0 on one is seen once it has ended, with "
            "its summary. Before 1.2 sessions are JSON files: next to a database, which has them "
            "too, they are left out, unless their own folder is named. Files of versions "
            "before 0.3 are not read.",
        ),
    )


ADAPTERS: Final = (
    stored_adapter(
        "opencode",
        "opencode",
        "2.0.26",
        Compared(3, 33, sources=("suhd550-dev/stunning-memory: opencode.db",)),
        stored_at="(?<!kilo/)",
    ),
)
