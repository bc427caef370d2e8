"""R30, from files: whatever a runtime copies into whatever files counts as if it were read once."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.delivery.outgoing import headers_of_line
from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    ContextReading,
    ContextWarning,
    Record,
    SessionInfo,
)
from streams.edge.files import reading
from streams.edge.files.origins import copied_history
from streams.edge.files.positions import Position
from streams.edge.files.tail import FileTail
from streams.flow.derive.deriver import Deriver
from streams.flow.replay.replay import derive_line
from tests.core.given import RULES, Body, moment, rollout, token_count

LIMIT = 1 << 20


def thread(number: int) -> str:
    return f"01a00000-0000-7000-8000-{number:012x}"


def head(number: int, **more: object) -> Body:
    return rollout("session_meta", {"id": thread(number), "cwd": "/repo", **more})


def write(folder: Path, number: int, lines: Sequence[Body], at: float) -> None:
    """Write a rollout whose lines are a second apart: neither pace nor turns show a copy."""
    folder.mkdir(parents=True, exist_ok=True)
    stamped = [json.dumps({**line, "timestamp": moment(at + n)}) for n, line in enumerate(lines)]
    path = folder / f"rollout-2026-11-01T12-00-00-{thread(number)}.jsonl"
    path.write_text("\n".join(stamped) + "\n")


def derived(path: Path) -> list[Record]:
    deriver = Deriver(RULES)
    blocks = reading.read(reading.expand([str(path)]))
    results = [derive_line(deriver, line, LIMIT, None) for block in blocks for line in block]
    assert not [result for result in results if result.dead]
    return [record for result in results for record in result.records]


def own(records: Sequence[Record]) -> list[tuple[object, ...]]:
    """What is counted or sent: sizes, compactions, savings, warnings that are nobody else's."""
    facts: list[tuple[object, ...]] = []
    for record in records:
        match record.data:
            case ContextReading(inherited=None) as data:
                facts.append(("size", data.used_tokens))
            case CompactBoundary(inherited=None):
                facts.append(("compaction",))
            case CompactionComplete(inherited=None) as data:
                facts.append(("saved", data.tokens_saved))
            case ContextWarning() as data:
                facts.append(("warning", data.thresholds_crossed))
    return facts


def history(seed: int, length: int, start: int) -> tuple[list[Body], int]:
    """Return a thread's lines, and the sum that it ends with."""
    chance = random.Random(seed)  # noqa: S311 -- nothing secret
    used, total, lines = 5_000, start, list[Body]()
    for _ in range(length):
        if used > 200_000:
            lines.append(rollout("compacted", {"message": f"summary {chance.random()}"}))
            used = 20_000
        used += chance.randrange(1_000, 60_000)
        total += used
        lines.append(token_count({"input_tokens": used}, total, window=250_000))
    return lines, total


@pytest.mark.extended
@given(
    st.integers(0, 2**16),
    st.integers(0, 12),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5), st.booleans()), max_size=4),
    st.permutations(range(5)),
)
def test_r30_copies_in_any_files_and_order_count_as_if_read_once(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    length: int,
    children: list[tuple[int, int, bool]],
    order: Sequence[int],
) -> None:
    folder = tmp_path_factory.mktemp("copies")
    lines, total = history(seed, length, 0)
    write(folder / f"{order[0]}", 1, [head(1), *lines], 0)
    apart = folder / "apart"
    write(apart / "1", 1, [head(1), *lines], 0)
    for place, (copied, more, is_subagent) in enumerate(children, 2):
        parent = {"forked_from_id": thread(1)}
        if is_subagent:
            parent |= {"parent_thread_id": thread(1), "session_id": thread(1)}
        mine, _ = history(seed + place, more, total + 1_000 * place)
        copy = [head(1), *lines[:copied]] if copied else []
        write(folder / f"{order[place - 1]}", place, [head(place, **parent), *copy, *mine], 900)
        # What it would be without a copy.
        write(apart / f"{place}", place, [head(place, **parent), *mine], 900)
    for each in folder.iterdir():
        if each != apart:
            for path in each.iterdir():
                path.rename(folder / path.name)
            each.rmdir()
    once = [entry for each in sorted(apart.iterdir()) for entry in own(derived(each))]
    for path in sorted(apart.rglob("*.jsonl")):
        path.unlink()
    records = derived(folder)
    assert sorted(own(records), key=str) == sorted(once, key=str)
    assert len({record.id for record in records}) == len(records)
    # Copies in any number of files more: nothing new.
    for place, path in enumerate(sorted(folder.glob("*.jsonl"))):
        (folder / f"worktree{place}").mkdir()
        (folder / f"worktree{place}" / path.name).write_bytes(path.read_bytes())
    assert [record.id for record in derived(folder)] == [record.id for record in records]


