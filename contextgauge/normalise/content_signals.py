"""What a message contains, measured: see R35."""

from typing import Literal, NamedTuple, TypeAlias


class ToolPart(NamedTuple):
    """A call of a tool, or its result: sizes and hashes, nothing of its text (R35)."""

    part: Literal["call", "result"]
    use_id: str | None
    tool: str | None
    input_hash: str | None
    path_hashes: tuple[str, ...]
    changes: bool | None
    bytes: int
    tokens: int
    is_error: bool | None


class TurnLength(NamedTuple):
    """How long a turn is that a person wrote (R35)."""

    characters: int
    tokens: int


ContentFact: TypeAlias = ToolPart | TurnLength
