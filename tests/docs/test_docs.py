"""The documents are true: what they link to is there, what they list is what the code has."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import get_args

import pytest
from rich.table import Table

from contextgauge.normalise.signals import InputMessage, Signal
from contextgauge.window_catalog import bundled
from schemas.messages import DeadReason
from schemas.records import DATA_CLASS_BY_KIND, Category, Common, WindowSource
from schemas.topics import CONTEXT_COMMANDS, DAY_MS, MIB, TOPICS, Topic
from schemas.views import VIEW_VERSION
from streams import codec
from streams.cli.screen.sessions_table import live_table, sessions_table
from streams.core.derivation.rules_config import Rules
from streams.core.derivation.step import RECORD_ORDER, UNMEASURED
from streams.core.derivation.transitions import Phase
from streams.flow.derive.deriver import Deriver
from tests.core.history import History, view_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "deploy").rglob("*.md")],
)
RULES_TEXT = (DOCS / "RULES.md").read_text(encoding="utf-8")
ARCHITECTURE_TEXT = (DOCS / "ARCHITECTURE.md").read_text(encoding="utf-8")

_FENCED = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_FILE = re.compile(r"(?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|md|lock|toml|lua|sh)")
_CELL = re.compile(r"(?<!\\)\|")
_MADE = {f"{line.strip('/')}/" for line in (ROOT / ".gitignore").read_text().splitlines()}
"""Folders that are fetched or built, so that a fresh clone lacks them."""
_FOLDERS = ("schemas", "streams", "contextgauge", "deploy", "docs", "tests", "tools", "bench")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _blocks(text: str, info: str) -> list[str]:
    return [match["text"] for match in _FENCED.finditer(text) if match["info"].strip() == info]


def _prose(text: str) -> str:
    """Return a document without its fenced blocks."""
    return _FENCED.sub("", text)


def _anchors(text: str) -> set[str]:
    """Return the anchors that headings get: lower case, hyphens for spaces, no punctuation."""
    last_numbers: dict[str, int] = {}
    for _, title in _HEADING.findall(_prose(text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower().strip()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        last_numbers[slug] = last_numbers.get(slug, -1) + 1
        if last_numbers[slug]:
            last_numbers[f"{slug}-{last_numbers[slug]}"] = 0
    return set(last_numbers)


def _section(text: str, title: str) -> str:
    """Return what stands under a heading, to the next one of its level or above."""
    headings = list(_HEADING.finditer(text))
    for number, heading in enumerate(headings):
        if heading[2] == title:
            level, later = len(heading[1]), headings[number + 1 :]
            ends = (other.start() for other in later if len(other[1]) <= level)
            return text[heading.end() : next(ends, len(text))]
    pytest.fail(f"no heading {title!r}")


def _rows(text: str) -> list[list[str]]:
    """Return the cells of all tables' rows, headings left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rules = [number for number, row in enumerate(cells) if set("".join(row)) <= set("-: ")]
    skipped = {number for rule in rules for number in (rule, rule - 1)}
    return [row for number, row in enumerate(cells) if number not in skipped]


def test_links_have_valid_targets() -> None:
    broken = [
        f"{_name(path)}: {target}"
        for path in DOCUMENTS
        for target in _LINK.findall(_prose(path.read_text(encoding="utf-8")))
        if not re.match(r"[a-z]+:", target) and not _leads_somewhere(path, target)
    ]
    assert broken == []


def _leads_somewhere(path: Path, target: str) -> bool:
    file, _, anchor = target.partition("#")
    aim = path if not file else path.parent / file
    return aim.exists() and (not anchor or anchor in _anchors(aim.read_text(encoding="utf-8")))


def test_files_named_in_documents_exist() -> None:
    missing = [
        f"{_name(path)}: {text}"
        for path in DOCUMENTS
        for text in _CODE.findall(_prose(path.read_text(encoding="utf-8")))
        if _FILE.fullmatch(text)
        and (text.split("/")[0] in _FOLDERS or (text.endswith(".py") and "/" in text))
        and text not in _MADE
        and not (ROOT / text).exists()
    ]
    assert missing == []


def test_rows_of_a_table_have_its_columns() -> None:
    wrong = [
        f"{_name(path)}: {row}"
        for path in DOCUMENTS
        for row in _ragged_rows(_prose(path.read_text(encoding="utf-8")))
    ]
    assert wrong == []


