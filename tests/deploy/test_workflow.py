"""What the workflow runs of others is named by its content, not by a name that may move."""

import re
from pathlib import Path

WORKFLOWS = sorted((Path(__file__).parents[2] / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$")


def test_actions_are_named_by_their_commit_with_the_version_next_to_it() -> None:
    used = [
        line.strip()
        for path in WORKFLOWS
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    assert used
    assert [line for line in used if not PINNED.search(line)] == []
