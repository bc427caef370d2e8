"""Cline: the tasks of its extension, as messages that a person sees, a JSON document each.

Checked against cline/cline up to version 3 (src/core/task, src/core/api/providers): version 4 keeps
sessions in another form. A task's messages name neither the task nor, in older versions, the model.
"""

from typing import Final

from contextgauge.normalise.adapter import (
    ABSENT,
    Adapter,
    Fields,
    Folders,
    Inside,
    LineType,
    Meaning,
    Source,
    Tells,
    Words,
    named,
)
from contextgauge.normalise.cline import tasks

FIELDS: Final[Fields] = {
    "ts": Meaning.FIGURES,
    **named(Meaning.WORD, "say ask"),
    "partial": Meaning.FIGURES,
    "text": Words(tasks.beginning_of),
    "modelInfo": Inside(named(Meaning.NAME, "providerId modelId")),
}
FILES: Final = (r"tasks/(?P<session>[^/]+)/ui_messages\.json",)
OTHER_FILES: Final = (r"tasks/[^/]+/(?:api_conversation_history|task_metadata|history_item)\.json",)

_ASKED: Final = LineType(head=tasks.of_file, moment=tasks.moment)
_SIGNS: Final = (
    {"type": "say", "ts": int, "say": str, "contextCondense": ABSENT, "contextTruncation": ABSENT},
    {"type": "ask", "ts": int, "ask": str},
)


def extension_homes(identifier: str) -> tuple[str, ...]:
    """Return where an extension of VS Code keeps what is its own, on each system."""
    places = (
        "$XDG_CONFIG_HOME/Code",
        "~/Library/Application Support/Code",
        "~/.vscode-server/data",
    )
    return tuple(f"{place}/User/globalStorage/{identifier}" for place in places)


ADAPTERS: Final = (
    Adapter(
        label="Cline",
        signs=_SIGNS,
        line_signs=_SIGNS,
        types={
            "say": LineType(
                tasks.say, prompt=tasks.prompt, head=tasks.of_file, moment=tasks.moment
            ),
            "ask": _ASKED,
        },
        fields=FIELDS,
        cause=tasks.cause,
        compacts_itself=True,
        files=FILES,
        other_files=OTHER_FILES,
        folders=Folders((), (*extension_homes("saoudrizwan.claude-dev"), "~/.cline/data"), "tasks"),
        prompt_words=("say",),
        tells=Tells(
            version="3.72",
            window=Source.DERIVED,
            size=Source.MEASURED,
            end=Source.MEASURED,
            summary=Source.MEASURED,
            note="The model is in tasks of newer versions only, and the size is unknown where it "
            "cannot be known whether cached tokens are part of the input. Truncations and `/smol` "
            "are not written as such.",
        ),
    ),
)
