"""The file ledger: which files were read and changed, from the arguments of tool calls.

Code keeps it, not a model: a path enters it by the name of its argument, and whether the file was
changed is judged by the tool's name and the other arguments. Of shell commands only those count
whose meaning is unambiguous.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from contextgauge.compaction.carried.text_actions import calls_of
from contextgauge.compaction.messages import FileUse, Message, ToolCall
from contextgauge.json_codec import loads
from contextgauge.records import Json

MAX_FILES: Final = 2_000
"""Files of a very long session; of more the least recently used read ones go first."""

MAX_PATH_CHARACTERS: Final = 1_024

MAX_COMMAND_CHARACTERS: Final = 100_000
"""A longer command contains a file's content."""

_PATH_KEYS: Final = (
    "file_path", "filepath", "file", "filename", "path", "paths", "files", "file_paths",
    "notebook_path", "absolute_path", "relative_path", "target_file", "old_path", "new_path",
)  # fmt: skip
_PLACE_OF_KEY: Final = {key: place for place, key in enumerate(_PATH_KEYS)}
_PATCH_KEYS: Final = ("input", "patch", "patch_text", "diff")
_COMMAND_KEYS: Final = ("command", "cmd", "script")
_TEXT_KEYS: Final = frozenset((*_PATCH_KEYS, *_COMMAND_KEYS))
_CHANGES: Final = re.compile(
    r"(?i)(?:^|[^a-z])(?:write|edit|create|insert|replace|patch|update|delete|remove|rename|move|"
    r"append|save|modify|multiedit|notebookedit)|(?:write|edit|replace|patch)(?:$|[^a-z])"
)
_CHANGING_COMMANDS: Final = {
    "create", "str_replace", "insert", "delete", "rename", "undo_edit", "write", "append", "edit",
}  # fmt: skip
_CONTENT_KEYS: Final = {
    "content", "contents", "new_string", "old_string", "new_str", "old_str", "file_text", "edits",
    "replacement", "new_source", "insert_text", "diff", "code_edit",
}  # fmt: skip
_DIRECTORY_TOOLS: Final = re.compile(
    r"(?i)(?:^|[^a-z])(?:ls|list|glob|grep|search|find|tree|cd|codebase)|directory|listdir"
)
_PATCH_LINE: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$")
_DIFF_LINE: Final = re.compile(r"^\+\+\+ (?:b/)?([^\t\n]+)|^--- (?:a/)?([^\t\n]+)")


_READ: Final = 1
_CHANGED: Final = 2
"""What was done with a file, as bits: there may be very many files before they are bounded."""


def ledger(files: Sequence[FileUse], messages: Iterable[Message]) -> tuple[FileUse, ...]:
    """Return the ledger with the calls of more messages: each path once, latest use last."""
    uses = {each.path: _READ * each.read | _CHANGED * each.changed for each in files}
    for message in messages:
        for call in calls_of(message):
            for path, changed in uses_of(call):
                uses[path] = uses.pop(path, 0) | (_CHANGED if changed else _READ)
    paths = _bounded(uses)
    return tuple(FileUse(path, bool(uses[path] & _READ), uses[path] >= _CHANGED) for path in paths)


def _bounded(uses: Mapping[str, int]) -> list[str]:
    excess = len(uses) - MAX_FILES
    if excess <= 0:
        return list(uses)
    drop = set(islice((path for path, use in uses.items() if use < _CHANGED), excess))
    return [path for path in uses if path not in drop][-MAX_FILES:]


def uses_of(call: ToolCall) -> Iterator[tuple[str, bool]]:
    """Return the paths that a call names, and whether it changes them."""
    arguments = _arguments(call)
    if isinstance(arguments, str):
        yield from _patched(arguments)
        return
    if not isinstance(arguments, dict):
        return
    command = arguments.get("command")
    changes, of_directories = _meant(call.name)
    changes = (
        changes
        or (isinstance(command, str) and command in _CHANGING_COMMANDS)
        or not _CONTENT_KEYS.isdisjoint(arguments)
    )
    if isinstance(command, str) and command in {"view", "read"}:
        changes = False
    if changes or not of_directories:
        for path in _named(arguments):
            yield path, changes
    if not _TEXT_KEYS.isdisjoint(arguments):
        yield from _of_texts(arguments)


def commands_of(call: ToolCall) -> Iterator[str]:
    """Return the shell commands that a call runs, as text."""
    arguments = _arguments(call)
    if not isinstance(arguments, dict):
        return
    for key in _COMMAND_KEYS:
        if command := _script(arguments.get(key)):
            yield command if isinstance(command, str) else " ".join(command)


def _arguments(call: ToolCall) -> Json:
    try:
        arguments: Json = loads(call.arguments)
    except (ValueError, RecursionError):
        arguments = call.arguments
    return arguments


def _of_texts(arguments: dict[str, Json]) -> Iterator[tuple[str, bool]]:
    """Return the files of patches and commands."""
    for key in _PATCH_KEYS:
        value = arguments.get(key)
        if isinstance(value, str):
            yield from _patched(value)
    for key in _COMMAND_KEYS:
        yield from _commanded(arguments.get(key))


