"""The route that replays a session under other triggers and windows, from its stored records."""

import asyncio
from functools import partial
from typing import Annotated, Final, TypeAlias

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from schemas.records import Json
from streams.codec.what_if import what_if_document
from streams.core.whatif.answers import priced, stored_answer
from streams.core.whatif.new_settings import (
    DEFAULT_TRIGGERS,
    LEAST_TOKENS,
    Setting,
    read_triggers,
    setting_of,
)
from streams.serve.api import answers, parameters
from streams.serve.api.problems import bad_parameter
from streams.serve.api.reading import Reading
from streams.serve.api.routing import Described, Router, problems_of
from streams.serve.api.serving import Serving

_MOST_TRIGGERS: Final = 6
"""A replay of the 2 000 responses that views hold takes some 0.2 s for each."""

Triggers: TypeAlias = Annotated[
    str | None,
    Field(
        max_length=100,
        description="Sizes at which to compact, with commas between them: percentages of the "
        f"window, or tokens. {_MOST_TRIGGERS} at most. Default: {DEFAULT_TRIGGERS}, or the "
        "recorded one with another window.",
        examples=[DEFAULT_TRIGGERS],
    ),
]
OtherWindow: TypeAlias = Annotated[
    int | None,
    Field(
        ge=LEAST_TOKENS,
        le=1_000_000_000,
        description="Another window, tokens; left out: as recorded.",
    ),
]


def add_what_if(router: Router, reading: Reading, serving: Serving) -> None:
    """Add the route. One replay at a time: others wait, or share its answer."""
    made = answers.PricedAnswers("what_if")
    turn, prices = asyncio.Lock(), priced(serving.prices)

    @router.add(
        "GET",
        "/v1/sessions/{session_id:id}/what-if",
        Described(
            "readWhatIf",
            "sessions",
            "Read what other triggers would have made of a session",
            responses=answers.CONDITIONAL | problems_of(404, 422),
        ),
    )
    async def what_if(
        request: Request,
        session_id: parameters.SessionId,
        trigger: Triggers = None,
        window: OtherWindow = None,
    ) -> Response:
        """Replay a session's growth under other triggers or another window.

        Compactions, tokens and costs against what was recorded, with intervals; after how many
        responses each compaction paid off; and the setting to use. From its newest 2 000 readings,
        at list prices. What the compaction engine would leave needs the messages: the command
        `contextgauge what-if` reads them from transcripts.
        """
        settings = _settings(trigger, window)
        snapshot, view = await reading.session(session_id)

        async def make() -> Json:
            records = await reading.at(snapshot).records(session_id, readings=True)
            replayed = partial(stored_answer, records, settings, prices, serving.thresholds)
            async with turn:
                answer = await asyncio.to_thread(replayed)
            return what_if_document(answer)

        return await made.answer(request, snapshot, (settings, view), make)


def _settings(trigger: str | None, window: int | None) -> tuple[Setting, ...]:
    """Return the settings to compare. Raises Problem."""
    if trigger is None and window is not None:
        return (setting_of(None, window),)
    try:
        triggers = read_triggers(DEFAULT_TRIGGERS if trigger is None else trigger)
    except ValueError as error:
        expected = f"neither a percentage up to 100 nor {LEAST_TOKENS:,} tokens or more"
        raise bad_parameter(("trigger", f"{str(error)!r} is {expected}")) from None
    if not 1 <= len(triggers) <= _MOST_TRIGGERS:
        raise bad_parameter(("trigger", f"expected 1 to {_MOST_TRIGGERS} sizes"))
    return tuple(setting_of(each, window) for each in triggers)
