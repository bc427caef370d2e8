"""JSON objects read plainly: for what starts so often that it has no time for the codec."""

import json
from typing import Any


def object_of(text: bytes | str) -> dict[str, Any] | None:
    """Return a JSON object, None where the text is none. Never raises."""
    try:
        found = json.loads(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
