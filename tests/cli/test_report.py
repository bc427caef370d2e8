"""`contextgauge report`: one file whose figures are those that the records give."""

import re
from collections.abc import Iterator
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from contextgauge.json_codec import dumps
from streams import wiring
from streams.cli.asked import opened
from streams.cli.inputs import sources_of
from streams.cli.pages.values import heading, shown
from streams.cli.report.answers import Answers
from streams.cli.report.figures import KEYS, figures
from streams.cli.report.page import ReportOrigin, page
from streams.cli.transcripts import Replay
from streams.core.session_status import THRESHOLDS
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
        self.texts: dict[str, list[str]] = {}
        self.heads: dict[str, list[str]] = {}
        self.stands: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        self.ids: list[str] = []
        self.outside: list[str] = []
        self.policy = ""
        self._path: list[tuple[str, dict[str, str | None]]] = []
        self._cell: list[str] | None = None
        self._text = ""
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
            self._cell, self._text = [], ""
        if tag == "data":
            self._cell = [given["value"] or ""]

    def handle_data(self, data: str) -> None:
        if not self._path:
            return
        tag = self._path[-1][0]
        self._text += data
        if tag == "th" and self._figure and self._in_details:
            self.heads.setdefault(self._figure, []).append(data)
        if tag == "p" and self._figure and self._path[-2][1].get("class") == "foot":
            self.stands[self._figure] = data
        elif tag in {"td", "strong"} and self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag: str) -> None:
        while self._path.pop()[0] != tag:
            pass
        if tag == "td" and self._figure and self._in_details:
            self.rows[self._figure][-1].append("".join(self._cell or []))
            self.texts.setdefault(self._figure, []).append(self._text)
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
    assumed, and ends in an attempt after a compaction that no response follows.
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
    thrashing += [boundary(automatic, at=290), compacting(at=300)]
    lines = (("thrashing.jsonl", dumps(each)) for each in thrashing)
    write_folder(folder, [*sample, *again, *lines])
    return folder


@pytest.fixture(scope="module")
def text(projects: Path) -> str:
    """The report of these transcripts."""
    with opened([str(projects)]) as asked:
        return page(Answers(asked.engine), ReportOrigin(asked.source, 0)).decode()


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


def _rounded(value: Any) -> Any:
    """Return what a cell has to be: amounts to a millionth of a dollar, all else as it is."""
    if isinstance(value, Decimal):
        return pytest.approx(float(value), abs=5.1e-7, rel=0)
    plain = _plain(value)
    return pytest.approx(plain, rel=1e-12) if isinstance(plain, float) else plain


@pytest.mark.extended
def test_late_warnings_are_those_that_screens_list(text: str) -> None:
    assert f" from {THRESHOLDS.elevated_above_percent}% used on" in _view(text, "warning-lead")


@pytest.mark.extended
def test_every_figure_is_what_the_records_give(text: str, expected: ExpectedAnswers) -> None:
    report = Report(text)
    for figure in figures():
        rows = [[_plain(each) for each in row] for row in report.rows.get(figure.question, [])]
        wanted = sorted(
            answer_of(expected, figure.question), key=lambda row: repr([*map(_plain, row)])
        )
        assert sorted(filter(None, rows), key=repr) == [
            [_rounded(each) for each in row] for row in wanted
        ], figure.question
    assert {each.question for each in figures()} == report.rows.keys()  # none is empty here


@pytest.mark.extended
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
    assert {name: float(value) for name, value in report.keys.items()} == wanted
    assert set(wanted) == {key.column for key in KEYS}


@pytest.mark.extended
def test_a_figure_says_on_how_many_rows_it_stands(text: str, expected: ExpectedAnswers) -> None:
    stands = Report(text).stands
    timed = sum(each.wait_ms is not None for each in expected.compactions)
    all_ = len(expected.compactions)
    assert 0 < timed < all_
    assert stands["duration-histogram"] == (f"{timed} compactions with a known duration, of {all_}")
    assert stands["growth"] == f"{len(expected.readings):,} responses"
    around = sum(since == 1 for _, since, _, _ in expected.placed())
    assert 0 < around < all_
    for question in ("around-boundaries", "before-and-after"):
        words = f"{around} compactions with responses before and after, of {all_}"
        assert stands[question] == words
    for question, column in (("base-share", 2), ("cache-misses", 1)):
        number = sum(row[column] for row in answer_of(expected, question))
        assert stands[question].startswith(f"{number:,} "), question


