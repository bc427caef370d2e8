"""Roo Code: tasks as Cline's, with the changes of the context as messages of their own.

Checked against RooCodeInc/Roo-Code (src/core/task, packages/types). Its other messages are read as
Cline's: those of a request show whose they are. No message names the model.
"""

from typing import Final

from contextgauge.normalise.adapter import Adapter, Folders, Inside, LineType, Meaning, named
from contextgauge.normalise.cline import FIELDS, FILES, OTHER_FILES, extension_homes, tasks
from contextgauge.normalise.tells import Source, Tells

_SIGNS: Final = (
    {"type": "say", "ts": int, "contextCondense": dict},
    {"type": "say", "ts": int, "contextTruncation": dict},
)

ADAPTERS: Final = (
    Adapter(
        label="Roo Code",
        signs=_SIGNS,
        line_signs=_SIGNS,
        types={"say": LineType(tasks.condensed, head=tasks.of_file, moment=tasks.moment)},
        fields={
            **FIELDS,
            "contextCondense": Inside(
                {
                    **named(Meaning.FIGURES, "cost prevContextTokens newContextTokens"),
                    "condenseId": Meaning.NAME,
                    "summary": Meaning.TEXT,
                }
            ),
            "contextTruncation": Inside(
                {
                    **named(Meaning.FIGURES, "messagesRemoved prevContextTokens newContextTokens"),
                    "truncationId": Meaning.NAME,
                }
            ),
        },
        cause=tasks.cause,
        compacts_itself=True,
        files=FILES,
        other_files=OTHER_FILES,
        folders=Folders((), extension_homes("rooveterinaryinc.roo-cline"), "tasks"),
        tells=Tells(
            version="3.52",
            size=Source.MEASURED,
            end=Source.MEASURED,
            summary=Source.MEASURED,
            note="No message names the model, so the window is unknown: configure it to see "
            "percentages. A truncation is shown as an edit of the context.",
        ),
    ),
)
