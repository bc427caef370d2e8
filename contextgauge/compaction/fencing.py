"""Quoting what others wrote: data between marks that it cannot contain."""

import hashlib
from collections.abc import Iterable


def fence_for(texts: Iterable[str]) -> str:
    """Return a name that none of the texts contains, so none can close a fence of it."""
    return f"data-{nonce_for(texts, 12)}"


def nonce_for(texts: Iterable[str], digits: int) -> str:
    """Return at least so many hexadecimal digits that follow from the texts and are in none."""
    texts = list(texts)
    state = hashlib.sha256()
    for text in texts:
        state.update(text.encode("utf-8", "surrogatepass"))
    while True:
        nonce = state.hexdigest()[:digits]
        if not any(nonce in text for text in texts):
            return nonce
        digits = min(digits + 1, 64)  # so many that no text has all that are shorter
        state.update(b".")
