"""`contextgauge report`: one file whose figures are those that the records give."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from contextgauge.json_codec import dumps
from streams import wiring
from streams.cli.asked import opened
from streams.cli.inputs import sources_of
from streams.cli.pages.values import shown
from streams.cli.report.answers import Answers
from streams.cli.report.figures import KEYS, figures
from streams.cli.report.page import ReportOrigin, page
from streams.cli.transcripts import Replay
from streams.edge.files.folders import write_folder
from streams.flow.simulator import SimulationOptions, sample_sessions, simulate
from tests.cli.report_values import ExpectedAnswers, Row
from tests.commands import Command
from tests.core.given import assistant, boundary, compacting


class Report(HTMLParser):
    """A report's figures: by question, the rows of its table and what it stands on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self.stands: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        self.ids: list[str] = []
        self.outside: list[str] = []
        self.policy = ""
        self._path: list[tuple[str, dict[str, str | None]]] = []
        self._cell: list[str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if (own := given.get("id")) is not None:
            self.ids.append(own)
        self.outside += [
            f"{tag} {name}={value}"
            for name, value in attrs
            if name in {"src", "href", "srcset", "action", "poster", "data"}
            and not (value or "").startswith("#")
        ]
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        if tag in {"meta", "input", "br", "link"}:
            return
        self._path.append((tag, given))
        if tag == "tr" and self._figure and self._in_details:
            self.rows.setdefault(self._figure, []).append([])
        if tag in {"td", "strong"}:
            self._cell = []
        if tag == "data":
            self._cell = [given["value"] or ""]

    def handle_data(self, data: str) -> None:
        if not self._path:
            return
        tag = self._path[-1][0]
        if tag == "p" and self._figure and self._path[-2][1].get("class") == "foot":
            self.stands[self._figure] = data
        elif tag in {"td", "strong"} and self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag: str) -> None:
        while self._path.pop()[0] != tag:
            pass
        if tag == "td" and self._figure and self._in_details:
            self.rows[self._figure][-1].append("".join(self._cell or []))
        if tag == "strong":
            self.keys[
                next(each["data-key"] or "" for _, each in self._path if "data-key" in each)
            ] = "".join(self._cell or [])

    @property
    def _figure(self) -> str | None:
        return next((given.get("id") for tag, given in self._path if tag == "article"), None)

    @property
    def _in_details(self) -> bool:
        return any(given.get("class") == "data" for _, given in self._path)


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Transcripts of a sample with every outcome, and of sessions that fill their windows.

    Those call one command again and again. One session thrashes at the floor of a window that is
    assumed, and ends in an attempt.
    """
    folder = tmp_path_factory.mktemp("projects")
    long = simulate(SimulationOptions(sessions=4, turns=40))
    command = re.compile(rb'"command":"(?:[^"\\]|\\.)*"')
    again = ((each.file, command.sub(b'"command":"make"', each.value)) for each in long)
    sample = ((each.file, each.value) for each in sample_sessions(SimulationOptions()))
    thrashing = [assistant("msg_0", read=150_000, model="nameless", at=0)]
    for number in range(1, 5):
        automatic = {"trigger": "auto", "pre_tokens": 150_000 + number}
        size = 140_000 + number
        thrashing += [
            boundary(automatic, at=number * 60),
            assistant(f"msg_{number}", read=size, model="nameless", at=number * 60 + 20),
        ]
    lines = (("thrashing.jsonl", dumps(each)) for each in [*thrashing, compacting(at=300)])
    write_folder(folder, [*sample, *again, *lines])
    return folder


@pytest.fixture(scope="module")
def text(projects: Path) -> str:
    """The report of these transcripts."""
    with opened([str(projects)]) as asked:
        return page(Answers(asked.engine), ReportOrigin(asked.name, 0)).decode()


@pytest.fixture(scope="module")
def expected(projects: Path) -> ExpectedAnswers:
    """What its figures should be, without SQL."""
    rules = wiring.rules(wiring.settings(), content=True)
    replayed = Replay(sources_of([str(projects)]), processes=1, rules=rules)
    return ExpectedAnswers([record for records in replayed.records() for record in records])


def answer_of(expected: ExpectedAnswers, question: str) -> list[Row]:
    rows: list[Row] = getattr(expected, question.replace("-", "_"))()
    return rows


def _plain(value: Any) -> float | str:
    try:
        return float(value)
    except (TypeError, ValueError):
        return shown(value) if value is None else str(value)


def test_every_figure_is_what_the_records_give(text: str, expected: ExpectedAnswers) -> None:
    report = Report(text)
    for figure in figures():
        rows = [[_plain(each) for each in row] for row in report.rows.get(figure.question, [])]
        wanted = [[_plain(each) for each in row] for row in answer_of(expected, figure.question)]
        # A half may be rounded either way: by a tenth, as they are shown.
        assert sorted(filter(None, rows), key=repr) == [
            [pytest.approx(each, abs=0.11) for each in row] for row in sorted(wanted, key=repr)
        ], figure.question
    assert {each.question for each in figures()} == report.rows.keys()  # none is empty here


def test_key_figures_are_those_of_the_records(text: str, expected: ExpectedAnswers) -> None:
    report = Report(text)
    (totals,), (averages,), (saved,) = (
        answer_of(expected, name) for name in ("totals", "average-compaction", "tokens-saved")
    )
    wanted = {
        "sessions": totals[0],
        "compactions": totals[2],
        "average_messages": averages[11],
        "average_pre_tokens": averages[2],
        "median_ms": averages[10],
        "tokens_saved": saved[2],
        "average_left_percent": averages[6],
        "sessions_at_80": totals[8],
    }
    assert {name: float(value) for name, value in report.keys.items()} == pytest.approx(
        wanted, abs=0.11
    )
    assert set(wanted) == {key.column for key in KEYS}


def test_a_figure_says_on_how_many_rows_it_stands(text: str, expected: ExpectedAnswers) -> None:
    stands = Report(text).stands
    timed = sum(each.wait_ms is not None for each in expected.compactions)
    all_ = len(expected.compactions)
    assert 0 < timed < all_
    assert stands["duration-histogram"] == (f"{timed} compactions with a known duration, of {all_}")
    assert stands["growth"] == f"{len(expected.readings):,} responses"
    for question, column in (("base-share", 2), ("cache-misses", 1)):
        number = sum(row[column] for row in answer_of(expected, question))
        assert stands[question].startswith(f"{number:,} "), question


def test_the_file_has_all_it_needs(text: str) -> None:
    report = Report(text)
    assert report.outside == []
    assert "<script" not in text
    assert not re.search(r"url\(|@import", text)
    assert report.policy.startswith("default-src 'none'; style-src 'sha256-")
    assert len(report.ids) == len(set(report.ids))


def test_a_figure_without_data_is_a_line(command: Command, projects: Path, tmp_path: Path) -> None:
    transcript = tmp_path / "short.jsonl"
    line = next(_lines(projects, b'"usage"'))
    transcript.write_bytes(line + b"\n")
    target = tmp_path / "short.html"
    assert command("report", str(transcript), "--out", str(target)).returncode == 0
    text = target.read_text("utf-8")
    assert "No compactions with a known duration." in text
    assert Report(text).keys["median_ms"] == "unknown"
    assert "<svg" not in text.partition('id="duration-histogram"')[2].partition("</article>")[0]


def _lines(folder: Path, word: bytes) -> Iterator[bytes]:
    for path in sorted(folder.rglob("*.jsonl")):
        yield from (line for line in path.read_bytes().splitlines() if word in line)


def test_a_report_is_written_whole_or_not_at_all(
    command: Command, projects: Path, tmp_path: Path
) -> None:
    done = command("report", str(projects), "--out", str(tmp_path / "none" / "report.html"))
    assert done.returncode == 2
    assert "No such file or directory" in done.stderr
    done = command("report", "--topic", str(projects), "--out", str(tmp_path / "report.html"))
    assert done.returncode == 2
    assert "name no paths with it" in done.stderr
    assert list(tmp_path.iterdir()) == []
