"""R32: sessions of opencode before 1.2: a JSON file for each session, message and part."""

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from contextgauge.normalise.opencode import stored
from schemas.records import CompactBoundary, CompactionStart, CompactionSummary, SessionInfo
from streams.edge.files import joined
from streams.edge.files.opening import open_content
from streams.edge.files.session_files import SessionFiles
from streams.edge.files.watch import TranscriptFinder
from tests.core.given import every, one
from tests.edge.test_origins import derived
from tests.runtimes.documents_kit import Body, Publishing
from tests.runtimes.opencode_database import BEGIN_MS, OpencodeDatabase
from tests.runtimes.opencode_storage import HOME, OpencodeStorage
from tests.runtimes.runtimes_kit import boundaries, sizes

SESSION = "ses_1"


@pytest.fixture
def written(tmp_path: Path) -> OpencodeStorage:
    storage = OpencodeStorage(tmp_path)
    storage.session(SESSION)
    return storage


def lines_of(path: Path) -> list[Body]:
    with closing(open_content(str(path))) as content:
        return [json.loads(line) for line in content.read(content.size(), 0).splitlines()]


def compacted(storage: OpencodeStorage) -> None:
    """A compaction as of 1.0, which a part asks for, and an earlier one."""
    storage.prompt(SESSION, "Fix the parser")
    storage.answer(SESSION, fresh=1_000, read=150_000)
    asked = storage.message(SESSION, "user", {"type": "compaction", "auto": True})
    storage.answer(SESSION, fresh=152_000, summary=True, parentID=asked)
    storage.prompt(SESSION, "Continue", synthetic=True)
    storage.answer(SESSION, fresh=9_000, read=90_000)
    summary = {"type": "text", "text": "What was"}, {"type": "text", "text": "done."}
    tokens = storage.tokens(100_000)
    storage.said(SESSION, *summary, summary=True, tokens=tokens, parentID="msg_0")
    storage.answer(SESSION, fresh=8_000)


@pytest.mark.parametrize("project", [False, True], ids=["0.6", "0.5"])
def test_a_session_has_sizes_its_model_folder_and_title(tmp_path: Path, project: bool) -> None:
    storage = OpencodeStorage(tmp_path, project=project)
    storage.session(SESSION)
    storage.prompt(SESSION, "Fix the parser")
    storage.answer(SESSION, fresh=100, read=29_900)
    storage.answer(SESSION, fresh=31_000)
    records = derived(tmp_path)
    assert sizes(records) == [(30_000, 200_000), (31_000, 200_000)]
    info = every(records, SessionInfo)[-1]
    facts = (info.session_id, info.runtime, info.runtime_version, info.cwd)
    assert facts == (SESSION, "opencode", "1.0.107", "/repo")
    assert SessionFiles([tmp_path]).titles([SESSION]) == {SESSION: "Parser"}


def test_compactions_are_seen_as_each_version_wrote_them(
    tmp_path: Path, written: OpencodeStorage
) -> None:
    compacted(written)
    records = derived(tmp_path)
    assert sizes(records) == [(151_000, 200_000), (99_000, 200_000), (8_000, 200_000)]
    later, former = boundaries(records)
    assert (later.trigger, later.pre_tokens) == ("auto", 151_000)
    assert later.attempt_id == every(records, CompactionStart)[0].attempt_id
    # Which of both it was, it does not say.
    assert (former.trigger, former.pre_tokens) == (None, 99_000)
    assert former.receipt is not None
    assert former.receipt.summary_input_tokens == 100_000
    assert one(records, CompactionSummary).summary == "What was\ndone."


def test_a_summary_counts_once_it_is_complete_and_also_without_a_usage(
    tmp_path: Path, written: OpencodeStorage
) -> None:
    written.answer(SESSION, fresh=9_000)
    summary = {"type": "text", "text": "What was do"}
    written.said(SESSION, summary, summary=True, time={"completed": None})
    assert boundaries(derived(tmp_path)) == []
    written.said(SESSION, summary, summary=True, tokens=written.tokens(0))
    boundary = one(derived(tmp_path), CompactBoundary)
    assert (boundary.pre_tokens, boundary.receipt) == (9_000, None)


def test_a_subagents_session_is_a_chain_of_the_one_that_it_works_for(
    tmp_path: Path, written: OpencodeStorage
) -> None:
    written.answer(SESSION, fresh=100)
    written.session("ses_2", parent=SESSION)
    written.answer("ses_2", fresh=200)
    written.session("ses_3", parent="ses_2")
    written.answer("ses_3", fresh=300)
    written.session("ses_4", parent="ses_deleted")
    written.answer("ses_4", fresh=400)
    records = derived(tmp_path)
    chains = {(each.data.session_id, each.data.chain) for each in records if each.data.chain}
    assert chains == {(SESSION, "main"), (SESSION, "ses_2"), (SESSION, "ses_3"), ("ses_4", "main")}


