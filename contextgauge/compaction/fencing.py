"""Quoting what others wrote: data between marks that it cannot contain."""

import hashlib
from collections.abc import Iterable


def fence_for(texts: Iterable[str]) -> str:
    """Return a name that none of the texts contains, so none can close a fence of it."""
    texts = list(texts)
    state = hashlib.sha256()
    for text in texts:
        state.update(text.encode("utf-8", "surrogatepass"))
    while True:
        fence = f"data-{state.hexdigest()[:12]}"
        if not any(fence in text for text in texts):
            return fence
        state.update(b".")
