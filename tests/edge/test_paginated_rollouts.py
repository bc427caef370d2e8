"""Codex 0.145 and later: numbered lines, and rollouts that go on from a part of another one.

A rollout with a `history_base` holds its own lines only: those of the base stand in the file that
it names. A session that was reverted goes on in another file, which has its id and one of its own.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from streams.edge.files.names import group_of
from tests.core.given import Body, moment
from tests.edge.follower_kit import compressed
from tests.edge.test_local_transcripts import OLD_S, Reading, write
from tests.edge.test_origins import derived, head, history, own, thread

FIRST = f"rollout-2026-11-01T12-00-00-{thread(1)}.jsonl"
FORK = f"rollout-2026-11-01T13-00-00-{thread(2)}.jsonl"
REVERTED = f"rollout-2026-11-01T14-00-00-{thread(1)}_{thread(3)}.jsonl"


def save(folder: Path, name: str, lines: Sequence[Body], at: float, first: int | None) -> Path:
    """Write a rollout whose lines are numbered from `first` on; None: they have no numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [{} if first is None else {"ordinal": first + n} for n in range(len(lines))]
    stamped = [
        json.dumps({**line, **number, "timestamp": moment(at + n)})
        for n, (line, number) in enumerate(zip(lines, numbers, strict=True))
    ]
    path = folder / name
    path.write_text("\n".join(stamped) + "\n")
    return path


def test_numbered_lines_count_as_those_without_numbers(tmp_path: Path) -> None:
    lines, _ = history(1, 12, 0)
    whole = [head(1, history_mode="paginated"), *lines]
    plain = own(derived(save(tmp_path / "legacy", FIRST, whole, 0, None)))
    assert plain
    assert own(derived(save(tmp_path / "paginated", FIRST, whole, 0, 0))) == plain


def test_a_rollout_that_goes_on_from_another_counts_its_own_lines_only(tmp_path: Path) -> None:
    lines, total = history(1, 9, 0)
    day = tmp_path / "sessions" / "2026" / "11" / "01"
    first = save(day, FIRST, [head(1, history_mode="paginated"), *lines], 0, 0)
    base = {
        "thread_id": thread(1),
        "end_ordinal_exclusive": 5,
        "end_byte_offset": sum(map(len, first.read_bytes().splitlines(keepends=True)[:5])),
    }
    paginated = {"history_mode": "paginated", "history_base": base}
    forked = {"forked_from_id": thread(1), "forked_from_ordinal_exclusive": 5}
    mine, _ = history(2, 3, total)
    theirs, _ = history(3, 3, total)
    fork = save(day, FORK, [head(2, **forked, **paginated), *mine], 3_600, 5)
    reverted = save(day, REVERTED, [head(1, **paginated), *theirs], 7_200, 5)
    alone = [derived(path) for path in (first, fork, reverted)]
    sessions = [{record.data.session_id for record in records} for records in alone]
    assert sessions == [{thread(1)}, {thread(2)}, {thread(1)}]
    records = derived(tmp_path)
    sizes = [each for each in own(records) if each[0] != "warning"]
    assert sizes == [each for part in alone for each in own(part) if each[0] != "warning"]
    assert len({record.id for record in records}) == len(records)
    # The same where the base was put away, and where it is gone.
    packed = first.with_name(FIRST + ".zst")
    packed.write_bytes(compressed(first.read_bytes()))
    first.unlink()
    assert [record.id for record in derived(tmp_path)] == [record.id for record in records]
    packed.unlink()
    assert own(derived(fork)) == own(alone[1])


def test_a_view_reads_the_rollouts_of_a_session_in_their_order(tmp_path: Path) -> None:
    day = tmp_path / "sessions" / "2026" / "11" / "01"
    write(day / FIRST, "{}", at_s=OLD_S + 100)
    write(day / FORK, "{}", at_s=OLD_S + 50)
    write(day / REVERTED, "{}", at_s=OLD_S)
    assert [Path(name).name for name in Reading(tmp_path).names()] == [FIRST, REVERTED, FORK]
    assert group_of(str(day / FIRST)) == group_of(str(day / REVERTED))
