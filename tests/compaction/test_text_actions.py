"""Calls in the text of an agent whose loop has none of its own, and the files that they name."""

import pytest

from contextgauge.compaction.carried.digest import carry
from contextgauge.compaction.carried.file_ledger import ledger
from contextgauge.compaction.carried.text_actions import actions
from contextgauge.compaction.messages import Carried, FileUse
from tests.compaction.conversations import call, said

READ = FileUse("src/a.py", read=True, changed=False)
CHANGED = FileUse("src/a.py", read=False, changed=True)

WRITTEN = [
    ('I look.\nAction: read_file\nAction Input: {"path": "src/a.py"}', READ),
    ('**Action**: write\n**Action Input**: {"path": "src/a.py", "content": "x = {}"}', CHANGED),
    ('Action:\n```json\n{"action": "edit", "action_input": {"path": "src/a.py"}}\n```', CHANGED),
    ('```\n{"action": "cat", "action_input": {"file": "src/a.py"}}\n```', READ),
    ('<tool_call>\n{"name": "view", "arguments": {"path": "src/a.py"}}\n</tool_call>', READ),
    (
        "<function=edit>\n<parameter=path>src/a.py</parameter>\n</function>",
        CHANGED,
    ),
    ("THOUGHT: read.\n\n```mswea_bash_command\ncat src/a.py\n```", READ),
    ("<read_file>\n<path>src/a.py</path>\n</read_file>", READ),
    ("<write_to_file>\n<path>src/a.py</path>\n<content>\nx\n</content>\n</write_to_file>", CHANGED),
]


@pytest.mark.parametrize(("text", "use"), WRITTEN)
def test_files_of_actions_in_a_text_are_listed(text: str, use: FileUse) -> None:
    assert ledger((), [said("assistant", text)]) == (use,)


def test_each_call_of_a_text_counts() -> None:
    one = '<tool_call>{"name": "read", "arguments": {"path": "a.py"}}</tool_call>'
    two = '<tool_call>{"name": "read", "arguments": {"path": "b.py"}}</tool_call>'
    assert [each.path for each in ledger((), [said("assistant", f"{one}\n{two}")])] == [
        "a.py",
        "b.py",
    ]


@pytest.mark.parametrize(
    "text",
    [
        'Set it like this: {"path": "src/a.py"}',
        '```json\n{"path": "src/a.py"}\n```',
        '```json\n{"name": "app", "path": "src/a.py"}\n```',
        'Action: read\nAction Input: {"path": "src/a.py"',
        'Action: read\nAction Input: {"path": src/a.py}',
        "Action: read\nAction Input: {}",
        "<read_file>src/a.py</read_file>",
        "<path>src/a.py</path>",
        '<tool_call>{"name": "read", "arguments": {"path": "a.py"}}</tool_call>' + " " * 100_000,
    ],
)
def test_other_text_names_no_file(text: str) -> None:
    assert ledger((), [said("assistant", text)]) == ()


def test_what_the_user_or_a_loop_with_calls_writes_is_no_action() -> None:
    text = 'Action: read\nAction Input: {"path": "src/a.py"}'
    assert ledger((), [said("user", text)]) == ()
    message = call("c", "read", arguments='{"path": "b.py"}')
    message = message.with_blocks((*said("assistant", text).blocks, *message.blocks))
    assert [each.path for each in ledger((), [message])] == ["b.py"]


def test_an_object_that_is_no_call_is_none() -> None:
    assert list(actions('```json\n{"a": 1}\n```\n<tool_call>{1}</tool_call>')) == []


def test_a_list_of_todos_in_a_text_is_carried() -> None:
    items = '[{"content": "Fix it", "status": "pending"}]'
    text = f'Action: plan\nAction Input: {{"todos": {items}}}'
    entries = carry(Carried(), [said("assistant", text)]).entries
    assert ("todos", "- pending: Fix it") in [(each.speaker, each.text) for each in entries]
