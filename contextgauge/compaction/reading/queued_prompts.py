"""What a person wrote while the agent worked, where a transcript has no message of it.

Claude Code queues it and hands it to the model with the next results of tools: its lines are
`enqueue`, then `remove`, and in later versions an attachment. One that waits for the end of the
turn instead (`dequeue`) becomes a message of its own.
"""

from collections.abc import Mapping, Sequence

from contextgauge.normalise.fields import text
from contextgauge.normalise.user_words import words_of
from contextgauge.records import Json


class QueuedPrompts:
    """The prompts of a conversation that no message has yet."""

    def __init__(self, waiting: Sequence[str] = (), absorbed: Sequence[str] = ()) -> None:
        self._waiting, self._absorbed = list(waiting), list(absorbed)

    def note(self, line: Mapping[str, Json]) -> None:
        """Take a line of the queue into account."""
        prompt = text(dict(line), "content")
        match line.get("operation"):
            case "enqueue" if prompt is not None and words_of([prompt])[0].of_user:
                self._waiting.append(prompt)  # a notice of the runtime's gets a line in any case
            case "remove" if self._waiting and prompt in (None, *self._waiting):
                place = 0 if prompt is None else self._waiting.index(prompt)
                self._absorbed.append(self._waiting.pop(place))
            case "popAll":
                self._waiting.clear()

    def came(self, prompt: str) -> None:
        """Note that a message has this text."""
        for prompts in (self._absorbed, self._waiting):
            if prompt in prompts:
                prompts.remove(prompt)
                return

    @property
    def has_absorbed(self) -> bool:
        """Whether the model got something without a message of it."""
        return bool(self._absorbed)

    def absorbed(self) -> list[str]:
        """Return what the model got without a message of it, once."""
        prompts, self._absorbed = self._absorbed, []
        return prompts

    def to_json(self) -> list[Json]:
        """Return the prompts as JSON."""
        return [list[Json](self._waiting), list[Json](self._absorbed)]

    @classmethod
    def from_json(cls, value: Json) -> "QueuedPrompts":
        """Read what `to_json` wrote; what is damaged counts as empty."""
        parts = value if isinstance(value, list) else []
        return cls(*([str(each) for each in part] for part in parts if isinstance(part, list)))
