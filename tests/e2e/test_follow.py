"""`publish --follow`, `--again`, `--no-text` and live marks, by the command and a real Kafka."""

import asyncio
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from contextgauge.kafka.options import KafkaOptions
from contextgauge.normalise.signals import InputMessage
from contextgauge.window_catalog import bundled
from schemas.messages import OBSERVED_HEADER, OBSERVED_LIVE, SETTINGS_HEADER
from schemas.topics import AGENT_MESSAGES
from streams.core.derivation.rules_config import Rules
from streams.edge.kafka.log import KafkaLog
from streams.flow.derive.deriver import Deriver
from streams.flow.simulator import SimulationOptions, simulate
from streams.ports import LogRecord
from tests.commands import Command, command_environment
from tests.conftest import LONG
from tests.edge.follower_kit import Codex
from tests.flow.derive_kit import until as until_true
from tests.flow.test_publish import everything
from tests.patience import PATIENCE_S

PARTITIONS = 2


@pytest.fixture
def settings(command: Command, kafka: str, topic_prefix: str, tmp_path: Path) -> dict[str, str]:
    """Settings for topics of the test's own, which are there."""
    variables = {
        "BOOTSTRAP_SERVERS": kafka,
        "TOPIC_PREFIX": topic_prefix,
        "PARTITIONS": str(PARTITIONS),
        "STATE_FOLDER": str(tmp_path / "state"),
    }
    created = command("topics", "create", **variables)
    assert created.returncode == 0, created.stderr
    return variables


def sent(settings: dict[str, str]) -> list[LogRecord]:
    """Return what is on the topic, each partition in its order."""

    async def read() -> list[LogRecord]:
        log = KafkaLog(KafkaOptions(settings["BOOTSTRAP_SERVERS"]))
        await log.start()
        try:
            topic = settings.get("TOPIC_PREFIX", "") + AGENT_MESSAGES.name
            return [record for _, record in await everything(log, topic, PARTITIONS)]
        finally:
            await log.stop()

    return asyncio.run(read())


def until(settings: dict[str, str], count: int) -> list[LogRecord]:
    """Wait until so many messages are on the topic."""
    for _ in range(300):
        messages = sent(settings)
        if len(messages) >= count:
            return messages
        time.sleep(0.1)
    raise AssertionError(f"{len(messages)} messages, not {count}")


def entry(number: int) -> str:
    return json.dumps({"type": "user", "session_id": "s", "message": f"a secret word {number}"})


def add(path: Path, *numbers: int) -> None:
    with path.open("a") as target:
        target.write("".join(entry(number) + "\n" for number in numbers))


def is_live(record: LogRecord) -> bool:
    return (OBSERVED_HEADER, OBSERVED_LIVE) in record.headers


def end(process: "subprocess.Popen[str]", by: signal.Signals = signal.SIGTERM) -> str:
    process.send_signal(by)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    return said


