"""The parameters of the routes, with their bounds and descriptions."""

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import unquote

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError
from starlette.convertors import Convertor, register_url_convertor

from schemas.records import Kind
from schemas.records import Runtime as KnownRuntime
from schemas.views import STREAM_ENTRIES, SizeState
from streams.serve.api.routing import Addressed
from streams.serve.views import session_summary


class _AnyText(Convertor[str]):
    """A part of a path that is an id, of any characters, including slashes and line ends.

    The guard leaves it encoded.
    """

    regex = r"[^/]*"

    def convert(self, value: str) -> str:
        return unquote(value)


register_url_convertor("id", _AnyText())

MOST_SESSIONS = 1_000
"""Views in one answer: about 3 MB, a tenth of that with gzip."""

MOST_NAMED = 200
"""Sessions that are asked for by their ids at once; their names make an address of 8 kB."""

_TEXT = 500
"""Characters of a filter: more than any name that sessions have."""

SessionId: TypeAlias = Annotated[
    str,
    Addressed(),
    Field(
        description="A session's whole id, or its `address` in an answer.",
        examples=["0198c7a2-5d3e-7c41-9a55-3f0e6b1d2c88"],
    ),
]
AgentId: TypeAlias = Annotated[
    str,
    Addressed(),
    Field(
        description="An agent's id, as its publisher names it, or a session's.",
        examples=["reviewer"],
    ),
]
CommandId: TypeAlias = Annotated[
    str,
    Field(
        description="A command's id, as the request was answered with.",
        examples=["5e3f6f0a-6f9b-4c1e-9a53-0b8a7f1d2c33"],
        max_length=100,
    ),
]
ScopeName: TypeAlias = Annotated[
    str,
    Field(
        description="An agent's id, or a project: the path of its folder, or the folder's name.",
        examples=["reviewer"],
        min_length=1,
        max_length=1_000,
    ),
]
SessionIds: TypeAlias = Annotated[
    list[str] | None,
    Addressed(),
    Field(
        max_length=MOST_NAMED,
        description="Only these sessions, by whole ids or `address`; several by repeating it. It "
        "stands alone: no other parameter goes with it.",
    ),
]
Sort: TypeAlias = Annotated[
    session_summary.Sort,
    Field(
        description="`recent`: the last active first; `pressure`: the fullest; `until`: the "
        "nearest to compaction; `growth`: the fastest growing; `compactions`: the most often "
        "compacted; `folder`: by the name of the folder."
    ),
]
LiveFirst: TypeAlias = Annotated[
    bool,
    Field(description="Sessions with a record in the last half hour come before all others."),
]
State: TypeAlias = Annotated[
    SizeState | None,
    Field(
        description="A session's state; a `stalled` one counts as `compacting`, a `stale` one as "
        "what it was before."
    ),
]
Model: TypeAlias = Annotated[
    str | None, Field(max_length=_TEXT, description="The model of the leading chain.")
]
Runtime: TypeAlias = Annotated[
    Literal[KnownRuntime, "unknown"] | None,  # type: ignore[valid-type]  # made of folders
    Field(description="What runs the agent; `unknown`: sessions whose runtime is unknown."),
]
Agent: TypeAlias = Annotated[
    str | None, Field(max_length=_TEXT, description="The agent's id, as its publisher names it.")
]
MinPercent: TypeAlias = Annotated[
    float | None,
    Field(ge=0, le=1_000_000, allow_inf_nan=False, description="Percent used, at least."),
]
Text: TypeAlias = Annotated[
    str | None,
    Field(
        max_length=_TEXT,
        description="Words, all of which are in the id, the folder, the model, the runtime, the "
        "agent, the task, or the title where the server has titles, in upper or lower case.",
    ),
]
After: TypeAlias = Annotated[
    str | None,
    Field(max_length=4_000, description="`next` of the previous answer, to continue after it."),
]
SessionLimit: TypeAlias = Annotated[
    int, Field(ge=1, le=MOST_SESSIONS, description="Sessions in the answer, at most.")
]
RecordLimit: TypeAlias = Annotated[
    int, Field(ge=1, le=STREAM_ENTRIES, description="Records in the answer, at most.")
]
Kinds: TypeAlias = Annotated[
    list[Kind] | None,
    Field(description="Kinds of records, such as context_warning; several by repeating it."),
]
By: TypeAlias = Annotated[
    Literal["hour", "model"], Field(description="What to group by, in addition to the total.")
]
_HOUR: Final = r"^\d{4}-\d{2}-\d{2}T\d{2}$"


def _hour(text: str) -> str:
    """Return an hour unchanged. Raises PydanticCustomError for any other text."""
    try:
        hour = datetime.strptime(text, "%Y-%m-%dT%H")  # noqa: DTZ007 -- its form is all that counts
    except ValueError:
        hour = None
    # Names of hours are compared as text, so no digit may be missing.
    if hour is None or hour.strftime("%Y-%m-%dT%H") != text:
        raise PydanticCustomError(
            "hour", "must be an hour in UTC, as year-month-dayThour: 2026-11-22T00, for example"
        )
    return text


Since: TypeAlias = Annotated[
    Annotated[str, AfterValidator(_hour)] | None,
    Field(
        description="The first hour (UTC) in the answer, such as `2026-11-22T00`; for by=hour. "
        "Records without a time are in `unknown`, which is always in the answer.",
        json_schema_extra={"pattern": _HOUR},
    ),
]
