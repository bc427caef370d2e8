"""`contextgauge control --check` and what is wrong before a worker starts."""

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web

from streams.edge.alerts.webhooks import signature_of
from tests.commands import Command
from tests.web_kit import web_server

RULES = """\
[[targets]]
name = "ops"
url = "https://hooks.example/secret-path"

[[rules]]
name = "full"
when = "pressure"
at_percent = 85
models = ["claude-*", "!*haiku*"]
targets = ["ops"]

[[rules]]
name = "bad"
when = "failed"
targets = ["ops"]

[[rules]]
name = "silent"
when = "stalled"
after = "150s"
targets = ["ops"]

[[rules]]
name = "often"
when = "thrash"
count = 3
within = "1h"
targets = ["ops"]

[[rules]]
name = "no room"
when = "exhausted"
reasons = ["prompt_too_long"]
targets = ["ops"]
"""


def test_check_lists_the_rules_of_a_file(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text(RULES)
    done = command("control", "--check", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "alerts.toml: 5 rules, 1 target; no alerts on what is older than 15 min\n"
        "  full: 85% of a window used, models claude-* !*haiku* → ops\n"
        "  bad: a compaction blocked or failed → ops\n"
        "  silent: a compaction silent for 150 s → ops\n"
        "  often: 3 compactions within 1 h → ops\n"
        "  no room: no room left (prompt_too_long) → ops\n"
    )


def test_faults_are_reported_with_their_lines_and_exit_2(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text(RULES.replace("at_percent = 85", "at_percent = 850").replace("1h", "hour"))
    done = command("control", "--check", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "contextgauge: alerts.toml:8: at_percent is 850: give a whole number, 1 to 100",
        (
            'contextgauge: alerts.toml:27: within is \'hour\': give a time such as "90s", "10m" or '
            '"2h", 1s to 1d'
        ),
    ]
    assert "secret-path" not in done.stderr


def test_without_rules_the_remedy_is_shown(command: Command) -> None:
    done = command("control")
    assert done.returncode == 2
    assert "pass --rules FILE, or set CONTEXTGAUGE_ALERTS_FILE" in done.stderr


@pytest.mark.extended
def test_a_missing_topic_is_reported(
    command: Command, tmp_path: Path, kafka: str, prefix: str
) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text(RULES)
    done = command("control", "--rules", str(file), BOOTSTRAP_SERVERS=kafka, TOPIC_PREFIX=prefix)
    assert done.returncode == 2
    assert "create what is missing with `contextgauge topics create`" in done.stderr


class Hook:
    """A webhook server: it answers what a path says, and keeps what it was sent."""

    def __init__(self) -> None:
        self.taken: dict[str, tuple[dict[str, str], bytes]] = {}

    async def handle(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.taken[request.path] = headers, await request.read()
        return web.Response(status=int(request.path.removeprefix("/")))


TARGETS = """
page = "https://ctx.example/"

[[targets]]
name = "ops"
url = "{url}/204"
secret_env = "OPS_SECRET"

[[targets]]
name = "chat"
format = "slack"
url = "{url}/{status}"

[[targets]]
name = "gone"
url = "{gone}"

[[rules]]
name = "full"
when = "pressure"
at_percent = 85
targets = ["ops", "chat", "gone"]
"""


@pytest.mark.extended
async def test_each_target_gets_a_test_alert_and_its_answer_is_shown(
    command: Command, tmp_path: Path
) -> None:
    file, hook = tmp_path / "alerts.toml", Hook()
    command.environment |= {"OPS_SECRET": "s3cret"}
    async with web_server(hook.handle) as url:
        file.write_text(TARGETS.format(url=url, status=403, gone="http://127.0.0.1:1/secret-path"))
        done = await asyncio.to_thread(command, "control", "--test", str(file))
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.splitlines() == [
            "✓ ops: it answered 204",
            "✗ chat: it answered 403",
            "✗ gone: it cannot be reached: the connection was refused",
        ]
        headers, body = hook.taken["/204"]
        at_s, alert_id = headers["webhook-timestamp"], headers["webhook-id"]
        signed = signature_of(b"s3cret", alert_id, int(at_s), body)
        assert headers["webhook-signature"] == signed
        document = json.loads(body)
        assert (document["id"], document["kind"], document["rule"]) == (alert_id, "test", "test")
        assert (document["type"], document["link"]) == (
            "contextgauge.alert.v1",
            "https://ctx.example/",
        )
        assert "this is a test" in document["text"]
        slack_headers, slack = hook.taken["/403"]
        assert slack_headers["webhook-id"] != alert_id
        assert json.loads(slack)["text"].startswith("test: this is a test")
        assert b"<https://ctx.example/|open the page>" in slack

        file.write_text(TARGETS.format(url=url, status=200, gone=f"{url}/202"))
        done = await asyncio.to_thread(command, "control", "--test", str(file))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("✓") == 3
        assert hook.taken["/204"][0]["webhook-id"] != alert_id, "an id of its own each time"


@pytest.mark.extended
def test_a_test_needs_a_file_that_is_right(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text(TARGETS.format(url="http://127.0.0.1:1", status=200, gone="http://x"))
    done = command("control", "--test", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert "secret_env names OPS_SECRET, which is not set: set it" in done.stderr
    both = command("control", "--test", str(file), "--check", str(file))
    assert both.returncode == 2
    assert "choose one of the two" in both.stderr