def test_a_line_says_to_kafka_what_the_reader_knows(tmp_path: Path) -> None:
    lines, total = history(1, 3, 0)
    mine, _ = history(2, 2, total)
    write(tmp_path, 1, [head(1), *lines], 0)
    write(tmp_path, 2, [head(2, parent_thread_id=thread(1)), head(1), *lines, *mine], 100)
    *_, child = reading.read(reading.expand([str(tmp_path)]))
    assert {line.session_hint for line in child} == {thread(1)}
    marks = [dict(headers_of_line(line)) for line in child]
    assert {mark.pop("thread_id") for mark in marks} == {thread(2).encode()}
    # Of the lines that have no size the derivation decides.
    copied = [{"inherited": b"true"}] * 3
    assert marks == [{}, {}, *copied, {"inherited": b"false"}, {}]


def test_an_origin_is_found_in_the_folder_of_its_day(tmp_path: Path) -> None:
    lines, _ = history(1, 3, 0)
    write(tmp_path / "2026" / "08" / "14", 1, [head(1), *lines], 0)
    child = tmp_path / "2026" / "11" / "01" / "rollout-2.jsonl"
    found = copied_history(str(child), thread(1))
    assert found is not None
    assert found.look(json.dumps(lines[0]).encode()) is True
    assert found.look(b'{"type": "event_msg", "token_count"') is None  # not JSON
    assert found.look(json.dumps(token_count({"input_tokens": 1}, 7)).encode()) is False
    assert found.is_over
    assert found.look(json.dumps(lines[1]).encode()) is None
    assert copied_history(str(child), thread(5)) is None
    assert copied_history(str(child), "of no time") is None


def test_a_follower_that_restarts_within_a_copy_goes_on_with_it(tmp_path: Path) -> None:
    lines, total = history(1, 4, 0)
    mine, _ = history(2, 1, total)
    write(tmp_path, 1, [head(1), *lines], 0)
    whole = [head(2, forked_from_id=thread(1)), head(1), *lines, *mine]
    write(tmp_path, 2, whole, 100)
    expected = own(derived(tmp_path))
    path = tmp_path / f"rollout-2026-11-01T12-00-00-{thread(2)}.jsonl"
    content = path.read_bytes().splitlines(keepends=True)
    (source,) = reading.expand([str(path)])
    assert source.path is not None
    deriver, records, position = Deriver(RULES), list[Record](), None
    for end in range(1, len(content) + 1):
        path.write_bytes(b"".join(content[:end]))
        status = path.stat()
        if position is None:
            position = Position(source.name, status.st_dev, status.st_ino)
        tail = FileTail(source, position._replace(inode=status.st_ino), None)
        tail.size = status.st_size
        for piece in tail.pieces(0.0, final=True):
            for each in piece.lines:
                records += derive_line(deriver, each, LIMIT, None).records
        position = tail.read
        tail.close()
    origin = own(derived(path.with_name(path.name.replace(thread(2), thread(1)))))
    assert [*origin, *own(records)] == expected


def test_a_forks_own_lines_are_its_own_also_where_its_origin_is_on_the_machine(
    tmp_path: Path,
) -> None:
    def prompt() -> Body:
        return rollout("response_item", {"type": "message", "role": "user", "content": []})

    lines, total = history(1, 3, 0)
    model = rollout("turn_context", {"model": "gpt-9", "cwd": "/repo"})
    mine = [model, prompt(), prompt(), *history(2, 1, total)[0]]
    seen = []
    for has_origin in (False, True):
        folder = tmp_path / str(has_origin)
        if has_origin:
            write(folder, 1, [head(1), *lines], 0)
        write(folder, 2, [head(2, forked_from_id=thread(1)), head(1), *lines, *mine], 100)
        path = next(folder.glob(f"*{thread(2)}*"))
        records = [record.data for record in derived(path)]
        infos = [each for each in records if isinstance(each, SessionInfo)]
        readings = [each for each in records if isinstance(each, ContextReading)]
        seen.append((infos[-1].model, readings[-1].inherited))
    assert seen == [("gpt-9", None), ("gpt-9", None)]
