"""No path, link or race leads out of the memory's root."""

import os
import secrets
import threading
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.compaction.memory import MemoryTool
from contextgauge.compaction.memory.files import OpenMemory, project_folder
from contextgauge.compaction.memory.paths import MAX_DEPTH, MemoryToolError, names_of
from tests.patience import PATIENCE_S

ESCAPES = [
    "", "/", ".", "..", "memories", "notes.md", "/etc/passwd", "/memoriesx", "/Memories/a",
    "/memories/..", "/memories/../x", "/memories/a/../../x", "/memories/./x", "/memories/a/..",
    "//memories/x", " /memories/x", "\\memories\\x", "/memories\\..\\x", "/memories/..\\x",
    "/memories/%2e%2e/x", "/memories/%2E%2E%2fx", "/memories/%252e%252e/x", "/memories/..%2f",
    "/memories/%5c..", "/memories/a%00b", "/memories/a\0b", "/memories/\uff0e\uff0e/x",
    "/memories/\u2024\u2024/x", "/memories/\u2025/x", "/memories/a\uff0fb", "/memories/a\uff3cb",
    "/memories/.\u200b./x", "/memories/\u202egnp.x", "/memories/a\nb", "/memories/\ud800",
    "/memories/.\u2024", "/memories/\uff05\u0032e", "/memories/" + "x" * 256,
    "/memories/" + "ä" * 128, "/memories" + "/x" * (MAX_DEPTH + 1), "file:///memories/x", "~/x",
]  # fmt: skip


@pytest.mark.parametrize("path", ESCAPES)
def test_paths_that_could_mean_another_place_are_refused(path: str, tmp_path: Path) -> None:
    memory = MemoryTool("demo", tmp_path)
    memory.execute({"command": "create", "path": "/memories/a", "file_text": "a"})
    before = sorted(tmp_path.rglob("*"))
    for arguments in (
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "str_replace", "path": path, "old_str": "a", "new_str": "b"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"},
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/z"},
        {"command": "rename", "old_path": "/memories/a", "new_path": path},
    ):
        assert memory.execute(arguments).startswith("Error: Invalid path")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/memories", ()),
        ("/memories/", ()),
        ("/memories//a///b/", ("a", "b")),
        ("/memories/..a/b..", ("..a", "b..")),
        ("/memories/100%.md", ("100%.md",)),
        ("/memories/e\u0301", ("é",)),
        ("/memories/日本/🎉", ("日本", "🎉")),
    ],
)
def test_harmless_paths_are_taken(path: str, names: tuple[str, ...]) -> None:
    assert names_of(path) == names


PARTS = st.one_of(
    st.sampled_from(
        ["..", ".", "/", "\\", "%2e", "%2f", "\0", "memories", "a", "\uff0e", "\u2024"]
    ),
    st.text(max_size=4),
)


@given(st.lists(PARTS, max_size=8))
def test_names_never_step_out(parts: list[str]) -> None:
    try:
        names = names_of("/memories/" + "".join(parts))
    except MemoryToolError:
        return
    for name in names:
        folded = unicodedata.normalize("NFKC", name)
        assert folded not in {"", ".", ".."}
        assert not set("/\\\0") & set(folded)
    assert os.path.normpath(os.path.join("/r", *names)).startswith("/r")  # noqa: PTH118 -- as a system does


@given(st.text(max_size=20))
def test_only_paths_below_memories_are_taken(path: str) -> None:
    if not path.startswith("/memories"):
        with pytest.raises(MemoryToolError, match="must start with /memories"):
            names_of(path)


