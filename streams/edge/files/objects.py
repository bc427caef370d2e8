"""Reads JSON objects with the standard library, which imports quickly."""

import json
from typing import Any


def object_of(text: bytes | str) -> dict[str, Any] | None:
    """Return a JSON object; None for any other text. Never raises."""
    try:
        value = json.loads(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