@pytest.mark.extended
def test_what_lacks_a_part_is_a_bound_and_figures_are_exact(
    text: str, expected: ExpectedAnswers
) -> None:
    report = Report(text)
    seen = set()
    for figure in figures():
        heads, rows = report.heads.get(figure.question, []), report.rows[figure.question]
        texts = iter(report.texts[figure.question])
        for row in filter(None, rows):
            words = dict(zip(heads, zip(row, texts, strict=False), strict=True))
            for bound, columns in (("at least ", figure.at_least), ("at most ", figure.at_most)):
                for column, flag in columns.items():
                    value, shown_as = words[heading(column)]
                    is_bound = value != "unknown" and words[heading(flag)][0] == "no"
                    assert shown_as.startswith(bound) == is_bound, (figure.question, column)
                    seen.add((bound, is_bound))
                    if column.endswith("_usd") and value != "unknown":
                        assert shown_as.endswith(f"${abs(Decimal(value)):,f}")
    assert seen == {(bound, each) for bound in ("at least ", "at most ") for each in (True, False)}
    in_view = _view(text, "cost-by-model")
    partial = [row for row in answer_of(expected, "cost-by-model") if row[9] == "no" and row[7]]
    assert 0 < in_view.count("at least ~$") == len(partial)
    days = [
        row for row in answer_of(expected, "cost-by-day") if row[8] == "no" and row[6] and row[0]
    ]
    chart = _view(text, "cost-by-day")
    assert (
        0 < chart.count('class="bar accent partial"') == chart.count(": at least ~$") == len(days)
    )


def _view(text: str, question: str) -> str:
    """Return what a figure shows without being opened."""
    return text.partition(f'<article id="{question}"')[2].partition("<details")[0]


@pytest.mark.extended
def test_rows_are_in_the_order_of_their_bars(text: str) -> None:
    ranked = 0
    for figure in figures():
        if figure.plot.kind == "rows" and not figure.plot.is_ordered:
            widths = re.findall(r'<rect width="([0-9.]+)%" height', _view(text, figure.question))
            assert widths
            assert sorted(map(float, widths), reverse=True) == list(map(float, widths))
            ranked += len(set(widths)) > 2
    assert ranked > 5


@pytest.mark.extended
def test_the_file_has_all_it_needs(text: str) -> None:
    report = Report(text)
    assert report.outside == []
    assert "<script" not in text
    assert not re.search(r"url\(|@import", text)
    assert report.policy.startswith("default-src 'none'; style-src 'sha256-")
    assert len(report.ids) == len(set(report.ids))


@pytest.mark.extended
def test_no_part_of_a_path_is_in_the_file(command: Command, projects: Path, tmp_path: Path) -> None:
    folder = tmp_path / "-home-ann-acme"
    folder.mkdir()
    (folder / "acme-notes.jsonl").write_bytes(next(_lines(projects, b'"msg_0"')) + b"\n")
    tables = tmp_path / "acme-tables"
    assert command("export", str(folder), "--to", str(tables)).returncode == 0
    for path, source in (
        (folder, "transcripts"),
        (folder / "acme-notes.jsonl", "transcripts"),
        (tables, "an export"),
    ):
        target = tmp_path / "report.html"
        assert command("report", str(path), "--out", str(target)).returncode == 0
        text = target.read_text("utf-8")
        assert f"<title>Context report: {source}</title>" in text
        assert "acme" not in text


@pytest.mark.extended
def test_a_figure_without_data_is_a_line(command: Command, projects: Path, tmp_path: Path) -> None:
    transcript = tmp_path / "short.jsonl"
    line = next(_lines(projects, b'"msg_0"'))
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


@pytest.mark.extended
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
