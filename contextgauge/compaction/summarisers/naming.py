"""A summariser by its name, as settings and the command line give it: `anthropic:MODEL`."""

from collections.abc import Callable, Mapping
from typing import Final

from contextgauge.compaction.summarisers.anthropic import AnthropicModel
from contextgauge.compaction.summarisers.gemini import GeminiModel
from contextgauge.compaction.summarisers.model import Model
from contextgauge.compaction.summarisers.model_summariser import CallLimits, ModelSummariser
from contextgauge.compaction.summarisers.openai import ChatModel, ResponsesModel
from contextgauge.errors import ConfigError

_MODELS: Final[Mapping[str, Callable[..., Model]]] = {
    "anthropic": AnthropicModel,
    "openai": ChatModel,
    "openai-responses": ResponsesModel,
    "gemini": GeminiModel,
    "compatible": ChatModel,
}
PROVIDERS: Final = tuple(_MODELS)


def summariser_named(
    name: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    limits: CallLimits | None = None,
    redact: bool = True,
) -> ModelSummariser:
    """Return the summariser of `PROVIDER:MODEL`. Raises ConfigError.

    `compatible` is any server with OpenAI's Chat Completions API at `base_url`. Without `api_key`
    the provider's SDK takes its own environment variable, but sends its key to no `base_url`.
    """
    provider, _, model = name.partition(":")
    if provider not in PROVIDERS or not model:
        raise ConfigError(
            f"unknown summariser {name!r}: write PROVIDER:MODEL, with a provider of "
            f"{', '.join(PROVIDERS)}"
        )
    if provider == "compatible" and not base_url:
        raise ConfigError(f"the summariser {name!r} needs the address of its server, a base_url")
    made = _MODELS[provider](model, api_key=api_key, base_url=base_url)
    return ModelSummariser(made, limits=limits, redact=redact)
