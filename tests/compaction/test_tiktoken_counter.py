"""The extra tiktoken: only tables on this machine count, nothing is downloaded.

The tables are the published ones, as another package bundles them; their hashes prove it.
"""

import base64
import hashlib
import socket
import struct
import sys
from collections.abc import Callable
from importlib.metadata import files
from pathlib import Path
from typing import Any

import pytest

from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.messages import Message, Text
from contextgauge.compaction.tiktoken_counter import TABLES, TiktokenCounter, tiktoken_counter

_MODELS = {"cl100k_base": "gpt-4", "o200k_base": "gpt-4o"}


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def _published(encoding: str) -> bytes:
    """Return a table as it is published: a line for each token, base64 and rank."""
    name = f"{encoding.removesuffix('_base')}.vocab"
    (file,) = (each for each in files("quicktok-v1") or () if each.name == name)
    data = Path(str(file.locate())).read_bytes()
    (count,), start = struct.unpack_from("<I", data), 4
    tokens: dict[int, bytes] = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, start)
        (rank,) = struct.unpack_from("<I", data, start + 2 + length)
        tokens[rank] = data[start + 2 : start + 2 + length]
        start += 6 + length
    return b"".join(base64.b64encode(tokens[rank]) + b" %d\n" % rank for rank in sorted(tokens))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tables as tiktoken stores them."""
    folder = tmp_path_factory.mktemp("tables")
    for name, table in TABLES.items():
        (folder / table.cached_name).write_bytes(_published(name))
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def counter_of(tables: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], TiktokenCounter]:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tables))

    def counter_of(encoding: str) -> TiktokenCounter:
        counter = tiktoken_counter(_MODELS[encoding])
        assert isinstance(counter, TiktokenCounter)
        return counter

    return counter_of


@pytest.mark.extended
@pytest.mark.parametrize(
    ("text", "cl100k", "o200k"),
    [  # the first four are figures that OpenAI publishes
        ("antidisestablishmentarianism", 6, 6),
        ("2 + 2 = 4", 7, 7),
        ("お誕生日おめでとう", 9, 8),
        ("tiktoken is great!", 6, 6),
        ("", 0, 0),
        ("<|endoftext|>", 7, 7),  # as any other text: content is no special token
    ],
)
def test_a_table_on_this_machine_counts(
    counter_of: Callable[[str], TiktokenCounter], text: str, cl100k: int, o200k: int
) -> None:
    assert counter_of("cl100k_base").text(text) == cl100k
    assert counter_of("o200k_base").text(text) == o200k
    message = Message("user", (Text(text),))
    assert counter_of("o200k_base").message(message) == 2 + o200k


def _packages_own(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what tiktoken makes an encoding of; its table is the one that it would download."""
    from tiktoken_ext import openai_public  # noqa: PLC0415 -- an extra

    def load(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
        assert url.endswith(f"/encodings/{name}.tiktoken")
        cached_name = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
        assert (cached_name, expected_hash) == (TABLES[name].cached_name, TABLES[name].sha256)
        lines = (line.split() for line in _published(name).splitlines())
        return {base64.b64decode(token): int(rank) for token, rank in lines}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", load)
    made: dict[str, Any] = getattr(openai_public, name)()
    return made


@pytest.mark.parametrize("name", TABLES)
def test_an_encoding_is_the_packages_own(
    counter_of: Callable[[str], TiktokenCounter], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tiktoken  # noqa: PLC0415 -- an extra

    own = _packages_own(name, monkeypatch)
    assert own["pat_str"] == TABLES[name].pattern
    encoding: tiktoken.Encoding = tiktoken.Encoding(**own)
    for text in (
        "def f(x):\n\treturn x  # naïve\r\n\r\n   ",
        "It's 12345678 o'clock, WE'LL see",
        "Größe prüfen! 禁止直接推送到 main。",
        "👩‍👩‍👧‍👦 e\u0301 \u2028 \x00",
    ):
        assert counter_of(name).text(text) == len(encoding.encode_ordinary(text))


def test_a_long_text_is_counted_in_pieces(
    counter_of: Callable[[str], TiktokenCounter],
) -> None:
    counter, text = counter_of("o200k_base"), "word " * 50_000
    whole = len(counter.encoding.encode_ordinary(text))
    assert whole <= counter.text(text) <= whole + 5


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-oss-1"])
def test_a_table_may_have_its_published_name(folder: Path, tables: Path, model: str) -> None:
    table = (tables / TABLES["o200k_base"].cached_name).read_bytes()
    (folder / "o200k_base.tiktoken").write_bytes(table)
    assert tiktoken_counter(model).text("お誕生日おめでとう") == 8


@pytest.mark.usefixtures("folder")
def test_without_a_table_the_estimate_is_taken_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert tiktoken_counter("gpt-4o") is ESTIMATE
    assert tiktoken_counter("gpt-4o") is ESTIMATE
    assert [record.message for record in caplog.records] == [
        next(record.message for record in caplog.records if "o200k_base.tiktoken" in record.message)
    ]


def test_a_damaged_table_is_left_alone_and_not_used(folder: Path, tables: Path) -> None:
    name = TABLES["o200k_base"].cached_name
    damaged = (tables / name).read_bytes()[:-7]
    (folder / name).write_bytes(damaged)
    assert tiktoken_counter("gpt-4o") is ESTIMATE
    assert (folder / name).read_bytes() == damaged


@pytest.mark.usefixtures("folder")
def test_a_model_that_tiktoken_does_not_know_is_estimated(caplog: pytest.LogCaptureFixture) -> None:
    assert tiktoken_counter("claude") is ESTIMATE
    assert "claude are estimated" in caplog.text


@pytest.mark.usefixtures("folder")
def test_without_the_package_the_estimate_is_taken(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert tiktoken_counter("gpt-4o") is ESTIMATE
    assert "with the extra tiktoken" in caplog.text
