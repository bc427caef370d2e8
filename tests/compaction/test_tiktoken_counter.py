"""The extra tiktoken: only tables on this machine count, nothing is downloaded."""

import base64
import hashlib
import socket
import sys
from pathlib import Path
from types import ModuleType

import pytest

from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.messages import Message, Text
from contextgauge.compaction.tiktoken_counter import TABLES, tiktoken_counter

TABLE = b"".join(
    base64.b64encode(token) + b" %d\n" % rank
    for rank, token in enumerate([*(bytes([each]) for each in range(256)), b"ab", b"abab"])
)

DAMAGED = TABLE[: TABLE[:-1].rindex(b"\n") + 1]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)


class Encoding:
    """Counts bytes, or the text's pieces: enough to see what the counter passes on."""

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
    ) -> None:
        assert (pat_str, special_tokens) == (TABLES[name].pattern, {})
        self.ranks = mergeable_ranks

    def encode_ordinary(self, text: str) -> list[int]:
        return [self.ranks[bytes([each])] for each in text.encode()]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    def encoding_name_for_model(model: str) -> str:
        return {"gpt-4o": "o200k_base", "gpt-oss-1": "o200k_harmony", "gpt-4": "cl100k_base"}[model]

    tiktoken, model = ModuleType("tiktoken"), ModuleType("tiktoken.model")
    tiktoken.Encoding = Encoding  # type: ignore[attr-defined]
    model.encoding_name_for_model = encoding_name_for_model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tiktoken", tiktoken)
    monkeypatch.setitem(sys.modules, "tiktoken.model", model)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    sha256 = hashlib.sha256(TABLE).hexdigest()
    for name, table in TABLES.items():
        monkeypatch.setitem(TABLES, name, table._replace(sha256=sha256))
    return tmp_path


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("file", [TABLES["o200k_base"].cached_name, "o200k_base.tiktoken"])
@pytest.mark.parametrize("model", ["gpt-4o", "gpt-oss-1"])
def test_a_table_on_this_machine_counts(folder: Path, file: str, model: str) -> None:
    (folder / file).write_bytes(TABLE)
    counter = tiktoken_counter(model)
    assert counter is not ESTIMATE
    assert counter.text("12345") == 5
    assert counter.text("x" * 120_001) == 120_001
    assert counter.message(Message("user", (Text("12345"),))) == 7


@pytest.mark.usefixtures("package", "folder")
def test_without_a_table_the_estimate_is_taken_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert tiktoken_counter("gpt-4o") is ESTIMATE
    assert tiktoken_counter("gpt-4o") is ESTIMATE
    assert [record.message for record in caplog.records] == [
        next(record.message for record in caplog.records if "o200k_base.tiktoken" in record.message)
    ]


@pytest.mark.usefixtures("package")
def test_a_damaged_table_is_left_alone_and_not_used(folder: Path) -> None:
    file = folder / TABLES["o200k_base"].cached_name
    file.write_bytes(DAMAGED)
    assert tiktoken_counter("gpt-4o") is ESTIMATE
    assert file.read_bytes() == DAMAGED


@pytest.mark.usefixtures("package", "folder")
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


def test_the_tables_have_the_names_that_tiktoken_stores_them_under() -> None:
    for name, table in TABLES.items():
        url = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
        assert hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest() == table.cached_name
