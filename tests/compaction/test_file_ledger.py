"""The file ledger: complete on calls as coding agents make them, silent on what is ambiguous."""

import random
from collections.abc import Callable

import pytest

from contextgauge.compaction.carried.audit import audit
from contextgauge.compaction.carried.compaction_text import compose, read_text
from contextgauge.compaction.carried.digest import carry
from contextgauge.compaction.carried.file_ledger import MAX_FILES, commands_of, ledger, uses_of
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.messages import Carried, FileUse, Message, Text, ToolCall, ToolResult
from contextgauge.json_codec import dumps
from contextgauge.records import Json


def uses(name: str, arguments: Json) -> set[tuple[str, bool]]:
    text = arguments if isinstance(arguments, str) else dumps(arguments).decode()
    return set(uses_of(ToolCall("c", name, text)))


PATCH = (
    "*** Begin Patch\n*** Update File: src/a.py\n*** Move to: src/b.py\n@@\n-x\n+y\n"
    "*** Add File: docs/new file.md\n+hi\n*** Delete File: old.txt\n*** End Patch"
)
PATCHED = {("src/a.py", True), ("src/b.py", True), ("docs/new file.md", True), ("old.txt", True)}
DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/new.py\n"

CALLS: list[tuple[str, Json, set[tuple[str, bool]]]] = [
    ("bash", {"command": "> out.txt"}, {("out.txt", True)}),
    ("Read", {"file_path": "/app/src/a.py", "offset": 3}, {("/app/src/a.py", False)}),
    ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, {("a.py", True)}),
    ("MultiEdit", {"file_path": "a.py", "edits": []}, {("a.py", True)}),
    ("Write", {"file_path": "a.py", "content": "x"}, {("a.py", True)}),
    ("NotebookEdit", {"notebook_path": "n.ipynb", "new_source": "x"}, {("n.ipynb", True)}),
    ("NotebookRead", {"notebook_path": "n.ipynb"}, {("n.ipynb", False)}),
    ("read_file", {"path": "Makefile"}, {("Makefile", False)}),
    ("write_to_file", {"path": "a.py", "content": "x"}, {("a.py", True)}),
    ("replace_in_file", {"path": "a.py", "diff": "x"}, {("a.py", True)}),
    ("read_many_files", {"paths": ["a.py", "b.py"]}, {("a.py", False), ("b.py", False)}),
    ("readFiles", {"files": [{"path": "a.py"}]}, {("a.py", False)}),
    ("str_replace_editor", {"command": "view", "path": "a.py"}, {("a.py", False)}),
    ("str_replace_based_edit_tool", {"command": "insert", "path": "a.py"}, {("a.py", True)}),
    (
        "memory",
        {"command": "rename", "old_path": "/m/a", "new_path": "/m/b"},
        {("/m/a", True), ("/m/b", True)},
    ),
    ("editFile", {"target_file": "a.py", "code_edit": "x"}, {("a.py", True)}),
    ("apply_patch", {"input": PATCH}, PATCHED),
    ("apply_patch", PATCH, PATCHED),
    ("shell", {"command": ["apply_patch", PATCH]}, PATCHED),
    ("patch", {"patch": DIFF}, {("src/a.py", True), ("new.py", True)}),
    ("Bash", {"command": "cat src/a.py | head -3"}, {("src/a.py", False)}),
    ("Bash", {"command": "cd /app && sed -n 1,9p src/a.py"}, {("src/a.py", False)}),
    ("Bash", {"command": "sed -i 's/a/b/' src/a.py"}, {("src/a.py", True)}),
    ("Bash", {"command": "echo hi > out.txt; rm old.txt"}, {("out.txt", True), ("old.txt", True)}),
    ("Bash", {"command": "cat > new.py <<'E'\nprint(1)\nE"}, {("new.py", True)}),
    (
        "Bash",
        {"command": "cp a.py b.py && mv c.py d.py"},
        {("a.py", False), ("b.py", True), ("c.py", True), ("d.py", True)},
    ),
    ("shell", {"command": ["bash", "-lc", "tail -5 a.log"]}, {("a.log", False)}),
    ("shell", {"command": ["cat", "a.log"]}, {("a.log", False)}),
]  # fmt: skip

SILENT: list[tuple[str, Json]] = [
    ("Bash", {"command": "cat $FILE.txt"}),
    ("Bash", {"command": "cat *.py"}),
    ("Bash", {"command": "python run.py --input a.csv"}),
    ("Bash", {"command": "cat 'unclosed"}),
    ("Grep", {"pattern": "x", "path": "src"}),
    ("LS", {"path": "/app"}),
    ("list_directory", {"path": "src/"}),
    ("Glob", {"pattern": "*.py", "path": "src"}),
    ("WebFetch", {"url": "https://a.example/b.html"}),
    ("fetch", {"path": "https://a.example/b.html"}),
    ("Read", "not json"),
    ("Read", [1, 2]),
    ("Read", {"file_path": ""}),
    ("Read", {"file_path": "x" * 5_000}),
    ("Read", {"file_path": 7}),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), CALLS)
