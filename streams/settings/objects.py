"""Settings that are JSON objects."""

from typing import Any

from streams import codec


def parsed_object(value: str) -> dict[str, Any]:
    """Parse a setting's text. Raises ValueError, which pydantic reports, for anything else."""
    try:
        parsed = codec.loads(value)
    except ValueError as error:
        raise ValueError(f"is not JSON ({error})") from error
    if not isinstance(parsed, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004 -- pydantic reports ValueError
    return parsed
