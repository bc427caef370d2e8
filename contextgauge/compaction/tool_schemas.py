"""Definitions of the engine's own tools, as each provider's API takes them."""

from contextgauge.compaction.messages import FormatName
from contextgauge.records import Json


def tool_schema(
    name: str, description: str, parameters: dict[str, Json], format_: FormatName
) -> dict[str, Json]:
    """Return a tool's definition; `parameters` is a JSON schema of an object.

    For Gemini it is a function declaration. `plain` gives name, description and parameters, too.
    """
    fields: dict[str, Json] = {"name": name, "description": description}
    match format_:
        case "anthropic":
            return {**fields, "input_schema": parameters}
        case "openai-chat":
            return {"type": "function", "function": {**fields, "parameters": parameters}}
        case "openai-responses":
            return {"type": "function", **fields, "parameters": parameters}
        case "gemini" | "plain":
            return {**fields, "parameters": parameters}