@pytest.mark.extended
def test_what_codex_puts_away_is_sent_once(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    codex, other = Codex(tmp_path / "codex"), tmp_path / "codex" / "sessions" / "other.jsonl"
    codex.append(entry(1), entry(2))
    folder = str(tmp_path / "codex" / "sessions")
    process = command.start("publish", "--follow", folder, **settings)
    until(settings, 2)
    numbers = itertools.count(3)
    for step in (Codex.compress, Codex.put_away, Codex.decompress, Codex.compress, Codex.take_back):
        step(codex)
        # Once a line of another file is sent, all before it was seen.
        add(other, number := next(numbers))
        assert len(until(settings, number)) == number
    codex.append(entry(number := next(numbers)))
    records = until(settings, number)
    (last,) = (record for record in records if record.value == entry(number).encode())
    assert is_live(last)
    end(process)
    codex.put_away()
    codex.compress()
    once = command("publish", folder, **settings)
    assert f"{number} lines already sent" in once.stderr
    values = sorted(record.value or b"" for record in sent(settings))
    assert values == sorted(entry(each).encode() for each in range(1, number + 1))


@pytest.mark.extended
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_added_lines_are_sent_live_and_a_second_run_sends_the_rest(
    command: Command, settings: dict[str, str], tmp_path: Path, by: signal.Signals
) -> None:
    folder = tmp_path / "projects"
    folder.mkdir()
    add(folder / "a.jsonl", 1)
    process = command.start("publish", "--follow", str(folder), **settings)
    until(settings, 1)
    add(folder / "a.jsonl", 2)
    add(folder / "b.jsonl", 3)
    until(settings, 3)
    said = end(process, by)
    assert "published 3 messages" in said
    assert '"event": "following"' in said
    add(folder / "a.jsonl", 4)
    once = command("publish", str(folder), **settings)
    assert "published 1 message " in once.stderr
    assert "3 lines already sent" in once.stderr
    records = sent(settings)
    assert [record.value for record in records] == [entry(n).encode() for n in (1, 2, 3, 4)]
    assert [is_live(record) for record in records] == [False, True, True, False]
    again = command("publish", "--again", "--live", str(folder), **settings)
    assert "published 4 messages" in again.stderr
    assert [is_live(record) for record in sent(settings)[4:]] == [True] * 4


@pytest.mark.extended
def test_a_second_publisher_is_refused_and_another_checkpoint_is_not(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    add(path, 1)
    process = command.start("publish", "-f", str(path), **settings)
    until(settings, 1)
    refused = command("publish", str(path), **settings)
    assert refused.returncode == 2
    assert "--checkpoint FILE" in refused.stderr
    own = str(tmp_path / "own.json")
    assert command("publish", str(path), "--checkpoint", own, **settings).returncode == 0
    assert len(sent(settings)) == 2
    end(process)


@pytest.mark.extended
def test_without_text_no_text_is_sent(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    add(path, 1, 2)
    path.write_text(path.read_text() + "a secret word that is no JSON\n")
    result = command("publish", "--no-text", str(path), **settings)
    assert f"{path}:3: not JSON\n" in result.stderr
    assert "1 could not be sent" in result.stderr
    records = sent(settings)
    assert len(records) == 2
    assert not any(b"secret" in (record.value or b"") for record in records)
    command("publish", "--no-text", "--again", str(path), **settings)
    assert {record.value for record in sent(settings)} == {record.value for record in records}


@pytest.mark.extended
def test_a_pipe_is_live_and_a_file_on_standard_input_is_not(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    command("publish", "-", stdin=entry(1) + "\n", **settings)
    command("publish", "--no-live", "-", stdin=entry(2) + "\n", **settings)
    path = tmp_path / "a.jsonl"
    add(path, 3)
    with path.open() as source:
        subprocess.run(
            [sys.executable, "-m", "streams", "publish", "-"],
            env=command_environment(settings),
            stdin=source,
            check=True,
        )
    assert [is_live(record) for record in sent(settings)] == [True, False, False]


@pytest.mark.extended
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_idle_pipe_is_left_at_once(
    command: Command, settings: dict[str, str], tmp_path: Path, by: signal.Signals
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = command.start("publish", str(fifo), **settings)
    with fifo.open("w") as target:
        target.write(entry(1) + "\n")
        target.flush()
        until(settings, 1)
        process.send_signal(by)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + by
    assert "published 1 message " in said
    followed = command("publish", "--follow", str(fifo), **settings)
    assert followed.returncode == 2
    assert "omit --follow" in followed.stderr


@pytest.mark.extended
def test_the_first_malformed_lines_are_reported(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    right = tmp_path / "right.jsonl"
    right.write_text(entry(1) + "\n")
    # Of a known runtime, without a session.
    wrong = '{"type":"user","message":{"role":"user","content":"go"}}\n' * 50 + "no json\n"
    published = command("publish", str(right), "-", stdin=wrong, **settings)
    assert published.returncode == 0
    assert published.stderr.count("no_session: ") == 20
    counted = "51 could not be sent: the first 20 are above; 50 no_session, 1 not_json"
    assert counted in published.stderr


@pytest.mark.extended
@pytest.mark.parametrize("is_piped", [False, True])
def test_what_is_no_transcript_is_reported_as_such(
    command: Command, settings: dict[str, str], tmp_path: Path, *, is_piped: bool
) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Notes\n\n" + "words\n" * 50)
    source, stdin = ("-", path.read_text()) if is_piped else (str(path), "")
    done = command("publish", source, stdin=stdin, **settings)
    assert done.returncode == 1
    assert done.stderr.count(": not JSON\n") == 3
    assert "51 could not be sent: the first 3 are above; 51 not_json" in done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"contextgauge: {source}: no line (of 51) could be sent: this does not look like a "
        "transcript"
    )
    if not is_piped:
        again = command("publish", str(path), **settings)
        assert (again.returncode, "already sent or rejected" in again.stderr) == (0, True)


@pytest.mark.extended
def test_a_recreated_topic_gets_everything_again(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    add(path, 1)
    command("publish", str(path), **settings)
    topic = settings["TOPIC_PREFIX"] + AGENT_MESSAGES.name
    asyncio.run(_delete_topic(settings["BOOTSTRAP_SERVERS"], topic))
    assert command("topics", "create", **settings).returncode == 0
    result = command("publish", str(path), **settings)
    assert "recreated" in result.stderr
    assert "published 1 message " in result.stderr


async def _delete_topic(kafka: str, topic: str) -> None:
    log = KafkaLog(KafkaOptions(kafka))
    await log.start()
    async with log.asking("deleting") as admin:
        await admin.delete_topics([topic])

    async def is_gone() -> bool:
        return (await log.partition_counts([topic]))[topic] is None

    await until_true(is_gone)
    await log.stop()


def wait_for(done: Callable[[], bool]) -> None:
    for _ in range(600):
        if done():
            return
        time.sleep(0.05)
    raise AssertionError("the publisher does not catch up")


def read_up_to(path: Path, checkpoint: Path) -> int:
    """Return up to where the file that has this name now was sent; -1 where it is not known."""
    if not checkpoint.exists():
        return -1
    inode = path.stat().st_ino
    positions = json.loads(checkpoint.read_bytes())["files"]
    return next((position["offset"] for position in positions if position["inode"] == inode), -1)


@pytest.mark.extended
@pytest.mark.has_long_form
def test_a_publisher_killed_at_random_leaves_nothing_out(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    dice = random.Random(os.environ.get("CHAOS_SEED", "1"))  # noqa: S311 -- a test's course
    path, checkpoint = tmp_path / "log.jsonl", tmp_path / "checkpoint.json"
    arguments = ("publish", "-f", str(path), "--checkpoint", str(checkpoint))
    messages = simulate(SimulationOptions(seed=4, sessions=8, providers=("claude",)))
    written: list[bytes] = []
    process = command.start(*arguments, **settings)
    for turn in range(200 if LONG else 12):
        for _ in range(dice.randrange(1, 40)):
            line = next(messages).named()
            written.append(line)
            with path.open("ab", buffering=0) as target:
                target.write(line + b"\n")
        time.sleep(dice.uniform(0.0, 0.6))
        if dice.random() < 0.4:
            # Of two files that came and went unseen only one would be found again.
            wait_for(lambda: read_up_to(path, checkpoint) > 0)
            path.rename(tmp_path / f"log.{turn}")
        if dice.random() < 0.5:
            process.kill()
            process.communicate()
            process = command.start(*arguments, **settings)
    path.touch()
    wait_for(lambda: read_up_to(path, checkpoint) == path.stat().st_size)
    end(process)
    records = sent(settings)
    right, actual = (Deriver(Rules(bundled())) for _ in range(2))
    expected = [r.id for line in written for r in right.derive(InputMessage(line)).records]
    derived = [
        r.id
        for record in records
        for r in actual.derive(
            InputMessage(record.value or b"", (record.key or b"").decode())
        ).records
    ]
    assert sorted(derived) == sorted(expected)
    assert {record.value for record in records} == set(written)


@pytest.mark.extended
def test_the_runtimes_settings_go_with_a_line_that_is_written_meanwhile(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text('{"autoCompactWindow": 150000}')
    command.environment["HOME"] = str(home)
    usage = {"input_tokens": 9, "cache_read_input_tokens": 100_000}

    def answer(number: int) -> str:
        message = {"id": f"m{number}", "model": "claude-sonnet-5", "content": [], "usage": usage}
        line = {"type": "assistant", "uuid": f"u{number}", "sessionId": "s", "version": "2.1.300"}
        return json.dumps(line | {"cwd": "/srv", "isSidechain": False, "message": message})

    path = tmp_path / "s.jsonl"
    path.write_text(answer(1) + "\n")
    process = command.start("publish", "--follow", "--no-text", str(path), **settings)
    until(settings, 1)
    with path.open("a") as target:
        target.write(answer(2) + "\n")
    records = until(settings, 2)
    end(process)
    headers = [dict(record.headers).get(SETTINGS_HEADER) for record in records]
    window = {"value": 150_000, "source": "~/.claude/settings.json"}
    assert [header and json.loads(header) for header in headers] == [None, {"window": window}]
    derived = command("replay", "--topic", "messages", **settings)
    facts = [json.loads(line)["data"] for line in derived.stdout.splitlines()]
    published = [each.get("compaction_settings") for each in facts if "runtime_version" in each]
    assert published == [None, {"window": window}]
