"""A model by who serves it: its window is its maker's only where the maker does."""

from collections.abc import Container
from typing import Final

MAKERS: Final = frozenset({"anthropic", "google", "google-vertex"})
"""Providers, as many runtimes call them, whose models have the windows that the catalog lists."""


def served_model(
    model: str | None, provider: str | None, makers: Container[str] = MAKERS
) -> str | None:
    """Return a model's name, behind that of a provider which may allow less than its maker.

    Such a name is in no catalog, so the window is unknown until it is configured. Without a
    provider the name stays as it is.
    """
    if model is None or provider is None or provider in makers:
        return model
    return f"{provider}:{model}"
