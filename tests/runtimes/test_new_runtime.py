"""A runtime that the product has never seen works everywhere once its one folder is there.

`muse.py` is put into a copy of the product as that folder, and nothing else is changed.
"""

import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SESSION = "c-0198"
WORDS = "Meier's contract"


def line(kind: str, minute: int, **fields: object) -> dict[str, object]:
    time = f"2026-11-01T12:{minute:02}:00Z"
    return {"type": kind, "conversation": SESSION, "at": time, **fields}


def answer(minute: int, prompt: int, **fields: object) -> dict[str, object]:
    spent = {"prompt": prompt, "cached": 9_000, "written": 40}
    own = {"ref": f"m{minute}", "after": f"m{minute - 1}", "model": "muse-1"}
    return line("assistant", minute, words="Done.", spent=spent, **own | fields)


LINES = (
    line("muse.begin", 0, release="3.1", place="/repo", model="muse-1", room=150_000),
    line("user", 1, ref="m1", after=None, words=f"Fix the parser of {WORDS}"),
    answer(2, 90_000),
    answer(2, 30_000, worker="w1", aside=True),
    line("muse.squeeze", 3, ref="m3", why="full", before=90_040, left=8_000, words=f"On {WORDS}"),
    line("user", 4, ref="m4", after="m3", words="Go on"),
    answer(5, 12_000),
)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product with one more folder."""
    copy = tmp_path_factory.mktemp("product")
    for package in ("contextgauge", "streams", "schemas"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, copy / package, ignore=ignored)
    folder = copy / "contextgauge/normalise/muse"
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("muse.py"), folder / "__init__.py")
    return copy


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return written(tmp_path / ".muse/logs/notes.jsonl", *map(json.dumps, LINES))


def written(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{each}\n" for each in lines))
    return path


def run(product: Path, *arguments: str, **variables: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=product,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def records(product: Path, path: Path) -> list[dict[str, Any]]:
    output = run(product, "-m", "streams", "replay", str(path))
    return [json.loads(each) for each in output.splitlines()]


def figures(records: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return what records say but for texts and what they are identified by."""
    names = ("used_tokens", "window", "pre_tokens", "post_tokens", "trigger", "runtime", "cwd")
    return [
        (each["type"], each["subject"], each["time"], *map(each["data"].get, names))
        for each in records
    ]


def test_it_is_derived(product: Path, transcript: Path) -> None:
    derived = records(product, transcript)
    data = {each["type"].split(".")[1]: each["data"] for each in derived}
    sizes = [
        (each["subject"], each["data"]["used_tokens"], each["data"]["window"])
        for each in derived
        if "context_reading" in each["type"]
    ]
    assert {each["data"]["session_id"] for each in derived} == {SESSION}
    assert sizes == [("main", 90_000, 150_000), ("w1", 30_000, 150_000), ("main", 12_000, 150_000)]
    assert (data["session_info"]["runtime"], data["session_info"]["cwd"]) == ("muse", "/repo")
    boundary = data["compact_boundary"]
    assert (boundary["pre_tokens"], boundary["post_tokens"]) == (90_040, 8_000)
    assert (boundary["trigger"], data["compaction_summary"]["summary"]) == ("auto", f"On {WORDS}")


PUBLISHED = """
import json, sys
from pathlib import Path
from contextgauge.containers import Line
from contextgauge.delivery.privacy import strip_text
from contextgauge.delivery.shorten import fit

for number, value in enumerate(Path(sys.argv[1]).read_bytes().splitlines()):
    line = Line("f", number, value, len(value), None)
    made = strip_text(line, b"key").value if sys.argv[2] == "no-text" else fit(line, 1_500)
    print(made.decode())
"""