def test_calls_of_agents(name: str, arguments: Json, expected: set[tuple[str, bool]]) -> None:
    assert uses(name, arguments) == expected


@pytest.mark.parametrize(("name", "arguments"), SILENT)
def test_what_is_ambiguous_is_left_out(name: str, arguments: Json) -> None:
    assert uses(name, arguments) == set()


@pytest.mark.parametrize(
    ("arguments", "commands"),
    [
        ({"command": "make deploy"}, ["make deploy"]),
        ({"cmd": ["bash", "-lc", "make deploy"]}, ["make deploy"]),
        ({"cmd": ["make", "deploy"], "script": ""}, ["make deploy"]),
        ({"file_path": "deploy.sh"}, []),
        ("make deploy", []),
    ],
)
def test_commands_of_calls(arguments: Json, commands: list[str]) -> None:
    assert list(commands_of(ToolCall("c", "shell", dumps(arguments).decode()))) == commands


def test_one_entry_for_each_path() -> None:
    calls = [
        ToolCall("1", "Read", '{"file_path":"a.py"}'),
        ToolCall("2", "Read", '{"file_path":"b.py"}'),
        ToolCall("3", "Edit", '{"file_path":"a.py","old_string":"","new_string":""}'),
    ]
    messages = [Message("assistant", (call,)) for call in calls]
    assert ledger((), messages) == (
        FileUse("b.py", read=True),
        FileUse("a.py", read=True, changed=True),
    )


def test_of_too_many_files_the_read_ones_go_first() -> None:
    read = tuple(FileUse(f"r{index}.py", read=True) for index in range(MAX_FILES))
    changed = tuple(FileUse(f"c{index}.py", changed=True) for index in range(100))
    result = ledger((*changed, *read), [])
    assert len(result) == MAX_FILES
    assert set(changed) <= set(result)


def _session(seed: int) -> tuple[list[list[Message]], dict[str, bool]]:
    """Five rounds of calls as agents of several vendors make them, and which files they name."""
    begin, end = "*** Begin Patch\n*** Update File: ", "\n@@\n-a\n+b\n*** End Patch"
    rng = random.Random(seed)
    truth: dict[str, bool] = {}
    makers: list[tuple[Callable[[str], tuple[str, Json]], bool]] = [
        (lambda path: ("Read", {"file_path": path}), False),
        (lambda path: ("read_file", {"path": path}), False),
        (lambda path: ("Bash", {"command": f"cat '{path}' | head -20"}), False),
        (lambda path: ("Edit", {"file_path": path, "old_string": "a", "new_string": "b"}), True),
        (lambda path: ("write_file", {"path": path, "content": "x" * rng.randrange(5_000)}), True),
        (lambda path: ("apply_patch", f"{begin}{path}{end}"), True),
    ]  # fmt: skip
    rounds = []
    for number in range(5):
        messages = [Message("user", (Text(f"Please go on with part {number}."),), id=f"u{number}")]
        for index in range(rng.randrange(20, 60)):
            folder = rng.choice(["src", "tests/unit", "/app/web", "docs/a b", "käse"])
            name = f"{rng.choice(['main', 'util', 'x-y'])}_{rng.randrange(80)}"
            path = f"{folder}/{name}.{rng.choice(['py', 'ts', 'md'])}"
            make, changed = rng.choice(makers)
            name, arguments = make(path)
            text = arguments if isinstance(arguments, str) else dumps(arguments).decode()
            truth[path] = truth.get(path, False) or changed
            call = f"{number}-{index}"
            messages.append(Message("assistant", (ToolCall(call, name, text),)))
            messages.append(Message("tool", (ToolResult(call, (Text("read /etc/other.py"),)),)))
        rounds.append(messages)
    return rounds, truth


@pytest.mark.parametrize("seed", range(20))
def test_every_file_is_known_after_five_rounds(seed: int) -> None:
    rounds, truth = _session(seed)
    carried = Carried()
    for messages in rounds:
        carried = carry(carried, messages)
    assert {each.path: each.changed for each in carried.files} == truth
    text = compose("", carried, number=5, budget_tokens=None, counter=ESTIMATE)
    read = read_text(text)
    assert read is not None
    assert {each.path: each.changed for each in read.files} == truth
    assert audit(text, carried) == []


def listed(files: list[FileUse], budget_tokens: int) -> list[FileUse]:
    carried = Carried(files=tuple(files))
    read = read_text(compose("", carried, number=1, budget_tokens=budget_tokens, counter=ESTIMATE))
    assert read is not None
    return list(read.files)


def test_files_that_were_only_read_have_a_third_of_the_list() -> None:
    """They are easily read again; where no file was changed, they are what there is to list."""
    read = [FileUse(f"docs/page_{n:03}.md", read=True, changed=False) for n in range(200)]
    changed = [FileUse(f"src/part_{n:03}.py", read=False, changed=True) for n in range(4)]
    alone, among = listed(read, 2_000), listed([*changed, *read], 2_000)
    assert alone == read[-len(alone) :]
    assert among[:4] == changed
    assert 2.5 < len(alone) / len(among[4:]) < 3.5
