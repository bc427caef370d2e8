"""The memory tool of Anthropic's `memory_20250818` schema, and of seed 004, over local files.

Commands, answers and errors are those that Anthropic documents; where the documentation is silent,
its SDK's file-based tool was followed. Both refuse to `create` a file that exists.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from contextgauge import json_codec, state_folder
from contextgauge.compaction.memory import answers
from contextgauge.compaction.memory.files import MemoryEntry, MemoryFolder, MemoryLimits, OpenMemory
from contextgauge.compaction.memory.paths import MAX_DEPTH, MemoryToolError, names_of, shown
from contextgauge.compaction.messages import FormatName, Text, ToolCall, ToolResult
from contextgauge.compaction.tool_schemas import tool_schema
from contextgauge.records import Json

NAME: Final = "memory"

MAX_LINES: Final = 999_999
"""The longest file that is shown, by the documentation: line numbers have six digits."""

_SNIPPET_LINES: Final = 2
"""Lines before and after a change in the answer to `str_replace`."""

_DESCRIPTION: Final = """Store and retrieve information across context resets.
Commands: view, create, str_replace, insert, delete, rename.
Use /memories as the base path."""

_PARAMETERS: Final[dict[str, Json]] = {
    "type": "object",
    "properties": {
        "command": {
            "type": "string",
            "enum": ["view", "create", "str_replace", "insert", "delete", "rename"],
            "description": "What to do.",
        },
        "path": {
            "type": "string",
            "description": "File or folder, such as /memories/notes.md. Not for rename.",
        },
        "view_range": {
            "type": "array",
            "items": {"type": "integer"},
            "description": "For view of a file: first and last line, from 1; -1 is the last.",
        },
        "file_text": {"type": "string", "description": "For create: the content."},
        "old_str": {
            "type": "string",
            "description": "For str_replace: the text to replace, which occurs exactly once.",
        },
        "new_str": {"type": "string", "description": "For str_replace: the new text."},
        "insert_line": {
            "type": "integer",
            "description": "For insert: the line after which to insert, 0 for the beginning.",
        },
        "insert_text": {"type": "string", "description": "For insert: the text."},
        "old_path": {"type": "string", "description": "For rename: what to move."},
        "new_path": {"type": "string", "description": "For rename: a path that is not taken."},
    },
    "required": ["command"],
}

_DEFAULT_LIMITS: Final = MemoryLimits()


class _Place(NamedTuple):
    """A path as the model wrote it, and its names."""

    path: str
    names: tuple[str, ...]


class MemoryTool:
    """Answers an agent's calls of `memory`, for one project.

    ```python
    memory = MemoryTool("my-project")
    memory.execute({"command": "view", "path": "/memories"})
    ```

    Without a `folder`, files are in the user's state folder, where `CONTEXTGAUGE_STATE_FOLDER` can
    name another. A call takes milliseconds, but may wait for another process: in an event loop, use
    `asyncio.to_thread`. Raises ConfigError for an empty name, and where the system is not POSIX.
    """

    def __init__(
        self, project: str, folder: Path | None = None, limits: MemoryLimits = _DEFAULT_LIMITS
    ) -> None:
        if folder is None:
            setting = os.environ.get("CONTEXTGAUGE_STATE_FOLDER")
            folder = state_folder.state_folder(setting) / "memory"
        self._folder = MemoryFolder(folder, project)
        self._limits = limits
        self._commands: dict[str, Callable[[Mapping[str, object]], str]] = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "delete": self._delete,
            "rename": self._rename,
        }

    @staticmethod
    def schema(format_: FormatName = "anthropic") -> dict[str, Json]:
        """Return the tool's definition: Anthropic's own type, or a JSON schema for others."""
        if format_ == "anthropic":
            return {"type": "memory_20250818", "name": NAME}
        return tool_schema(NAME, _DESCRIPTION, _PARAMETERS, format_)

    def execute(self, arguments: Mapping[str, object]) -> str:
        """Return the answer to a call: errors too are texts that the model can act upon."""
        try:
            return self._executed(arguments)
        except MemoryToolError as error:
            return str(error)

    def result(self, call: ToolCall) -> ToolResult:
        """Return the answer to a call of the engine's messages, marked where it is an error."""
        try:
            text, is_error = self._executed(_arguments(call)), False
        except MemoryToolError as error:
            text, is_error = str(error), True
        return ToolResult(call.id, (Text(text),), name=call.name, is_error=is_error)

    def _executed(self, arguments: Mapping[str, object]) -> str:
        name = _text(arguments, "command")
        command = self._commands.get(name)
        if command is None:
            raise MemoryToolError(
                f"Error: Unknown command: {shown(name)}. Use {', '.join(self._commands)}."
            )
        try:
            return command(arguments)
        except OSError as error:
            # Without the error's own path: where the files are is not the model's to know.
            raise MemoryToolError(
                f"Error: The memory failed: {error.strerror or 'refused'}"
            ) from error

    def _view(self, arguments: Mapping[str, object]) -> str:
        place = _place(arguments, "path")
        missing = f"The path {place.path} does not exist. Please provide a valid path."
        with self._folder.opened() as memory:
            try:
                if memory.is_folder(place.names):
                    return answers.listing(place.path, memory.walk(place.names))
                text = self._read(memory, place)
            except FileNotFoundError as error:
                raise MemoryToolError(missing) from error
        lines = text.split("\n")
        if len(lines) > MAX_LINES:
            raise MemoryToolError(f"File {place.path} exceeds maximum line limit of 999,999 lines.")
        first, last = answers.line_range(arguments.get("view_range"), len(lines))
        body = answers.cut_lines(lines[first - 1 : last], first, self._limits.view_characters)
        return f"Here's the content of {place.path} with line numbers:\n{body}"

    def _create(self, arguments: Mapping[str, object]) -> str:
        place = _place(arguments, "path")
        content = _bytes(_text(arguments, "file_text"), "file_text")
        with self._folder.locked() as memory:
            if memory.exists(place.names):
                raise MemoryToolError(f"Error: File {place.path} already exists")
            self._write(memory, place, content, before=0)
        return f"File created successfully at: {place.path}"

    def _str_replace(self, arguments: Mapping[str, object]) -> str:
        place = _place(arguments, "path")
        old = _text(arguments, "old_str")
        new = _text(arguments, "new_str", default="")
        if not old:
            raise MemoryToolError("Error: `old_str` must not be empty")
        missing = f"Error: The path {place.path} does not exist. Please provide a valid path."
        with self._folder.locked() as memory:
            text = self._file(memory, place, missing)
            count = text.count(old)
            if count == 0:
                raise MemoryToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in "
                    f"{place.path}."
                )
            if count > 1:
                raise MemoryToolError(
                    "No replacement was performed. Multiple occurrences of old_str "
                    f"`{old}` in lines: {answers.lines_of(text, old)}. Please ensure it is unique"
                )
            changed = text.replace(old, new)
            self._write(memory, place, _bytes(changed, "new_str"), before=len(text.encode()))
        line = text.count("\n", 0, text.index(old))
        start = max(0, line - _SNIPPET_LINES)
        end = line + new.count("\n") + _SNIPPET_LINES + 1
        snippet = answers.cut_lines(
            changed.split("\n")[start:end], start + 1, self._limits.view_characters
        )
        return (
            "The memory file has been edited. Here is the snippet showing the change "
            f"(with line numbers):\n{snippet}"
        )

    def _insert(self, arguments: Mapping[str, object]) -> str:
        place = _place(arguments, "path")
        line = arguments.get("insert_line")
        inserted = _text(arguments, "insert_text")
        if not isinstance(line, int) or isinstance(line, bool):
            raise MemoryToolError("Error: `insert_line` is required and must be an integer")
        with self._folder.locked() as memory:
            text = self._file(memory, place, f"Error: The path {place.path} does not exist")
            lines = text.split("\n")
            if not lines[-1]:
                del lines[-1]
            if not 0 <= line <= len(lines):
                raise MemoryToolError(
                    f"Error: Invalid `insert_line` parameter: {line}. It should be within the "
                    f"range of lines of the file: [0, {len(lines)}]"
                )
            lines.insert(line, inserted.removesuffix("\n"))
            content = _bytes("\n".join((*lines, "")), "insert_text")
            self._write(memory, place, content, before=len(text.encode()))
        return f"The file {place.path} has been edited."

    def _delete(self, arguments: Mapping[str, object]) -> str:
        place = _place(arguments, "path")
        if not place.names:
            raise MemoryToolError("Error: Cannot delete the /memories directory itself")
        with self._folder.locked() as memory:
            try:
                memory.delete(place.names)
            except FileNotFoundError as error:
                raise MemoryToolError(f"Error: The path {place.path} does not exist") from error
        return f"Successfully deleted {place.path}"

    def _rename(self, arguments: Mapping[str, object]) -> str:
        old, new = _place(arguments, "old_path"), _place(arguments, "new_path")
        if not old.names:
            raise MemoryToolError("Error: Cannot rename the /memories directory itself")
        with self._folder.locked() as memory:
            missing = f"Error: The path {old.path} does not exist"
            try:
                folder = memory.is_folder(old.names)
                below = memory.walk(old.names) if folder else []
            except FileNotFoundError as error:
                raise MemoryToolError(missing) from error
            if memory.exists(new.names):
                raise MemoryToolError(f"Error: The destination {new.path} already exists")
            if new.names[: len(old.names)] == old.names:
                raise MemoryToolError(f"Error: Cannot move {old.path} into itself")
            depth = max((len(each.names) for each in below), default=0)
            if len(new.names) + depth > MAX_DEPTH:
                raise MemoryToolError(f"Error: At most {MAX_DEPTH} names below /memories")
            others = [each for each in memory.walk() if each.names[: len(old.names)] != old.names]
            self._check_entries(others, new, moved=len(below))
            try:
                memory.rename(old.names, new.names)
            except FileExistsError as error:
                raise _not_a_folder(new) from error
        return f"Successfully renamed {old.path} to {new.path}"

    def _file(self, memory: OpenMemory, place: _Place, missing: str) -> str:
        """Return a file's text; a folder is not a file, by the documentation."""
        try:
            if not memory.is_folder(place.names):
                return self._read(memory, place)
        except FileNotFoundError as error:
            raise MemoryToolError(missing) from error
        raise MemoryToolError(missing)

    def _read(self, memory: OpenMemory, place: _Place) -> str:
        content = memory.read(place.names, self._limits.file_bytes)
        if len(content) > self._limits.file_bytes:
            raise MemoryToolError(
                f"Error: File {place.path} has more than {self._limits.file_bytes:,} bytes"
            )
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise MemoryToolError(f"Error: File {place.path} is not UTF-8 text") from error

    def _write(self, memory: OpenMemory, place: _Place, content: bytes, *, before: int) -> None:
        """Replace a file that had `before` bytes, or make it, within the limits."""
        limits = self._limits
        if len(content) > limits.file_bytes:
            raise MemoryToolError(
                f"Error: {place.path} would have {len(content):,} bytes, the limit is "
                f"{limits.file_bytes:,}: divide it into several files"
            )
        entries = memory.walk()
        total = sum(each.size_bytes for each in entries if not each.is_folder) - before
        if len(content) > before and total + len(content) > limits.total_bytes:
            raise MemoryToolError(
                f"Error: The memory would have more than {limits.total_bytes:,} bytes: delete "
                "what is no longer needed"
            )
        self._check_entries(entries, place)
        try:
            memory.write(place.names, content)
        except FileExistsError as error:
            raise _not_a_folder(place) from error

    def _check_entries(self, entries: list[MemoryEntry], place: _Place, moved: int = 0) -> None:
        """Refuse a path whose missing names would be too many for the limit."""
        taken = {each.names for each in entries}
        ways = {place.names[:length] for length in range(1, len(place.names) + 1)}
        if ways - taken and len(taken | ways) + moved > self._limits.entries:
            raise MemoryToolError(
                f"Error: The memory would have more than {self._limits.entries:,} files and "
                "directories: delete what is no longer needed"
            )


def _not_a_folder(place: _Place) -> MemoryToolError:
    return MemoryToolError(
        f"Error: Cannot create {place.path}: a directory on its way is a file or a link"
    )


def _arguments(call: ToolCall) -> Mapping[str, object]:
    try:
        arguments = json_codec.loads(call.arguments)
    except (ValueError, RecursionError) as error:
        raise MemoryToolError("Error: The arguments are not valid JSON") from error
    if not isinstance(arguments, dict):
        raise MemoryToolError("Error: The arguments must be a JSON object")
    return arguments


def _text(arguments: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise MemoryToolError(f"Error: `{name}` is required and must be a string")
    return value


def _place(arguments: Mapping[str, object], name: str) -> _Place:
    path = _text(arguments, name)
    return _Place(path, names_of(path))


def _bytes(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise MemoryToolError(f"Error: `{name}` is not valid Unicode text") from error
