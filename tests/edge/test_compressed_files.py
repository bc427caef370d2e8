"""Compressed files, read in part or up to a damage; and what was stored before there were any."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from contextgauge.errors import ConfigError
from streams.edge.files import reading as files
from streams.edge.files.origins import copied_history
from streams.edge.files.session_files import SessionFiles, first_prompt
from streams.edge.files.session_reading import SessionReading
from tests.edge.follower_kit import ROLLOUT, Bench, Codex, add, compressed, entry
from tests.edge.test_local_transcripts import OLD_S, Reading

THREAD, LATER = "01a00ae5-0000-7000-8000-000000000001", "01a00ae5-0000-7000-8000-00000000000f"

Step = Callable[[Codex], None]


def test_a_damaged_file_is_named_once_and_read_up_to_there(tmp_path: Path) -> None:
    codex = Codex(tmp_path)
    codex.append(*map(entry, range(20_000)), at_s=OLD_S)
    codex.compress()
    whole = codex.place.read_bytes()
    add(tmp_path / "sessions" / "other.jsonl", entry(50_000))

    def cut(length: int) -> None:
        codex.place.write_bytes(whole[:length])
        os.utime(codex.place, (OLD_S, OLD_S))

    cut(len(whole) // 2)
    bench, reading = Bench([str(tmp_path)]), Reading(tmp_path)
    for lines, events in ((bench.lines, bench.events), (reading.lines, reading.events)):
        first = lines()
        assert first[-1] == entry(50_000) or first[0] == entry(50_000)
        known = len(first) - 1
        assert 0 < known < 20_000
        assert sorted(first) == sorted([*map(entry, range(known)), entry(50_000)])
        for _ in range(3):
            assert lines() == []
        (event,) = events
        assert event.startswith(f"{codex.place}: the compressed data is cut off after ")
    cut(len(whole))
    assert bench.lines() == reading.lines() == [*map(entry, range(known, 20_000))]
    once = Bench([str(codex.place)], follow=False)
    assert len(once.lines()) == 20_000
    assert once.events == []


def test_a_damaged_file_is_given_to_who_reads_it_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(compressed(b"{}\n" * 9) + compressed(b"{}\n")[:-8])
    failed = list[str]()
    blocks = files.read(
        files.expand([str(path)]), None, lambda name, error: failed.append(f"{name}: {error}")
    )
    assert sum(map(len, blocks)) == 9
    (text,) = failed
    assert text.startswith(f"{path}: ")
    with pytest.raises(ConfigError, match="cut off after 27 bytes"):
        list(files.read(files.expand([str(path)])))
    once = Bench([str(path)], follow=False)
    assert len(once.lines()) == 9
    assert once.follower.unreadable == 1


def test_what_reads_parts_of_a_file_reads_compressed_ones(tmp_path: Path) -> None:
    codex = Codex(tmp_path)
    head = f'{{"type":"session_meta","payload":{{"id":"{THREAD}"}}}}'
    typed = '{"type":"event_msg","payload":{"type":"user_message","message":"go"}}'
    more = [f'{{"type":"compacted","payload":{{"message":"{each}"}}}}' for each in range(5_000)]
    codex.append(head, typed, *more)
    name = codex.place

    def end_of(path: Path) -> list[bytes]:
        return [line.value for lines in SessionReading(str(path), {}).end() for line in lines]

    plain = end_of(name)
    assert 100 < len(plain) < 5_000
    codex.compress()
    codex.put_away()
    for path in (name, codex.place):
        assert end_of(path) == plain
    assert first_prompt(codex.place) == "go"
    local = SessionFiles([tmp_path / "sessions", codex.archive])
    assert local.path(THREAD) == codex.place
    assert local.titles([THREAD]) == {THREAD: "go"}
    # It is taken back: the title is still that of the same file.
    codex.take_back()
    assert local.titles([THREAD]) == {THREAD: "go"}
    later = Codex(tmp_path, ROLLOUT.replace("14-07", "15-00").replace(".jsonl", f"_{LATER}.jsonl"))
    later.append(head)
    local = SessionFiles([tmp_path])
    assert local.path(THREAD) == later.place
    assert local.titles([THREAD]) == {THREAD: "go"}


def test_the_origin_of_a_fork_is_found_where_it_was_put_away(tmp_path: Path) -> None:
    codex = Codex(tmp_path)
    line = '{"type":"compacted","payload":{"message":"x"}}'
    codex.append(line)
    child = tmp_path / "sessions" / "2026" / "11" / "01" / "rollout-2.jsonl"
    steps: Iterable[Step] = [Codex.compress, Codex.put_away, Codex.decompress]
    for step in steps:
        step(codex)
        copied = copied_history(str(child), THREAD)
        assert copied is not None
        assert copied.look(line.encode()) is True
    assert copied_history(str(codex.archive / "rollout-2.jsonl.zst"), THREAD) is not None
