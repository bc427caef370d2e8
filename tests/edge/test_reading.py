"""Reading files once: paths that cannot be read, and files that change meanwhile."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from contextgauge.errors import ConfigError
from streams.edge.files import lines, tail
from streams.edge.files import reading as files
from streams.edge.files.watch import TranscriptFinder


def write(path: Path, lines: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"{}\n" * lines)
    return path


@pytest.mark.parametrize("name", ["theirs", "theirs/b.jsonl"])
def test_a_path_that_may_not_be_looked_at_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write(tmp_path / "theirs" / "b.jsonl")
    named, stat = tmp_path / name, os.stat

    def refusing(path: str | Path, **options: Any) -> os.stat_result:
        if Path(path) == named:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", refusing)
    with pytest.raises(ConfigError, match=f"{named}: Permission denied"):
        files.expand([str(named)])
    with pytest.raises(ConfigError, match=f"{named}: Permission denied"):
        TranscriptFinder([str(named)])


def test_a_folder_that_cannot_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "mine" / "a.jsonl")
    theirs = write(tmp_path / "theirs" / "b.jsonl").parent
    scandir = os.scandir

    def refusing(path: str) -> object:
        if Path(path) == theirs:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(ConfigError, match=f"{theirs}: Permission denied"):
        files.expand([str(tmp_path)])


def test_a_file_that_cannot_be_read_is_a_clear_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl")
    sources = files.expand([str(path)])
    path.unlink()
    with pytest.raises(ConfigError, match=r"a\.jsonl: No such file"):
        list(files.read(sources))


@pytest.mark.parametrize("content", [b"", b"{}\n{}\n", b"{}\n" * 40 + b"{", b"[]\n" * 100], ids=len)
def test_a_file_that_is_rewritten_while_it_is_read_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(tail, "_BLOCK_BYTES", 64)
    path = write(tmp_path / "a.jsonl", 50)
    blocks = files.read(files.expand([str(path)]))
    assert next(blocks)
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"a\.jsonl: rewritten while it was read"):
        list(blocks)


def test_a_file_that_grows_while_it_is_read_is_read_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "_BLOCK_BYTES", 64)
    path = write(tmp_path / "a.jsonl", 50)
    blocks = files.read(files.expand([str(path)]))
    first = next(blocks)
    with path.open("ab") as file:
        file.write(b"{}\n")
    assert len(first) + sum(map(len, blocks)) == 50


def test_a_late_line_makes_a_file_a_transcript_wherever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is across two of the blocks in which a file is searched."""
    monkeypatch.setattr(lines, "_LOOK_BYTES", 512)
    early, sign = b'{"type":"user","session_id":"one"}\n', b'{"type":"user","sessionId":"two"}\n'
    for padding in range(400, 600):
        path = tmp_path / "a.jsonl"
        path.write_bytes(early + b'{"type":"' + b"x" * padding + b'"}\n' + sign)
        (block,) = files.read(files.expand([str(path)]))
        assert [line.session_hint for line in block] == ["two"] * 3


def test_each_line_of_a_stream_has_the_session_that_was_named_last(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    inner = b'{"session_id":"one","tool":{"session_id":"other"}}\n'
    path.write_bytes(b'{}\n{"session_id":"one"}\n{}\n' + inner + b'{"session_id":"two"}\n{}\n')
    (block,) = files.read(files.expand([str(path)]))
    assert [line.session_hint for line in block] == [None, None, "one", "one", "one", "two"]
