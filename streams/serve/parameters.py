"""The parameters of the routes, each with its bounds and what it means."""

from typing import Annotated, Literal, TypeAlias
from urllib.parse import quote, unquote

from fastapi import Path, Query
from starlette.convertors import Convertor, register_url_convertor

from schemas.records import Kind
from schemas.views import STREAM_ENTRIES, SizeState


class _AnyText(Convertor[str]):
    """A part of a path that is an id: of any characters, slashes and line ends too.

    The guard leaves it as it was sent.
    """

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


register_url_convertor("id", _AnyText())

MOST_SESSIONS = 1_000
"""Views of one answer: some 3 MB, a tenth of that by gzip."""

_TEXT = 500
"""Characters of a filter: more than any name that sessions have."""

SessionId: TypeAlias = Annotated[
    str,
    Path(description="A session's whole id.", examples=["0198c7a2-5d3e-7c41-9a55-3f0e6b1d2c88"]),
]
AgentId: TypeAlias = Annotated[
    str,
    Path(
        description="An agent's id, as its publisher names it, or a session's.",
        examples=["reviewer"],
    ),
]
Sort: TypeAlias = Annotated[
    Literal["recent", "pressure"],
    Query(description="recent: the last active first; pressure: the fullest first."),
]
State: TypeAlias = Annotated[
    SizeState | None, Query(description="How the size is known, or that a compaction is under way.")
]
Model: TypeAlias = Annotated[
    str | None, Query(max_length=_TEXT, description="The model of the main conversation.")
]
Runtime: TypeAlias = Annotated[
    str | None, Query(max_length=_TEXT, description="What runs the agent, such as claude-code.")
]
Agent: TypeAlias = Annotated[
    str | None, Query(max_length=_TEXT, description="The agent's id, as its publisher names it.")
]
MinPercent: TypeAlias = Annotated[
    float | None,
    Query(ge=0, le=1_000_000, allow_inf_nan=False, description="Percent used, at least."),
]
Text: TypeAlias = Annotated[
    str | None,
    Query(
        max_length=_TEXT,
        description="Part of the id, the folder, the model, the runtime, the agent or the task; "
        "upper and lower case are the same.",
    ),
]
After: TypeAlias = Annotated[
    str | None,
    Query(max_length=4_000, description="`next` of the answer before, to go on after it."),
]
SessionLimit: TypeAlias = Annotated[
    int, Query(ge=1, le=MOST_SESSIONS, description="Sessions in the answer, at most.")
]
RecordLimit: TypeAlias = Annotated[
    int, Query(ge=1, le=STREAM_ENTRIES, description="Records in the answer, at most.")
]
Kinds: TypeAlias = Annotated[
    list[Kind] | None,
    Query(description="Kinds of records, such as context_warning; several by repeating it."),
]
By: TypeAlias = Annotated[
    Literal["hour", "model"], Query(description="What to tell apart beside the total.")
]
Since: TypeAlias = Annotated[
    str | None,
    Query(
        pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}$",
        description="The first hour (UTC) that is told, as 2026-02-11T20; for by=hour. Records "
        "without a time are left out then.",
    ),
]
