"""The demo: everything goes through, a compaction is shown whole, and nothing is left running."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.commands import Command
from tests.patience import PATIENCE_S

STOPPED = "everything is stopped"


def _processes_of(folder: Path) -> list[str]:
    """Return the ids of processes whose arguments, environment or working folder names a folder.

    Redis writes another text over its arguments.
    """
    return sorted(
        process.name
        for process in Path("/proc").glob("[0-9]*")
        if os.fsencode(folder) in _described(process)
    )


def _described(process: Path) -> bytes:
    """Return what a process is run with; nothing where it has ended, or is another user's."""
    try:
        started = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        return started + os.fsencode((process / "cwd").readlink())
    except OSError:
        return b""


def _shown(output: str, *parts: str) -> None:
    missing = [part for part in parts if part not in output]
    assert not missing, output


LOG_LINE = re.compile(r"\[(debug|info|warning|error) *\]|Traceback|never retrieved")
COMPACTION = re.compile(r"Compaction #\d+ \(\w+\) took [\d.]+ \w+.*: [\d,]+ → [\d,]+ tokens")


@pytest.mark.extended
@pytest.mark.usefixtures("stack_parts")
def test_simulated_sessions_go_through_kafka_and_redis(command: Command, tmp_path: Path) -> None:
    command.environment |= {"TMPDIR": str(tmp_path)}
    done = command("demo")
    assert done.returncode == 0, done.stderr
    _shown(
        done.stdout,
        "Kafka is ready at 127.0.0.1:",
        "Redis is ready at redis://",
        "messages of 12 sessions became",
        "compaction_complete",
        STOPPED,
        "Try next",
    )
    assert COMPACTION.search(done.stdout)
    assert "unknown → unknown" not in done.stdout
    assert not list(tmp_path.glob("contextgauge-demo-*"))
    assert not _processes_of(tmp_path)


def path_without(folder: Path, *programs: str) -> str:
    """Return a search path with all programs of this one's but some.

    The first of a name counts, as in a search; folders and dangling links are no programs.
    """
    programs_on_path: dict[str, str] = {}
    for part in os.environ["PATH"].split(os.pathsep):
        for program in Path(part).absolute().glob("*"):
            if program.is_file():
                programs_on_path.setdefault(program.name, str(program))
    folder.mkdir()
    for name in programs_on_path.keys() - set(programs):
        (folder / name).symlink_to(programs_on_path[name])
    return str(folder)


def test_a_search_path_may_name_folders_twice_and_hold_more_than_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, merged = (tmp_path / name for name in ("first", "second", "merged"))
    first.mkdir()
    second.mkdir()
    merged.symlink_to(first)
    for program in (first / "java", first / "sh", second / "sh", second / "redis-server"):
        program.write_text(str(program))
    (first / "X11").symlink_to(".")
    (first / "folder").mkdir()
    (first / "gone").symlink_to("nothing")
    folders = [first, merged, tmp_path / "missing", second]
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))
    made = Path(path_without(tmp_path / "bin", "java"))
    assert {each.name for each in made.iterdir()} == {"redis-server", "sh"}
    assert (made / "sh").read_text() == str(first / "sh")


@pytest.mark.extended
@pytest.mark.parametrize("missing", ["java", "redis-server"])
def test_without_a_part_the_demo_runs_embedded(
    command: Command, tmp_path: Path, missing: str
) -> None:
    if missing == "redis-server" and shutil.which("java") is None:
        pytest.skip("no java either: it would be named first")
    path = path_without(tmp_path / "bin", missing)
    command.environment |= {"TMPDIR": str(tmp_path), "PATH": path}
    done = command("demo")
    assert done.returncode == 0, done.stderr
    remedy = next(line for line in done.stdout.splitlines() if line.startswith("!"))
    assert missing in remedy
    assert "apt-get install" in remedy
    _shown(done.stdout, "running embedded", "messages of 12 sessions became", STOPPED)
    # Everything is stopped, so no command can read a session.
    assert "contextgauge events" not in done.stdout
    rows = re.findall(r"^[0-9a-f]{8}-.*", done.stdout, re.MULTILINE)
    assert len(rows) == 12
    assert all(re.search(r" (now|\d+ \w+ ago|unknown) *$", row) for row in rows)
    assert COMPACTION.search(done.stdout)
    assert not done.stderr
    assert not LOG_LINE.search(done.stdout)
    assert not _processes_of(tmp_path)


@pytest.mark.extended
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_embedded_demo_that_is_interrupted_ends_without_a_traceback(
    command: Command, tmp_path: Path, ending: signal.Signals
) -> None:
    many = tmp_path / "many.jsonl"
    command("simulate", "--sessions", "50", "--messages", "20000", "--out", str(many))
    command.environment |= {"PATH": path_without(tmp_path / "bin", "java")}
    process = command.start("demo", str(many))
    assert process.stdout is not None
    for line in process.stdout:
        if "worker are running" in line:
            break
    process.send_signal(ending)
    shown, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + ending, errors
    assert "stopping everything" in shown
    assert not errors
    assert not LOG_LINE.search(shown)