def _ragged_rows(text: str) -> list[str]:
    """Return the rows of tables that have more or fewer cells than the first row."""
    ragged: list[str] = []
    columns = 0
    for line in text.splitlines():
        cells = len(_CELL.findall(line)) if line.startswith("|") else 0
        if columns and cells not in {0, columns}:
            ragged.append(line)
        columns = columns or cells if cells else 0
    return ragged


def test_a_wrong_link_and_a_wrong_anchor_are_detected() -> None:
    assert "the-rules-r1-to-r30" in _anchors("# The rules\n## The rules R1 to R30\n")
    assert _anchors("# `a_b`, c\n# `a_b`, c\n") == {"a_b-c", "a_b-c-1"}
    assert _LINK.findall("see [x](y.md#z) and ![i](p.png)") == ["y.md#z"]
    assert _leads_somewhere(DOCS / "RULES.md", "ARCHITECTURE.md#topics-and-keys")
    assert not _leads_somewhere(DOCS / "RULES.md", "no-such.md")
    assert not _leads_somewhere(DOCS / "RULES.md", "#no-such-heading")


def test_a_row_of_another_table_is_detected() -> None:
    assert _ragged_rows("| a | b |\n|---|---|\n| c | d |\n| e |\n\n| f |\n|---|\n") == ["| e |"]
    assert _ragged_rows("| a |\n|---|\n| b \\| c |\n") == []


def test_every_rule_has_a_test_named_after_it_and_every_such_test_a_rule() -> None:
    documented = {int(number) for number in re.findall(r"^#### R(\d+) ", RULES_TEXT, re.MULTILINE)}
    tested = {
        int(number)
        for path in (ROOT / "tests").rglob("test_*.py")
        for number in re.findall(r"def test_r(\d\d)_", path.read_text(encoding="utf-8"))
    }
    assert documented == set(range(1, 36))
    assert tested == documented


def test_every_kind_of_record_is_listed_with_a_section() -> None:
    rows = _rows(_section(RULES_TEXT, "Kinds").split("####", 1)[0])
    assert [row[0] for row in rows] == [f"[`{kind}`](#{kind})" for kind in DATA_CLASS_BY_KIND]


def test_every_field_of_a_kind_is_listed_in_order() -> None:
    common = {field.name for field in fields(Common)}
    for kind, data_class in DATA_CLASS_BY_KIND.items():
        names = [field.name for field in fields(data_class) if field.name not in common]
        rows = _rows(_section(RULES_TEXT, f"`{kind}`"))
        assert [row[0] for row in rows] == [f"`{name}`" for name in names], kind
        assert all(len(row) == 3 and all(row) for row in rows), kind


def test_the_common_fields_and_the_parts_of_a_category_are_listed() -> None:
    rows = _rows(_section(RULES_TEXT, "Fields of every record"))
    assert [row[0] for row in rows] == [f"`{field.name}`" for field in fields(Common)]
    limits = _section(RULES_TEXT, "`context_limits`")
    assert all(f"`{field.name}`" in limits for field in fields(Category))


def test_the_documented_order_of_records_matches_the_code() -> None:
    sentence = re.search(r"Their order is: (.*?)\.\n", RULES_TEXT, re.DOTALL)
    assert sentence is not None
    names = _CODE.findall(sentence[1])
    names[names.index("compaction_complete")] = UNMEASURED
    assert tuple(names) == RECORD_ORDER


@pytest.mark.parametrize(
    ("title", "known"),
    [("R5 Dead letters", DeadReason), ("Windows", WindowSource)],
    ids=["dead reasons", "window sources"],
)
def test_closed_lists_are_complete(title: str, known: object) -> None:
    section = _section(RULES_TEXT, title)
    assert [name for name in get_args(known) if f"`{name}`" not in section] == []


def test_every_topic_is_listed_with_its_figures() -> None:
    def row(topic: Topic) -> list[str]:
        retention = (
            "unlimited" if topic.retention_ms < 0 else f"{topic.retention_ms // DAY_MS} days"
        )
        if topic.cleanup == "compact":
            retention = "last value of each key"
        return [f"`{topic.name}`", topic.key, retention, f"{topic.max_message_bytes // MIB} MiB"]

    rows = [row[:4] for row in _rows(_section(ARCHITECTURE_TEXT, "Topics and keys"))]
    assert [row(topic) for topic in TOPICS] == rows[: len(TOPICS)]


