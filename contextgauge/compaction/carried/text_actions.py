"""Calls that an agent writes into its text, where its loop has no calls of tools.

By the shapes of the protocols that `normalise/known/text_protocols.py` knows the answers of: ReAct
and structured chat, Hermes and Qwen, OpenHands and SWE-agent, mini-swe-agent, Cline.
"""

import re
from collections.abc import Iterator
from typing import Final

from contextgauge.compaction.messages import Message, ToolCall
from contextgauge.json_codec import dumps, loads
from contextgauge.records import Json

_MOST_CHARACTERS: Final = 100_000
"""Of a text that is looked at: what is longer contains files."""

_JSON: Final = re.compile(
    r"(?m)^(?:\W{0,4}Action\W{1,4}([\w.-]{1,100})\W{0,4}\n\W{0,4}Action Input\W{1,5}"
    r"|\W{0,4}Action\W{1,4}(?:```(?:json)?)?\s{0,9}|```(?:json)?\s{0,9}|<tool_call>\s{0,9})(?=\{)"
)
"""What stands before an object, and the tool's name where that is not in the object."""

_END: Final = re.compile(r"\}\s{0,9}(?:</tool_call>|```|\n\s{0,9}\n|\Z)")

_NAMES: Final = ("action", "name", "tool")
_INPUTS: Final = ("action_input", "arguments", "parameters", "args")

_FUNCTION: Final = re.compile(r"<function=([\w.-]{1,100})>(.*?)</function>", re.DOTALL)
_PARAMETER: Final = re.compile(r"<parameter=([\w.-]{1,100})>(.*?)</parameter>", re.DOTALL)
_SHELL: Final = re.compile(r"```mswea_bash_command\n(.*?)\n```", re.DOTALL)
_TAG: Final = re.compile(r"(?m)^<([a-z]+(?:_[a-z]+)+)>(.*?)</\1>", re.DOTALL)
_CHILD: Final = re.compile(r"<([a-z_]{1,40})>(.*?)</\1>", re.DOTALL)


def calls_of(message: Message) -> Iterator[ToolCall]:
    """Yield the calls of a message: those of its loop, else those that the agent's text has."""
    if message.calls:
        yield from message.calls
    elif message.role == "assistant":
        yield from actions(message.text)


def actions(text: str) -> Iterator[ToolCall]:
    """Yield the calls that a text has, with their arguments as JSON."""
    if len(text) > _MOST_CHARACTERS:
        return
    if "{" in text:
        for label in _JSON.finditer(text):
            if end := _END.search(text, label.end()):
                yield from _of_object(label[1] or "", text[label.end() : end.start() + 1])
    for calls, arguments in ((_FUNCTION, _PARAMETER), (_TAG, _CHILD)):
        for call in calls.finditer(text):
            if given := {key: each.strip() for key, each in arguments.findall(call[2])}:
                yield _call(call[1], given)
    for command in _SHELL.findall(text):
        yield _call("bash", {"command": command})


def _of_object(name: str, text: str) -> Iterator[ToolCall]:
    try:
        value: dict[str, Json] = loads(text)
    except (ValueError, RecursionError):
        return
    if name:
        yield _call(name, value)
        return
    named = next((each for key in _NAMES if isinstance(each := value.get(key), str)), None)
    given = next((each for key in _INPUTS if isinstance(each := value.get(key), dict)), None)
    if named is not None and given is not None:
        yield _call(named, given)


def _call(name: str, arguments: dict[str, Json]) -> ToolCall:
    return ToolCall("", name, dumps(arguments).decode())
