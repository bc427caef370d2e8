"""What a summariser needs of a provider: one call of a model, and its answer in common words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, Protocol, TypeAlias

from contextgauge.compaction.prompts import Prompt
from contextgauge.errors import ConfigError
from contextgauge.json_codec import loads
from contextgauge.records import Json

Stop: TypeAlias = Literal["end", "length", "refusal", "cut"]
"""Why the answer ends: complete, at its limit, refused, or with its connection."""

Fields: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. `calls` counts the tools that it wants to call.

    `reasoned`: there was reasoning, which is no part of `texts`. `input_tokens` are all that were
    read, cache reads and writes included.
    """

    texts: tuple[str, ...]
    stop: Stop
    calls: int = 0
    reasoned: bool = False
    model: str | None = None
    input_tokens: int | None = None
    cache_read_tokens: int | None = None
    output_tokens: int | None = None


class Model(Protocol):
    """A model of a provider."""

    @property
    def name(self) -> str:
        """Provider and model: `anthropic/claude-haiku-4-5`."""
        ...

    async def answer(self, prompt: Prompt) -> Answer:
        """Call the model once. Raises what the provider's SDK raises."""
        ...


def need(package: str, extra: str) -> None:
    """Check that a provider's SDK is installed. Raises ConfigError."""
    try:
        installed = find_spec(package) is not None
    except ModuleNotFoundError:  # of the package that it is in
        installed = False
    if not installed:
        raise ConfigError(
            f"the package {package} is not installed: pip install 'contextgauge[{extra}]'"
        )


def body_fields(prompt: Prompt, extra: Mapping[str, Json], **fields: Json) -> Fields:
    """Return the fields of a request's body: None, empty texts and empty lists are left out."""
    own = {"temperature": prompt.temperature, "tools": tools(prompt.tools), **fields}
    present = {key: value for key, value in own.items() if value not in (None, "", [])}
    return {**present, **extra}


def tools(definitions: Sequence[str]) -> list[Json]:
    """Return the definitions of tools as they were sent."""
    return [loads(each) for each in definitions]