@pytest.mark.parametrize("form", ["no-text", "shortened"])
def test_it_is_published_with_the_same_figures(product: Path, tmp_path: Path, form: str) -> None:
    padded = [{**each, "words": f"{each.get('words')} {WORDS * 200}"} for each in LINES]
    long = written(tmp_path / "long.jsonl", *map(json.dumps, padded))
    output = run(product, "-c", PUBLISHED, str(long), form)
    assert (WORDS in output) is (form == "shortened")
    assert max(map(len, output.splitlines())) <= 1_500
    published = written(tmp_path / "published.jsonl", *output.splitlines())
    assert figures(records(product, published)) == figures(records(product, long))


CONVERSATION = """
import sys
from pathlib import Path
from contextgauge.compaction.reading.lines import reduced
from contextgauge.compaction.reading.transcripts import read_conversation
from contextgauge.json_codec import loads

value = Path(sys.argv[1]).read_bytes()
for line in map(reduced, map(loads, value.splitlines())):
    assert line is None or reduced(line) == line
read = read_conversation(value)
print(read.window_tokens, *(f"{each.role}: {each.text}" for each in read.request.messages), sep="|")
"""


def test_its_conversation_is_what_the_model_sees(product: Path, transcript: Path) -> None:
    output = run(product, "-c", CONVERSATION, str(transcript)).strip()
    window, summary, *messages = output.split("|")
    assert (window, messages) == ("150000", ["user: Go on", "assistant: Done."])
    assert WORDS in summary


def test_its_files_are_found_and_listed(product: Path, transcript: Path) -> None:
    home = str(transcript.parents[2])
    listed = run(product, "-m", "streams", "sessions", "--json", HOME=home)
    (session,) = json.loads(listed)
    assert session["session_id"] == SESSION
    assert session["identity"]["runtime"] == "muse"


def test_it_is_listed_among_the_runtimes(product: Path, transcript: Path) -> None:
    home = str(transcript.parents[2])
    written(transcript.with_name("drafts.jsonl"), "{}")
    listed = json.loads(run(product, "-m", "streams", "runtimes", "--json", HOME=home))
    (muse,) = (each for each in listed if each["name"] == "Muse")
    assert (muse["runtime"], muse["folders"]) == ("muse", [str(transcript.parent)])
    assert (muse["sessions"], muse["figures"]["window"]) == (1, "measured")


def test_the_page_offers_it(product: Path) -> None:
    page = "from streams.serve.api.page import read_page; print(read_page().first.decode())"
    first = run(product, "-c", page)
    assert re.search(r'name="runtimes" content="[^"]* muse\b', first)
    content = re.search(r'name="figures" content="([^"]*)"', first)
    assert content is not None
    titles, *rows = json.loads(html.unescape(content[1]))
    assert (titles[4], rows[2][0], rows[2][4]) == ("Muse", "Window", "reported")


def test_the_pages_server_shows_it(product: Path, transcript: Path, tmp_path: Path) -> None:
    view = subprocess.Popen(
        [sys.executable, "-m", "streams", "view", str(transcript), "--port", "0", "--titles"],
        cwd=product,
        env=os.environ | {"CONTEXTGAUGE_STATE_FOLDER": str(tmp_path / "state")},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert view.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:\d+/", view.stdout.readline())
        assert address is not None
        sessions: list[Any] = []
        while not sessions:
            with urllib.request.urlopen(f"{address[0]}v1/sessions?runtime=muse") as response:
                sessions = json.load(response)["sessions"]
        with urllib.request.urlopen(f"{address[0]}v1/sessions/{SESSION}") as response:
            session = json.load(response)
    finally:
        os.kill(view.pid, signal.SIGINT)
        view.wait()
    assert (sessions[0]["session_id"], sessions[0]["title"]) == (SESSION, LINES[1]["words"])
    main = session["session"]["chains"]["main"]
    assert (main["used_tokens"], main["window"]) == (12_000, 150_000)


def test_schemas_list_it_after_the_released_ones(product: Path, tmp_path: Path) -> None:
    run(product, "-m", "streams", "schemas", "--folder", str(tmp_path))
    text = (tmp_path / "session_info.v1.json").read_text()
    released = (ROOT / "schemas/json/session_info.v1.json").read_text()
    assert re.sub(r',\s+"muse"', "", text) == released