@pytest.mark.extended
def test_the_demo_runs_on_given_transcripts(command: Command, tmp_path: Path) -> None:
    own = tmp_path / "projects"
    made = command("simulate", "--sessions", "3", "--turns", "5", "--out", str(own))
    assert made.returncode == 0, made.stderr
    path = path_without(tmp_path / "bin", "java")
    command.environment |= {"PATH": path}
    done = command("demo", str(own))
    assert done.returncode == 0, done.stderr
    _shown(done.stdout, "messages of 3 sessions became", STOPPED)


@pytest.mark.extended
def test_a_file_without_a_session_is_an_error(command: Command, tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes\n\nNone of these lines is a message.\n")
    command.environment |= {"PATH": path_without(tmp_path / "bin", "java")}
    done = command("demo", str(notes))
    assert done.returncode == 1
    assert f"{notes} has no session: no line (of 2) " in done.stderr
    assert "Sessions" not in done.stdout


@pytest.mark.extended
def test_a_missing_path_starts_no_service(command: Command, tmp_path: Path) -> None:
    done = command("demo", str(tmp_path / "none"))
    assert done.returncode == 2
    assert "starting" not in done.stdout


@pytest.mark.extended
@pytest.mark.usefixtures("stack_parts")
@pytest.mark.parametrize(
    ("moment", "ending"),
    [
        ("starting Redis", signal.SIGHUP),
        ("worker are running", signal.SIGINT),
        ("stopping Kafka", signal.SIGTERM),
    ],
)
def test_a_demo_that_is_interrupted_leaves_nothing(
    command: Command, tmp_path: Path, moment: str, ending: signal.Signals
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command.environment |= {"TMPDIR": str(temporary)}
    process = command.start("demo")
    assert process.stdout is not None
    for line in process.stdout:
        if moment in line:
            break
    assert _processes_of(temporary)
    process.send_signal(ending)
    shown, errors = process.communicate(timeout=PATIENCE_S)
    assert not errors
    assert not LOG_LINE.search(shown)
    # Once everything is being stopped, a signal has nothing left to do.
    assert process.returncode in {128 + ending, 0 if "stopping" in moment else 128 + ending}
    assert not _processes_of(temporary)
    assert not list(temporary.iterdir())


@pytest.mark.extended
def test_an_embedded_demo_serves_the_page_on_another_port_than_a_taken_one(
    command: Command, tmp_path: Path
) -> None:
    command.environment |= {"PATH": path_without(tmp_path / "bin", "redis-server", "java")}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        demo = command.start("demo", "--serve", SERVE_PORT=port, SERVE_TOKENS_FILE="/none")
        before, line = _until(demo, "the page is at ")
    address = line.split("the page is at ")[1].split(",")[0]
    assert "running embedded" in before
    assert f"port {port} is taken" in before
    assert "<title>contextgauge" in httpx.get(address).text
    answer = httpx.get(f"{address}v1/sessions").json()
    assert len(answer["sessions"]) == 12
    assert httpx.get(f"{address}readyz").status_code == 200
    with httpx.stream("GET", f"{address}v1/stream", timeout=PATIENCE_S) as stream:
        assert next(stream.iter_lines())
        demo.send_signal(signal.SIGINT)
        said, errors = demo.communicate(timeout=PATIENCE_S)
    assert (demo.returncode, errors) == (0, "")
    _shown(said, STOPPED, "Try next")
    assert not LOG_LINE.search(before + said)


@pytest.mark.extended
@pytest.mark.usefixtures("stack_parts")
def test_with_serve_it_serves_the_page_until_interrupted(command: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command.environment |= {"TMPDIR": str(tmp_path), "CONTEXTGAUGE_SERVE_PORT": str(port)}
    command.environment |= {"CONTEXTGAUGE_SERVE_HOST": "no.such.address.invalid"}
    demo = command.start("demo", "--serve")
    try:
        before, line = _until(demo, "the page is at ")
        address = line.split("the page is at ")[1].split(",")[0]
        assert f":{port}/" in address
        assert "is taken" not in before
        assert "<title>contextgauge" in httpx.get(address).text
        sessions = httpx.get(f"{address}v1/sessions").json()["sessions"]
        assert len(sessions) == 12
        # What it tells to export is all that the other commands need.
        exported = [shlex.split(_until(demo, "export ")[1])[1] for _ in range(2)]
        exports = dict(line.removeprefix("CONTEXTGAUGE_").split("=", 1) for line in exported)
        assert command("status", sessions[0]["session_id"], **exports).returncode == 0
        assert command("topics", "list", **exports).returncode == 0
        assert _processes_of(tmp_path)
        demo.send_signal(signal.SIGINT)
        said, _ = demo.communicate(timeout=PATIENCE_S)
    finally:
        # Not killed: what it started would stay.
        demo.terminate()
        demo.wait(timeout=PATIENCE_S)
    assert demo.returncode == 0, said
    _shown(said, "stopping Kafka", STOPPED, "Try next")
    assert not _processes_of(tmp_path)
    assert not list(tmp_path.glob("contextgauge-demo-*"))


def _until(demo: subprocess.Popen[str], part: str) -> tuple[str, str]:
    """Return the demo's next line of output with some words in it, behind what was before it."""
    assert demo.stdout is not None
    seen: list[str] = []
    for line in demo.stdout:
        if part in line:
            return "".join(seen), line
        seen.append(line)
    raise AssertionError("".join(seen))