@lru_cache(maxsize=1_024)
def _meant(name: str) -> tuple[bool, bool]:
    """Return whether a tool's name means a change, and whether it means directories.

    Its words count apart: `readFile` as `read File`.
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name[:200])
    return _CHANGES.search(words) is not None, _DIRECTORY_TOOLS.search(words) is not None


def _named(arguments: dict[str, Json]) -> Iterator[str]:
    keys = [key for key in arguments if key in _PLACE_OF_KEY]
    for key in sorted(keys, key=_PLACE_OF_KEY.__getitem__):
        value = arguments[key]
        values = value if isinstance(value, list) else [value]
        for each in values:
            path = (each.get("path") or each.get("file_path")) if isinstance(each, dict) else each
            if isinstance(path, str) and _is_path(path):
                yield path.strip()


_WILD: Final = frozenset("*?<>|")


def _is_path(text: str) -> bool:
    stripped = text.strip()
    return (
        0 < len(stripped) <= MAX_PATH_CHARACTERS
        and "\n" not in stripped
        and "://" not in stripped
        and not stripped.endswith(("/", "\\"))
        and stripped not in {".", ".."}
        and _WILD.isdisjoint(stripped)
    )


def _patched(text: str) -> Iterator[tuple[str, bool]]:
    """Return the files of a patch: that of `apply_patch`, or a unified diff."""
    apply_patch = "*** Begin Patch" in text
    if not apply_patch and "\n+++ " not in f"\n{text}":
        return
    pattern = _PATCH_LINE if apply_patch else _DIFF_LINE
    for line in text.splitlines():
        if match := pattern.match(line):
            path = (match[1] or match[2] or "").strip()
            if path != "/dev/null" and _is_path(path):
                yield path, True


_READERS: Final = {"cat", "head", "tail", "less", "more", "nl", "bat"}
_WRITERS: Final = {"touch", "rm", "tee"}
_SEPARATORS: Final = {"&&", "||", ";", "|", "&"}
_REDIRECTS: Final = {">", ">>", "1>", "1>>"}
_QUOTES: Final = str.maketrans("", "", "'\"\\")
_OF_FILES: Final = re.compile(
    rf"\b(?:{'|'.join(sorted({*_READERS, *_WRITERS, 'sed', 'mv', 'cp'}))})\b|>(?!&)"
)
"""In any command that names a file, once its quotes are left out: most need no taking apart."""


def _script(command: Json) -> str | list[str]:
    """Return a command for a shell, or the words of one; empty where it contains a file."""
    if isinstance(command, list):
        words = [each for each in command if isinstance(each, str)]
        if not words[:1] or not words[0].endswith(("sh", "apply_patch")):
            return words
        command = words[-1]
    if isinstance(command, str) and len(command) <= MAX_COMMAND_CHARACTERS:
        return command
    return ""


def _commanded(command: Json) -> Iterator[tuple[str, bool]]:
    """Return the files of a shell command, where nothing has to be expanded to know them."""
    text = _script(command)
    if not isinstance(text, str):
        yield from _simple(text)
        return
    if "*** Begin Patch" in text:
        yield from _patched(text)
        return
    script = text.split("<<", 1)[0] if "<<" in text else text
    if any(mark in script for mark in ("$", "`")) or not _OF_FILES.search(
        script.translate(_QUOTES)
    ):
        return
    try:
        lexer = shlex.shlex(script.replace("\n", " ; "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return
    part: list[str] = []
    for word in [*words, ";"]:
        if word in _SEPARATORS:
            yield from _simple(part)
            part = []
        else:
            part.append(word)


def _simple(words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Return the files of one simple command."""
    words = list(words)
    for index, word in enumerate(words[:-1]):
        if word in _REDIRECTS and _is_file(words[index + 1]):
            yield words[index + 1], True
            del words[index : index + 2]
            break
    if not words:
        return
    name, arguments = words[0], [each for each in words[1:] if not each.startswith("-")]
    paths = [each for each in arguments if _is_file(each)]
    if name in _READERS:
        yield from ((path, False) for path in paths)
    elif name in _WRITERS:
        yield from ((path, True) for path in paths)
    elif name == "sed":
        in_place = any(each.startswith("-i") or each == "--in-place" for each in words[1:])
        yield from ((path, in_place) for path in paths[-1:] if len(arguments) > 1)
    elif name == "mv" and len(paths) == 2:  # noqa: PLR2004 -- from and to
        yield from ((path, True) for path in paths)
    elif name == "cp" and len(paths) == 2:  # noqa: PLR2004 -- from and to
        yield paths[0], False
        yield paths[1], True


def _is_file(word: str) -> bool:
    """Return whether a word of a command is a file's path for certain: it has an extension."""
    name = word.rsplit("/", 1)[-1]
    return (
        _is_path(word)
        and "." in name.strip(".")
        and not name.replace(".", "").isdigit()
        and not any(letter in word for letter in "{}[]=,;:'\"&")
    )
