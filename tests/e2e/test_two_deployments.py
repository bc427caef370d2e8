"""Two deployments by mistake on one key prefix: the second is refused, and the first goes on."""

import asyncio
import json
import subprocess

import pytest

from streams.cli.exits import Exit
from tests.commands import Command
from tests.flow.derive_kit import until
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.extended


def _session(name: str) -> str:
    usage = {"input_tokens": 1_000, "output_tokens": 10}
    message = {"id": "m", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage}
    body = {"type": "assistant", "uuid": f"{name}-1", "session_id": name, "message": message}
    return json.dumps(body) + "\n"


async def _end(worker: "subprocess.Popen[str]") -> tuple[int, str]:
    _, errors = await asyncio.wait_for(asyncio.to_thread(worker.communicate), PATIENCE_S)
    return worker.returncode, errors


async def test_a_second_deployment_is_refused_until_it_claims_the_keys(
    command: Command, settings: dict[str, str]
) -> None:
    prefix = settings["TOPIC_PREFIX"]
    first = settings
    second = settings | {"TOPIC_PREFIX": f"{prefix}b.", "GROUP_PREFIX": f"{prefix}b."}
    for own in (first, second):
        assert command("topics", "create", **own).returncode == 0

    async def has(name: str, own: dict[str, str]) -> bool:
        shown = await asyncio.to_thread(lambda: command("sessions", "--json", **own))
        return shown.returncode == 0 and name in shown.stdout

    for own, name in ((first, "of-the-first"), (second, "of-the-second")):
        command.start("derive", **own)
        sent = command("publish", "--no-live", "-", stdin=_session(name), **own)
        assert sent.returncode == 0, sent.stderr
    project = command.start("project", **first)
    await until(lambda: has("of-the-first", first))

    code, errors = await _end(command.start("project", **second))
    assert code == Exit.WRONG
    assert f"{prefix}context.events" in errors
    assert "CONTEXTGAUGE_KEY_PREFIX" in errors
    refused = command("sessions", **second)
    assert refused.returncode == Exit.WRONG
    assert "contextgauge rebuild --claim" in refused.stderr
    server = command.start("serve", "--port", "0", **second)
    assert (await _end(server))[0] == Exit.WRONG
    named = json.loads(command("doctor", "--json", **second).stdout)
    (check,) = [each for each in named["checks"] if each["id"] == "views.deployment"]
    assert check["severity"] == "error"
    assert await has("of-the-first", first)
    assert project.poll() is None

    assert command("rebuild", "--claim", **second).returncode == 0
    code, errors = await _end(project)  # the first one's worker notices, and ends
    assert code == Exit.WRONG
    assert f"{prefix}b.context.events" in errors
    command.start("project", **second)
    await until(lambda: has("of-the-second", second))
    assert command("sessions", **first).returncode == Exit.WRONG
