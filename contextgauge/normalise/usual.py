"""What a quicker reader than `normalise` says of a message that comes often.

`normalise_usual` makes of it what `normalise` makes of the message itself.
"""

from typing import Final, NamedTuple

USUAL_LINE: Final = 0
"""A transcript's, that says nothing of its own."""

USUAL_USER: Final = 1
USUAL_RESPONSE: Final = 2
USUAL_RESPONSE_END: Final = 3


class UsualMessage(NamedTuple):
    """The values of a message that count; what is null or missing is None.

    `kind` is one of the constants above; `moment` in milliseconds since 1970 where it is written as
    usual, else as it stands. The last ten are a response's; `creation_1h` is what was written to
    the cache for an hour, `tier` and `speed` are words of its usage.
    """

    kind: int
    session_id: str | None = None
    uuid: str | None = None
    moment: str | int | None = None
    parent_id: str | None = None
    agent_id: str | None = None
    subagent_type: str | None = None
    is_transcript: bool = False
    is_sidechain: bool = False
    version: str | None = None
    folder: str | None = None
    response_id: str | None = None
    model: str | None = None
    input: int | None = None
    creation: int | None = None
    read: int | None = None
    output: int | None = None
    creation_1h: int | None = None
    request_id: str | None = None
    tier: str | None = None
    speed: str | None = None


NOTHING: Final = UsualMessage(-1)
"""Of a message that says nothing."""
