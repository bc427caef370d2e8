"""`contextgauge what-if`: what other settings would have made of recorded sessions."""

from enum import StrEnum
from typing import Annotated

import typer

from contextgauge.errors import StopError
from streams.cli.exits import Exit
from streams.cli.inputs import LeftOut
from streams.cli.screen.lines import quiet_pipe
from streams.cli.screen.options import AsJson, OwnPaths
from streams.cli.screen.output import reading, write_json
from streams.cli.table_sources import transcripts_of
from streams.cli.whatif.reading import compare
from streams.cli.whatif.settings_of_options import STRATEGIES, settings_of
from streams.cli.whatif.tables import show
from streams.codec.what_if import what_if_document
from streams.core.whatif.new_settings import DEFAULT_TRIGGERS, LEAST_TOKENS


class By(StrEnum):
    """What the rows of the tables are of."""

    MODEL = "model"
    SESSION = "session"
    RULE = "rule"


Triggers = Annotated[
    str | None,
    typer.Option(
        metavar="SIZES",
        help="Sizes at which to compact, with commas between them: percentages of the window, "
        f"or tokens. Default: {DEFAULT_TRIGGERS}; the recorded one, if another option is "
        "given.",
        show_default=False,
    ),
]
OtherWindow = Annotated[
    int | None,
    typer.Option(
        metavar="TOKENS",
        min=LEAST_TOKENS,
        help="Another window. Without --trigger, it is compacted where the runtime does by "
        "default.",
        show_default=False,
    ),
]
WarnAt = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENTS",
        help="Other thresholds of warnings, with commas between them.",
        show_default=False,
    ),
]
Strategies = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Let the compaction engine make all compactions, without a model: one or more of "
        f"{', '.join(STRATEGIES)}.",
        show_default=False,
    ),
]
Goals = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENTS",
        help="What the engine compacts to, in percent of the window. Default: in proportion "
        "to the trigger, as in the profile.",
        show_default=False,
    ),
]


def what_if(
    paths: OwnPaths = None,
    *,
    trigger: Triggers = None,
    window: OtherWindow = None,
    warn: WarnAt = None,
    strategy: Strategies = None,
    goal: Goals = None,
    by: Annotated[By, typer.Option(help="What the tables are of.")] = By.MODEL,
    as_json: AsJson = False,
) -> None:
    """Show what other triggers, windows and strategies would have made of sessions.

    The context of each session grows as it did, and is compacted elsewhere. Shown are compactions,
    tokens and money, the difference to what was recorded with its interval, after how many
    responses each compaction paid off, and the setting to use for each model.
    """
    wanted = settings_of(trigger, window, warn, strategy, goal)
    left_out = LeftOut()
    sources = transcripts_of(paths or (), left_out)
    with quiet_pipe():
        with reading():
            answer = compare(sources, wanted)
        if not answer.chains:
            raise StopError("no response with a size: there is nothing to compare")
        if as_json:
            write_json(what_if_document(answer))
        else:
            show(answer, by=by.value)
    if left_out.count or not answer.is_whole:
        raise typer.Exit(Exit.STOPPED)