def test_diagrams_have_the_phases_and_the_topics_of_the_code() -> None:
    states = [
        block
        for path in DOCUMENTS
        for block in _blocks(path.read_text(encoding="utf-8"), "mermaid")
        if block.lstrip().startswith("stateDiagram")
    ]
    assert states, "no diagram of the attempt machine in any document"
    for block in states:
        words = set(re.findall(r"\w+", block.lower()))
        assert {phase.value for phase in Phase} <= words
    flows = [
        block
        for block in _blocks(ARCHITECTURE_TEXT, "mermaid") + _blocks(ARCHITECTURE_TEXT, "text")
        if TOPICS[0].name in block
    ]
    assert len(flows) == 2, "the flow is drawn twice: for a browser, and in plain text"
    used = [topic.name for topic in TOPICS if topic is not CONTEXT_COMMANDS]
    for block in flows:
        assert [name for name in used if name not in block] == []


def test_the_documented_number_of_signals_is_correct() -> None:
    match = re.search(r"union of (\d+)\s+signals", ARCHITECTURE_TEXT)
    assert match is not None
    assert int(match[1]) == len(get_args(Signal))


EXAMPLES = re.findall(r"```json message\n([^`]*)```\n\n```json record\n([^`]*)```", RULES_TEXT)


@pytest.mark.parametrize(("messages", "shown"), EXAMPLES)
def test_the_examples_give_the_records_shown(messages: str, shown: str) -> None:
    """All records of the kinds shown are shown, in their order; of each, some of its fields."""
    deriver = Deriver(Rules(bundled()))
    wanted = [json.loads(line) for line in shown.splitlines()]
    kinds = {line["kind"] for line in wanted}
    records = []
    for line in messages.splitlines():
        taken = deriver.derive(InputMessage(line.encode(), "a session"))
        assert taken.dead is None
        records += [record for record in taken.records if record.kind in kinds]
    assert [record.kind for record in records] == [line["kind"] for line in wanted]
    for record, line in zip(records, wanted, strict=True):
        data = json.loads(codec.dumps(record.data))
        assert {name: data[name] for name in line if name != "kind"} == {
            name: value for name, value in line.items() if name != "kind"
        }


def test_the_whole_record_shown_equals_the_output() -> None:
    """All but `rules`, which is another whenever the bundled windows are."""
    (shown,) = _blocks(RULES_TEXT, "json event")
    before = RULES_TEXT[: RULES_TEXT.index(shown)]
    taken = Deriver(Rules(bundled())).derive(
        InputMessage(_blocks(before, "json message")[-1].encode())
    )
    printed = [json.loads(codec.to_structured(record)) for record in taken.records]
    wanted = json.loads(shown)
    (found,) = [event for event in printed if event["type"] == wanted["type"]]
    assert list(found) == list(wanted)
    assert found | {"rules": ""} == wanted | {"rules": ""}


def test_every_example_is_a_pair() -> None:
    assert len(EXAMPLES) >= 12
    assert len(_blocks(RULES_TEXT, "json message")) == len(EXAMPLES) + 1
    assert len(_blocks(RULES_TEXT, "json record")) == len(EXAMPLES)


def test_every_column_of_the_terminal_is_explained() -> None:
    history = History()
    view = view_of(history.reading(5_000), history.limits(threshold=9_000))
    view = replace(view, identity=replace(view.identity, cwd="/srv/repo"))
    titles = {view.session_id: "a title"}
    tables = (
        sessions_table([view], 0, 1_000, titles),
        live_table([view], 0, 1_000, range(1), titles=titles),
    )
    shown = {
        column.header
        for table in tables
        if isinstance(table, Table)  # without a note below it
        for column in table.columns
    }
    text = (DOCS / "TOP.md").read_text(encoding="utf-8")
    section = text.split("| column | meaning |", 1)[1].split("\n\n", 1)[0]
    names = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)
    explained = {name for row in names for name in row.split(", ")}
    assert shown - explained == set()
    assert shown >= {"Until", "Messages"}


def test_the_entry_of_the_live_feed_has_the_version_of_views() -> None:
    text = (DOCS / "API.md").read_text(encoding="utf-8")
    assert re.findall(r'data: \{"version":(\d+),"record_id"', text) == [str(VIEW_VERSION)]