def test_what_a_fork_copied_is_the_other_sessions(tmp_path: Path, written: OpencodeStorage) -> None:
    written.session("ses_fork")
    written.answer("ses_fork", fresh=100, time={"created": BEGIN_MS - 1})
    written.answer("ses_fork", fresh=120)
    assert [used for used, _ in sizes(derived(tmp_path))] == [120]


@pytest.mark.parametrize("has_files", [False, True])
def test_a_database_that_took_them_has_the_same_lines_in_the_same_order(
    tmp_path: Path, written: OpencodeStorage, has_files: bool
) -> None:
    compacted(written)
    session = tmp_path / f"{written.sessions}/{SESSION}.json"
    former = lines_of(session)
    files = derived(tmp_path)
    folder = tmp_path / HOME if has_files else tmp_path / "other"
    database = OpencodeDatabase(folder / "opencode.db", begin_ms=BEGIN_MS + 90_000_000)
    written.move_into(database)
    assert lines_of(database.path) == former
    database.answer(SESSION, fresh=20_000)
    assert lines_of(database.path)[:-1] == former
    # What is in both is read from the database, and counts once.
    later = derived(tmp_path)
    assert sizes(later) == [*sizes(files), (20_000, 200_000)]
    assert len(boundaries(later)) == 2
    sources = TranscriptFinder((), [str(folder)]).look(0.0)
    assert [each.place for each in sources] == [str(database.path)]
    database.close()


def test_the_time_of_a_part_is_in_its_id(tmp_path: Path, written: OpencodeStorage) -> None:
    written.answer(SESSION, fresh=100)
    (line,) = lines_of(tmp_path / f"{written.sessions}/{SESSION}.json")
    assert line["timestamp"] == BEGIN_MS + 6_000


@pytest.mark.parametrize(
    ("part", "time", "written_ms"),
    [
        # Its bits begin again every two years.
        ("prt_000000005001x", {"created": (1 << 36) - 2, "completed": 1 << 38}, (1 << 36) + 5),
        ("prt_000000005001x", {"created": (1 << 36) + 9}, (1 << 36) + 9),
        ("prt_own", {"created": 7, "completed": 9}, 9),
        ("prt_own", {"created": 7}, 7),
    ],
)
def test_a_time_is_within_its_messages(part: str, time: Body, written_ms: int) -> None:
    message: Body = {"id": "m", "role": "user", "time": time}
    text: Body = {"id": part, "messageID": "m", "type": "text", "text": "go"}
    (line,) = stored.lines("opencode", {"id": SESSION}, [[message], [text], []])
    assert line["timestamp"] == written_ms


def test_kilos_are_known_by_their_folder(tmp_path: Path) -> None:
    storage = OpencodeStorage(tmp_path, ".local/share/kilo")
    storage.session(SESSION)
    storage.answer(SESSION, fresh=100)
    assert one(derived(tmp_path), SessionInfo).runtime == "kilo"


def test_only_sessions_are_listed_and_what_is_new_is_sent(
    tmp_path: Path, written: OpencodeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []

    def noting(path: str) -> list[str]:
        listed.append(path)
        return list_folder(path)

    list_folder = os.listdir
    monkeypatch.setattr(os, "listdir", noting)
    written.answer(SESSION, fresh=100)
    publishing = Publishing(tmp_path)
    assert len(publishing.sent()) == 1
    look = TranscriptFinder((), [str(tmp_path)]).look
    listed.clear()
    assert [Path(each.place).name for each in look(0.0)] == [f"{SESSION}.json"]
    # The thousands of parts are not looked at before the session has changed.
    assert not [each for each in listed if "/part/" in each]
    written.answer(SESSION, fresh=120)
    (line,) = publishing.sent()
    assert line["part"]["tokens"]["input"] == 120
    assert publishing.sent() == []


def test_a_session_of_too_many_bytes_is_reported(
    tmp_path: Path, written: OpencodeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined, "HELD_LINE_BYTES", 2_000)
    written.answer(SESSION, fresh=100)
    publishing = Publishing(tmp_path)
    assert len(publishing.sent()) == 1
    for _ in range(3):  # what tools returned counts for nothing
        written.answer(SESSION, fresh=100)
    assert publishing.sent() == []
    (text,) = publishing.reported
    assert f"the files of {SESSION}.json have more than 2,000 bytes" in text
