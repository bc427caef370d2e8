"""The names of message formats."""

from typing import Literal, TypeAlias

FormatName: TypeAlias = Literal["anthropic", "openai-chat", "openai-responses", "gemini", "plain"]
