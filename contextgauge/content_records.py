"""The records of what messages contain (R35), which are derived where asked for."""

from typing import TYPE_CHECKING, ClassVar, Literal

from contextgauge.record_base import Common

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from contextgauge.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse(Common):
    """A call of a tool, or its result, without any of its text (R35); derived where asked for.

    A result names the call's `use_id`, and its `tool` where the runtime repeats it. `bytes` are
    those of the call's input as JSON, or of the result's texts, in UTF-8; `tokens_estimated` is a
    token for four characters. Hashes are of 16 bytes, in hex: of the input, and of each path in it
    (the first 8); two publishers' are not the same where texts are left out. `changes_files` is
    whether the call changes a file, null where it names none.
    """

    kind: ClassVar[Literal["tool_use"]] = "tool_use"
    part: Literal["call", "result"]
    use_id: str | None
    tool: str | None
    bytes: int
    tokens_estimated: int
    input_hash: str | None = None
    path_hashes: tuple[str, ...] = ()
    changes_files: bool | None = None
    is_error: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTurn(Common):
    """A turn that a person wrote, by its length (R35); derived where asked for."""

    kind: ClassVar[Literal["user_turn"]] = "user_turn"
    characters: int
    tokens_estimated: int
