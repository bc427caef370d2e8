"""What docs/ALERTS.md says to try works when it is done word by word."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.commands import Command, command_environment
from tests.docs.test_docs import DOCS, _blocks, _section
from tests.flow.derive_kit import until

pytestmark = pytest.mark.extended

TRY_IT = _section((DOCS / "ALERTS.md").read_text(encoding="utf-8"), "Try it")


async def test_the_documented_commands_deliver_alerts(
    kafka: str, prefix: str, command: Command, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    for name, info in (("receive.py", "python"), ("try.toml", "toml")):
        (text,) = _blocks(TRY_IT, info)
        assert "8765" in text
        (tmp_path / name).write_text(text.replace("8765", port))
    settings = {
        "BOOTSTRAP_SERVERS": kafka,
        "TOPIC_PREFIX": prefix,
        "GROUP_PREFIX": prefix,
        "STATE_FOLDER": str(tmp_path / "state"),
        "PARTITIONS": "2",
    }
    assert command("topics", "create", **settings).returncode == 0
    command.start_logging(tmp_path / "derive", "derive", **settings)
    (script,) = _blocks(TRY_IT, "shell")
    environment = command_environment(settings)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    seen = tmp_path / "seen"
    with seen.open("w") as target, (tmp_path / "errors").open("w") as errors:
        shell = await asyncio.create_subprocess_exec(
            *("bash", "-ec", script + "wait"),
            cwd=tmp_path,
            env=environment,
            stdout=target,
            stderr=errors,
            start_new_session=True,
        )

        async def all_kinds() -> bool:
            assert shell.returncode is None, (tmp_path / "errors").read_text()
            return {"test", "pressure", "failed", "exhausted"} <= set(_kinds(seen))

        try:
            await until(all_kinds)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
            await shell.wait()
    assert "✓ here: it answered 204" in seen.read_text()


def _kinds(seen: Path) -> Counter[str]:
    lines = [line for line in seen.read_text().splitlines() if line.startswith("{")]
    return Counter(json.loads(line)["kind"] for line in lines)
