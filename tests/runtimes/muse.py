"""A runtime that does not exist: the module of a folder `muse` next to the other runtimes.

It borrows two types of lines from Claude Code, and spells everything else in its own way.
"""

from typing import Final

from contextgauge.normalise.adapter import Adapter, FileHead, Folders, LineType, Meaning, named
from contextgauge.normalise.fields import count, long_name, mapping, moment_ms, name, text
from contextgauge.normalise.figure_sources import FigureColumn
from contextgauge.normalise.limit_signals import OwnWindow, TurnModel
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    Response,
    SessionFacts,
    Signal,
    Usage,
    UserLine,
)
from contextgauge.normalise.spellings import COMMON
from contextgauge.normalise.tells import Source, Tells
from contextgauge.records import Json


def head(body: Body) -> tuple[Signal, ...]:
    facts = SessionFacts(
        "muse",
        name(body, "release"),
        name(body, "model"),
        long_name(body, "place"),
        None,
        only_new=False,
    )
    return (facts, TurnModel("muse-1"), OwnWindow(count(body, "room") or 0))


def asked(_: Body) -> tuple[Signal, ...]:
    return (UserLine(counted=True, mark=None, uuid=None, text=None),)


def answered(body: Body) -> tuple[Signal, ...]:
    spent, ref = mapping(body, "spent") or {}, name(body, "ref")
    prompt, cached = count(spent, "prompt") or 0, count(spent, "cached")
    usage = Usage(prompt - (cached or 0), None, cached)
    model = name(body, "model")
    response = Response(
        ref, ref, model, usage, count(spent, "written"), (), exhausted=False, boundary=None
    )
    return (response,)


def squeezed(body: Body) -> tuple[Signal, ...]:
    trigger = "auto" if body.get("why") == "full" else "manual"
    before, after = count(body, "before"), count(body, "left")
    metadata: Body = {"before": before, "left": after}
    return (Boundary(trigger, before, after, None, None, metadata, text(body, "words")),)  # type: ignore[arg-type]  # one of two


def message(line: Body) -> dict[str, Json]:
    """Reduce a message to one of Claude Code's form."""
    content: dict[str, Json] = {"role": line["type"], "content": line.get("words")}
    return {"message": content, "uuid": line.get("ref"), "parentUuid": line.get("after")}


def summary(line: Body) -> dict[str, Json]:
    """Reduce a compaction to the summary that the next messages follow."""
    content: dict[str, Json] = {"role": "user", "content": line.get("words")}
    own = {"uuid": line.get("ref"), "parentUuid": None}
    return {"type": "user", "isCompactSummary": True, "message": content, **own}


def moment(line: Body) -> int | None:
    return moment_ms(line.get("at"))


def prompt(line: Body) -> Json:
    return line.get("words")


ADAPTERS: Final = (
    Adapter(
        label="Muse",
        signs=({"conversation": str, "at": str},),
        line_signs=({"conversation": str, "at": str},),
        types={
            "muse.begin": LineType(
                read=head, head=lambda line: FileHead(text(line, "conversation")), moment=moment
            ),
            "user": LineType(read=asked, conversation=message, prompt=prompt, moment=moment),
            "assistant": LineType(read=answered, conversation=message, moment=moment),
            "muse.squeeze": LineType(read=squeezed, conversation=summary, moment=moment),
        },
        fields={
            **named(Meaning.LONG_NAME, "conversation place"),
            **named(Meaning.NAME, "ref after release model worker"),
            **named(Meaning.WORD, "type why"),
            "at": Meaning.TIME,
            "spent": Meaning.FIGURES,
            "words": Meaning.TEXT,
        },
        spelling=COMMON._replace(
            session=("conversation",), agent=("worker",), sidechain=("aside",)
        ),
        compacts_itself=True,
        folders=Folders(("MUSE_HOME",), ("~/.muse",), "logs"),
        files=(r"logs/(?P<session>[^/]+)\.jsonl",),
        other_files=(r"logs/drafts\.jsonl",),
        prompt_words=("user",),
        figures=(FigureColumn("Muse", {"reported": ("Window",)}),),
        tells=Tells(version="3.1", window=Source.MEASURED, size=Source.MEASURED),
    ),
)
