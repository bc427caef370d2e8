"""The memory tool: Anthropic's documented answers, over real files."""

import multiprocessing
import os
from pathlib import Path

import pytest

from contextgauge.compaction.memory import MemoryLimits, MemoryTool
from contextgauge.compaction.memory.files import project_folder
from contextgauge.compaction.messages import ToolCall
from contextgauge.errors import ConfigError
from tests.patience import PATIENCE_S


@pytest.fixture
def memory(tmp_path: Path) -> MemoryTool:
    return MemoryTool("demo", tmp_path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the files of the tool under test are."""
    return tmp_path / project_folder("demo") / "memories"


def create(memory: MemoryTool, path: str, text: str = "") -> str:
    return memory.execute({"command": "create", "path": path, "file_text": text})


def view(memory: MemoryTool, path: str = "/memories", *view_range: int) -> str:
    arguments = {"view_range": list(view_range)} if view_range else {}
    return memory.execute({"command": "view", "path": path, **arguments})


def insert(memory: MemoryTool, path: str, line: object, text: str) -> str:
    return memory.execute(
        {"command": "insert", "path": path, "insert_line": line, "insert_text": text}
    )


def replace(memory: MemoryTool, path: str, old: str, new: str) -> str:
    return memory.execute({"command": "str_replace", "path": path, "old_str": old, "new_str": new})


def delete(memory: MemoryTool, path: str) -> str:
    return memory.execute({"command": "delete", "path": path})


def rename(memory: MemoryTool, old: str, new: str) -> str:
    return memory.execute({"command": "rename", "old_path": old, "new_path": new})


def numbered(body: str) -> str:
    return f"Here's the content of /memories/a.md with line numbers:\n{body}"


HEADER = (
    "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and "
    "node_modules:\n"
)


def test_empty_memory_is_listed(memory: MemoryTool) -> None:
    assert view(memory) == HEADER.format("/memories") + "0B\t/memories"


def test_listing_has_two_levels_sizes_and_no_hidden_items(memory: MemoryTool) -> None:
    create(memory, "/memories/notes.txt", "x" * 1_536)
    create(memory, "/memories/a/b/deep.md", "y" * 10)
    create(memory, "/memories/.hidden/x", "z")
    create(memory, "/memories/node_modules/x", "z")
    assert view(memory, "/memories/") == HEADER.format("/memories") + (
        "1.5K\t/memories\n10B\t/memories/a/\n10B\t/memories/a/b/\n1.5K\t/memories/notes.txt"
    )
    assert "10B\t/memories/a/b/deep.md" in view(memory, "/memories/a")


def test_file_is_shown_with_line_numbers_of_six_columns(memory: MemoryTool) -> None:
    create(memory, "/memories/a.md", "one\ntwo\nthree")
    assert view(memory, "/memories/a.md") == numbered("     1\tone\n     2\ttwo\n     3\tthree")
    assert view(memory, "/memories/a.md", 2, 3) == numbered("     2\ttwo\n     3\tthree")
    assert view(memory, "/memories/a.md", 3, -1) == numbered("     3\tthree")
    assert view(memory, "/memories/a.md", 0, 99).endswith("     3\tthree")


def test_invalid_view_range_is_explained(memory: MemoryTool) -> None:
    create(memory, "/memories/a.md", "one\ntwo")
    for wrong in ([3, 4], [2, 1], [1], "12", [1, None], [True, 2]):
        answer = memory.execute({"command": "view", "path": "/memories/a.md", "view_range": wrong})
        assert answer.startswith("Error: Invalid `view_range` parameter: ")
        assert answer.endswith("of the file: [1, 2]")


def test_long_file_is_shown_in_parts(tmp_path: Path) -> None:
    memory = MemoryTool("demo", tmp_path, MemoryLimits(view_characters=40))
    create(memory, "/memories/a.md", "\n".join(["line"] * 10))
    assert view(memory, "/memories/a.md").splitlines()[-1] == (
        "[7 more lines: view them with view_range [4, -1]]"
    )
    create(memory, "/memories/b.md", "x" * 1_000)
    assert view(memory, "/memories/b.md").endswith(" [line cut]")


def test_too_many_lines_are_refused(memory: MemoryTool, root: Path, tmp_path: Path) -> None:
    create(memory, "/memories/a.md")
    (root / "a.md").write_text("\n" * 1_000_000)
    large = MemoryTool("demo", tmp_path, MemoryLimits(file_bytes=2_000_000))
    answer = view(large, "/memories/a.md")
    assert answer == "File /memories/a.md exceeds maximum line limit of 999,999 lines."


def test_missing_paths_have_the_documented_answers(memory: MemoryTool) -> None:
    missing = "The path /memories/x does not exist"
    full = f"{missing}. Please provide a valid path."
    assert view(memory, "/memories/x") == full
    assert replace(memory, "/memories/x", "a", "b") == f"Error: {full}"
    assert insert(memory, "/memories/x", 0, "a") == f"Error: {missing}"
    assert delete(memory, "/memories/x") == f"Error: {missing}"
    assert rename(memory, "/memories/x", "/memories/y") == f"Error: {missing}"


def test_create_writes_and_never_overwrites(memory: MemoryTool, root: Path) -> None:
    path = "/memories/deep/er/a.md"
    assert create(memory, path, "first\r\nä") == f"File created successfully at: {path}"
    assert create(memory, path, "second") == f"Error: File {path} already exists"
    assert create(memory, "/memories/deep", "x") == "Error: File /memories/deep already exists"
    assert create(memory, "/memories", "x") == "Error: File /memories already exists"
    assert (root / "deep/er/a.md").read_bytes() == "first\r\nä".encode()
    assert create(memory, f"{path}/below") == (
        f"Error: Cannot create {path}/below: a directory on its way is a file or a link"
    )


def test_str_replace_answers_with_a_snippet(memory: MemoryTool) -> None:
    create(memory, "/memories/a.md", "\n".join("abcdefg"))
    assert replace(memory, "/memories/a.md", "d", "D1\nD2") == (
        "The memory file has been edited. Here is the snippet showing the change (with line "
        "numbers):\n     2\tb\n     3\tc\n     4\tD1\n     5\tD2\n     6\te\n     7\tf"
    )
    assert "     4\tD1\n     5\tD2" in view(memory, "/memories/a.md")
    memory.execute({"command": "str_replace", "path": "/memories/a.md", "old_str": "D1\n"})
    assert view(memory, "/memories/a.md").endswith("     4\tD2\n     5\te\n     6\tf\n     7\tg")


def test_str_replace_needs_one_occurrence(memory: MemoryTool) -> None:
    create(memory, "/memories/a.md", "x y\nz\nx x")
    path = "/memories/a.md"
    assert replace(memory, path, "q", "r") == (
        "No replacement was performed, old_str `q` did not appear verbatim in /memories/a.md."
    )
    assert replace(memory, path, "x", "r") == (
        "No replacement was performed. Multiple occurrences of old_str `x` in lines: 1, 3, 3. "
        "Please ensure it is unique"
    )
    assert replace(memory, path, "", "r") == "Error: `old_str` must not be empty"
    create(memory, "/memories/b.md", "x\n" * 100)
    assert "19, 20, ...." in replace(memory, "/memories/b.md", "x", "y")


def test_directory_is_no_file_to_edit(memory: MemoryTool) -> None:
    create(memory, "/memories/d/a.md")
    missing = "Error: The path /memories/d does not exist"
    assert replace(memory, "/memories/d", "a", "b").startswith(missing)
    assert insert(memory, "/memories/d", 0, "a") == missing


def test_insert_puts_text_after_a_line(memory: MemoryTool, root: Path) -> None:
    create(memory, "/memories/a.md", "one\ntwo")
    assert insert(memory, "/memories/a.md", 0, "zero\n") == (
        "The file /memories/a.md has been edited."
    )
    insert(memory, "/memories/a.md", 3, "three")
    assert (root / "a.md").read_text() == "zero\none\ntwo\nthree\n"
    insert(memory, "/memories/a.md", 1, "half\u2028line")
    assert (root / "a.md").read_text() == "zero\nhalf\u2028line\none\ntwo\nthree\n"
    for wrong in (-1, 6):
        assert insert(memory, "/memories/a.md", wrong, "x") == (
            f"Error: Invalid `insert_line` parameter: {wrong}. It should be within the range of "
            "lines of the file: [0, 5]"
        )
    for wrong_type in ("1", None, True, 1.0):
        answer = insert(memory, "/memories/a.md", wrong_type, "x")
        assert answer == "Error: `insert_line` is required and must be an integer"


def test_delete_takes_files_and_whole_directories(memory: MemoryTool, root: Path) -> None:
    create(memory, "/memories/d/e/a.md")
    create(memory, "/memories/b.md")
    assert delete(memory, "/memories/d") == "Successfully deleted /memories/d"
    assert delete(memory, "/memories/b.md") == "Successfully deleted /memories/b.md"
    assert list(root.iterdir()) == []
    assert delete(memory, "/memories/") == "Error: Cannot delete the /memories directory itself"
    assert root.is_dir()


def test_rename_moves_and_never_overwrites(memory: MemoryTool, root: Path) -> None:
    create(memory, "/memories/d/a.md", "a")
    create(memory, "/memories/b.md", "b")
    assert rename(memory, "/memories/d", "/memories/new/place") == (
        "Successfully renamed /memories/d to /memories/new/place"
    )
    assert (root / "new/place/a.md").read_text() == "a"
    assert rename(memory, "/memories/b.md", "/memories/new/place/a.md") == (
        "Error: The destination /memories/new/place/a.md already exists"
    )
    assert (root / "new/place/a.md").read_text() == "a"
    assert rename(memory, "/memories/new", "/memories/new/b/c") == (
        "Error: Cannot move /memories/new into itself"
    )
    assert not (root / "new/b").exists()
    assert rename(memory, "/memories", "/memories/x").startswith("Error: Cannot rename")
    assert rename(memory, "/memories/b.md", "/memories/b.md").endswith("already exists")
    assert "Cannot create" in rename(memory, "/memories/new", "/memories/b.md/x")


def test_missing_and_wrong_parameters_are_named(memory: MemoryTool) -> None:
    commands = "view, create, str_replace, insert, delete, rename"
    assert memory.execute({"command": "burn"}) == f"Error: Unknown command: burn. Use {commands}."
    for arguments, name in (
        ({}, "command"),
        ({"command": 3}, "command"),
        ({"command": "view"}, "path"),
        ({"command": "create", "path": "/memories/a"}, "file_text"),
        ({"command": "str_replace", "path": "/memories/a"}, "old_str"),
        ({"command": "insert", "path": "/memories/a", "insert_line": 0}, "insert_text"),
        ({"command": "rename", "path": "/memories/a", "new_path": "/memories/b"}, "old_path"),
    ):
        assert memory.execute(arguments) == f"Error: `{name}` is required and must be a string"


def test_text_that_is_no_unicode_is_refused(memory: MemoryTool, root: Path) -> None:
    assert create(memory, "/memories/a.md", "\ud800") == (
        "Error: `file_text` is not valid Unicode text"
    )
    create(memory, "/memories/a.md")
    (root / "a.md").write_bytes(b"\xff")
    assert view(memory, "/memories/a.md") == "Error: File /memories/a.md is not UTF-8 text"


def test_size_of_a_file_is_limited(tmp_path: Path) -> None:
    memory = MemoryTool("demo", tmp_path, MemoryLimits(file_bytes=10))
    assert "would have 12 bytes, the limit is 10" in create(memory, "/memories/a", "ä" * 6)
    assert create(memory, "/memories/a", "x" * 10).startswith("File created")
    assert "limit is 10" in replace(memory, "/memories/a", "x" * 10, "y" * 11)
    assert "limit is 10" in insert(memory, "/memories/a", 0, "z")
    assert view(memory, "/memories/a").endswith("\txxxxxxxxxx")


def test_size_of_all_files_is_limited(tmp_path: Path) -> None:
    memory = MemoryTool("demo", tmp_path, MemoryLimits(total_bytes=10))
    create(memory, "/memories/a", "x" * 6)
    assert "more than 10 bytes: delete" in create(memory, "/memories/b", "y" * 5)
    create(memory, "/memories/b", "y" * 4)
    assert "more than 10 bytes" in insert(memory, "/memories/b", 0, "z")
    assert "edited" in replace(memory, "/memories/b", "yyyy", "zzzz")
    delete(memory, "/memories/a")
    assert "edited" in insert(memory, "/memories/b", 0, "z")


def test_number_of_files_and_directories_is_limited(tmp_path: Path) -> None:
    memory = MemoryTool("demo", tmp_path, MemoryLimits(entries=3))
    create(memory, "/memories/d/a")
    assert "more than 3 files and directories" in create(memory, "/memories/e/b")
    create(memory, "/memories/b")
    assert "more than 3 files" in rename(memory, "/memories/b", "/memories/x/b")
    assert rename(memory, "/memories/d", "/memories/e").startswith("Successfully")
    assert "edited" in insert(memory, "/memories/b", 0, "full, but this file is there")


def test_projects_do_not_share_files(tmp_path: Path) -> None:
    names = ["a/b", "a_b", "a b", "..", ".", "ü", "u", "x" * 300, "x" * 301, "A"]
    folders = [project_folder(name) for name in names]
    assert len(set(folders)) == len(names)
    assert all(
        len(name) < 100 and name.replace("-", "").replace("_", "").isalnum() for name in folders
    )
    for name in names:
        assert create(MemoryTool(name, tmp_path), "/memories/own", name).startswith("File created")
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(folders)
    with pytest.raises(ConfigError):
        MemoryTool("  ", tmp_path)


def test_default_folder_is_the_users_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTGAUGE_STATE_FOLDER", str(tmp_path))
    create(MemoryTool("demo"), "/memories/a", "here")
    file = tmp_path / "memory" / project_folder("demo") / "memories/a"
    assert file.read_text() == "here"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_answers_never_tell_where_the_files_are(memory: MemoryTool, root: Path) -> None:
    create(memory, "/memories/a")
    root.joinpath("d").mkdir()
    root.joinpath("d").chmod(0o000 if os.getuid() else 0o700)
    answers = [view(memory, "/memories/d/x"), view(memory, "/memories/a"), view(memory)]
    root.joinpath("d").chmod(0o700)
    assert not any(str(root.parent) in each for each in answers)


def test_a_failed_write_leaves_the_file_and_nothing_else(
    memory: MemoryTool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(memory, "/memories/a", "whole")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device", str(root))

    monkeypatch.setattr(os, "fsync", full)
    answer = replace(memory, "/memories/a", "whole", "half")
    assert answer == "Error: The memory failed: No space left on device"
    assert (root / "a").read_text() == "whole"
    assert list((root.parent / "incoming").iterdir()) == []


def test_result_of_a_call_is_marked_where_it_is_an_error(memory: MemoryTool) -> None:
    fine = memory.result(ToolCall("c1", "memory", '{"command":"view","path":"/memories"}'))
    assert (fine.call_id, fine.name, fine.is_error) == ("c1", "memory", False)
    assert fine.text.startswith("Here're the files")
    for arguments in ('{"command":"view","path":"/etc"}', "[]", "{", "[" * 100_000):
        wrong = memory.result(ToolCall("c1", "memory", arguments))
        assert wrong.is_error
        assert wrong.text.startswith("Error: ")


def test_schemas_of_all_providers() -> None:
    assert MemoryTool.schema() == {"type": "memory_20250818", "name": "memory"}
    chat = MemoryTool.schema("openai-chat")
    assert chat["type"] == "function"
    function = chat["function"]
    assert isinstance(function, dict)
    assert MemoryTool.schema("gemini") == function
    assert MemoryTool.schema("openai-responses") == {"type": "function", **function}
    parameters = function["parameters"]
    assert isinstance(parameters, dict)
    properties = parameters["properties"]
    assert isinstance(properties, dict)
    assert set(properties) == {
        *("command", "path", "view_range", "file_text", "old_str", "new_str"),
        *("insert_line", "insert_text", "old_path", "new_path"),
    }


def _insert_many(folder: Path, letter: str) -> None:
    memory = MemoryTool("demo", folder)
    for number in range(25):
        insert(memory, "/memories/a", 0, f"{letter}{number}")


def test_two_processes_lose_no_change(tmp_path: Path) -> None:
    memory = MemoryTool("demo", tmp_path)
    create(memory, "/memories/a")
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_insert_many, args=(tmp_path, each)) for each in "xy"]
    for each in writers:
        each.start()
    for each in writers:
        each.join(PATIENCE_S)
    lines = {line.split("\t")[1] for line in view(memory, "/memories/a").splitlines()[1:]}
    assert lines - {""} == {f"{letter}{number}" for letter in "xy" for number in range(25)}


def test_a_folder_is_not_moved_deeper_than_paths_may_be(memory: MemoryTool) -> None:
    create(memory, "/memories/a/b/c/d")
    deep = "/memories" + "/x" * 13
    answer = rename(memory, "/memories/a", f"{deep}/a")
    assert answer == "Error: At most 16 names below /memories"
    assert rename(memory, "/memories/a/b", f"{deep}/b").startswith("Successfully")


def test_moved_content_counts_towards_the_entries(tmp_path: Path) -> None:
    memory = MemoryTool("demo", tmp_path, MemoryLimits(entries=3))
    create(memory, "/memories/d/a")
    create(memory, "/memories/b")
    assert "more than 3 files" in rename(memory, "/memories/d", "/memories/x/d")


def test_a_memory_above_its_limits_can_be_edited_and_made_smaller(tmp_path: Path) -> None:
    memory = MemoryTool("demo", tmp_path)
    for name in "abc":
        create(memory, f"/memories/{name}", "text " * 10 + "end")
    limited = MemoryTool("demo", tmp_path, MemoryLimits(total_bytes=10, entries=1))
    assert "edited" in replace(limited, "/memories/a", "end", "")
    assert "more than 10 bytes" in insert(limited, "/memories/a", 0, "more")


def test_a_file_above_its_limit_is_not_read(memory: MemoryTool, root: Path) -> None:
    view(memory)
    (root / "a").write_text("x" * 102_401)
    answer = view(memory, "/memories/a")
    assert answer == "Error: File /memories/a has more than 102,400 bytes"