class Outside:
    """A memory with links that lead to a folder outside of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "outside"
        self.folder.mkdir()
        (self.folder / "secret").write_text("secret")
        self.memory = MemoryTool("demo", folder / "memory")
        self.memory.execute({"command": "view", "path": "/memories"})
        self.root = folder / "memory" / project_folder("demo") / "memories"

    def assert_untouched(self) -> None:
        assert [each.name for each in self.folder.iterdir()] == ["secret"]
        assert (self.folder / "secret").read_text() == "secret"


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path)


def test_links_are_not_followed(outside: Outside) -> None:
    (outside.root / "folder").symlink_to(outside.folder)
    (outside.root / "file").symlink_to(outside.folder / "secret")
    (outside.root / "inner").mkdir()
    (outside.root / "inner/link").symlink_to(outside.folder)
    assert "folder" not in outside.memory.execute({"command": "view", "path": "/memories"})
    for path in ("/memories/folder/secret", "/memories/file", "/memories/inner/link/secret"):
        for arguments in (
            {"command": "view", "path": path},
            {"command": "str_replace", "path": path, "old_str": "secret", "new_str": "x"},
            {"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"},
            {"command": "create", "path": path, "file_text": "x"},
            {"command": "create", "path": f"{path}x", "file_text": "x"},
            {"command": "delete", "path": path},
            {"command": "rename", "old_path": path, "new_path": "/memories/z"},
            {"command": "rename", "old_path": "/memories/inner", "new_path": f"{path}/z"},
        ):
            answer = outside.memory.execute(arguments)
            if answer == "File created successfully at: /memories/filex":
                continue  # next to the link
            assert "Error: " in answer or "does not exist" in answer
            assert "\tsecret" not in answer
    outside.assert_untouched()
    outside.memory.execute({"command": "delete", "path": "/memories/inner"})
    assert not (outside.root / "inner").exists()
    outside.assert_untouched()


def test_a_link_as_the_projects_folder_is_refused(outside: Outside) -> None:
    outside.root.rename(outside.root.with_name("moved"))
    outside.root.symlink_to(outside.folder)
    answer = outside.memory.execute({"command": "create", "path": "/memories/a", "file_text": "x"})
    assert answer.startswith("Error: The memory failed")
    outside.assert_untouched()


def test_a_pipe_does_not_block(outside: Outside) -> None:
    os.mkfifo(outside.root / "pipe")
    answer = outside.memory.execute({"command": "view", "path": "/memories/pipe"})
    assert answer.endswith("does not exist. Please provide a valid path.")


@pytest.mark.parametrize("swapped", ["link", "pipe"])
def test_a_file_swapped_after_it_was_looked_at_is_not_read(
    outside: Outside, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    (outside.root / "link").symlink_to(outside.folder / "secret")
    os.mkfifo(outside.root / "pipe")
    monkeypatch.setattr(OpenMemory, "is_folder", lambda _memory, _names: False)
    answer = outside.memory.execute({"command": "view", "path": f"/memories/{swapped}"})
    assert answer.endswith("does not exist. Please provide a valid path.")
    if swapped == "link":
        outside.memory.execute({"command": "delete", "path": "/memories/link"})
        outside.assert_untouched()


def test_a_file_being_written_is_never_one_that_was_there(
    outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _size: "guessed")
    name = f"{os.getpid()}-guessed"
    (outside.root.parent / "incoming" / name).symlink_to(outside.folder / "secret")
    answer = outside.memory.execute({"command": "create", "path": "/memories/a", "file_text": "x"})
    assert answer.startswith("Error: ")
    outside.assert_untouched()


def swapping(root: Path, target: Path, stop: threading.Event) -> Callable[[], None]:
    """Return a loop that swaps a folder for a link to the target, and back."""

    def loop() -> None:
        while not stop.is_set():
            try:
                (root / "d").rename(root / ".real")
                (root / "d").symlink_to(target)
                (root / "d").unlink()
                (root / ".real").rename(root / "d")
            except OSError:
                (root / "d").mkdir(exist_ok=True)

    return loop


def test_a_folder_swapped_for_a_link_is_never_followed(outside: Outside) -> None:
    (outside.root / "d").mkdir()
    stop = threading.Event()
    swapper = threading.Thread(target=swapping(outside.root, outside.folder, stop))
    swapper.start()
    answers: list[str] = []
    try:
        for number in range(150):
            path = f"/memories/d/f{number}"
            answers += [
                outside.memory.execute({"command": "create", "path": path, "file_text": "x"}),
                outside.memory.execute({"command": "view", "path": "/memories/d/secret"}),
                outside.memory.execute({"command": "view", "path": "/memories/d"}),
                outside.memory.execute({"command": "delete", "path": "/memories/d/secret"}),
            ]
    finally:
        stop.set()
        swapper.join(PATIENCE_S)
    assert any(each.startswith("File created") for each in answers)
    assert not any(
        "\tsecret" in each or "d/secret\n" in f"{each}\n" for each in answers if "Here" in each
    )
    outside.assert_untouched()
