"""Of a document that is written again the lines that were sent are known, for as long as needed."""

from pathlib import Path

import pytest

from contextgauge.containers import Line
from streams.edge.files import lines as module
from streams.edge.files.lines import SentLines, forget_sent
from tests.runtimes.documents_kit import Publishing, write
from tests.runtimes.test_cline_sessions import LISTED, MAIN, messages


def said(*texts: str, session: str = "one") -> list[Line]:
    values = (text.encode() for text in texts)
    return [
        Line("a.json", number, value, len(value), session) for number, value in enumerate(values)
    ]


def sent(*versions: list[Line]) -> SentLines:
    """Return what is known after versions of a document that were read to their ends."""
    known = SentLines()
    for version in versions:
        known.turn(is_whole=True)
        known.take(known.without(version))
    return known


def test_what_was_sent_of_one_session_is_new_of_another() -> None:
    known = sent(said("yes", "no"))
    known.turn(is_whole=True)
    assert known.without(said("yes", "no", "go")) == said("yes", "no", "go")[2:]
    assert known.without(said("yes", session="two")) == said("yes", session="two")


def test_however_often_a_document_is_written_again_only_its_last_versions_are_known() -> None:
    known = sent(*(said("yes", f"counted {number}") for number in range(100)))
    assert len(known) == 4


def test_a_version_that_was_not_read_to_its_end_forgets_nothing() -> None:
    known = sent(said("yes", "no"))
    known.turn(is_whole=True)
    assert known.without(said("yes")) == []
    known.turn(is_whole=False)
    assert known.without(said("yes", "no")) == []


def test_of_too_many_lines_those_of_the_documents_that_changed_last_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_SENT", 3)
    documents = [sent(said("a", "b")), sent(said("c", "d")), sent(said("e"))]
    forget_sent(documents)
    assert [len(each) for each in documents] == [2, 0, 0]
    large = sent(said("a", "b", "c", "d"))
    forget_sent([large])
    assert len(large) == 4


def test_a_version_without_anything_new_is_acknowledged_as_it_is_read(tmp_path: Path) -> None:
    write(tmp_path, {MAIN: messages(*LISTED)})
    publishing = Publishing(tmp_path)
    assert len(publishing.sent()) == 5
    write(tmp_path, {MAIN: messages(*LISTED[:3])})
    assert publishing.sent() == []
    publishing.bench.restart()
    assert publishing.sent() == []
    assert publishing.reported == []
