"""What a summariser needs of a provider: one call of a model, and its answer in common words."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias

from contextgauge.compaction.summarisers.failures import ProviderFailed
from contextgauge.compaction.summarisers.prompts import Prompt
from contextgauge.errors import ConfigError
from contextgauge.json_codec import loads
from contextgauge.records import Json

Stop: TypeAlias = Literal["end", "length", "refusal", "cut"]
"""Why the answer ends: complete, at its limit, refused, or with its connection."""

_NO_KEY: Final = "none"
"""Without one the SDKs would send the environment's key to any server."""

Fields: TypeAlias = dict[str, Json]

UNCOMPRESSED: Final = {"accept-encoding": "identity"}
"""Headers of each request. An answer has some kilobytes, and what is compressed may unpack to
gigabytes: the SDKs hold all of it in memory."""


async def refuse_compressed(answer: Any) -> None:  # noqa: ANN401 -- httpx's, of whatever version
    """Raise ProviderFailed for an answer that is compressed all the same, before it is read."""
    encoding = answer.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise ProviderFailed(
            "the provider's answer is compressed, which it was asked not to be: no proxy between "
            "may compress answers",
            final=True,
        )


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


class SdkModel:
    """What the models of all SDKs share: their options.

    Without `api_key`, the SDK takes its environment variable; a server at a `base_url` is sent the
    word `none` instead, as the variable's key is meant for the provider. `extra` are
    further fields of each request.

    `conversation` are the fields of the conversation's own requests, but for model, messages and
    limits: system prompt and tools as they were sent, `cache_control`, `thinking`, `tool_choice`.
    Prompts that repeat the conversation send them: a provider's cache is not read by a request
    that differs in one of them.
    """

    provider: ClassVar[str]
    package: ClassVar[str]
    key_variable: ClassVar[str]

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        extra: Mapping[str, Json] | None = None,
        conversation: Mapping[str, Json] | None = None,
    ) -> None:
        """Import the SDK, which takes a second or more: before the agent's loop runs.

        Raises ConfigError where it is not installed.
        """
        _load(self.package, self.provider)
        self._model, self._base_url = model, base_url
        self._api_key = api_key or (_NO_KEY if base_url else None)
        self._extra, self._conversation = extra or {}, conversation or {}

    @property
    def name(self) -> str:
        """Provider and model."""
        return f"{self.provider}/{self._model}"

    @property
    def key(self) -> str:
        """What to check where the provider refuses the key, or there is none."""
        return "the key" if self._api_key else f"the key, {self.key_variable}"

    def _fields(self, prompt: Prompt, **fields: Json) -> Fields:
        """Return the fields of a request: None, empty texts and empty lists are left out."""
        tools: list[Json] = [loads(each) for each in prompt.tools]
        own: Fields = {"temperature": prompt.temperature, "tools": tools, **fields}
        present = {key: value for key, value in own.items() if value not in (None, "", [])}
        return {**present, **self._extra, **(self._conversation if prompt.repeats else {})}


def _load(package: str, extra: str) -> None:
    try:
        import_module(package)
    except ImportError as error:
        raise ConfigError(
            f"cannot import {package} ({error}): install contextgauge with the extra {extra}"
        ) from None
