"""The examples of LIBRARY.md run as they stand; SDKs that need an account have stand-ins here."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from contextgauge import PublisherStats, WhenFull
from contextgauge.delivery.background import Fate
from contextgauge.window_catalog import bundled
from schemas.records import Record
from streams.core.derivation.rules_config import Rules
from streams.flow.derive.deriver import Deriver, input_message
from tests.commands import command_environment
from tests.docs.test_docs import DOCS, _blocks, _rows, _section
from tests.e2e.test_publisher import create, written
from tests.patience import PATIENCE_S

TEXT = (DOCS / "LIBRARY.md").read_text(encoding="utf-8")
EXAMPLES = _blocks(TEXT, "python")

CLAUDE = """
class ClaudeAgentOptions: ...
class AssistantMessage: ...
class Transport:
    async def read_messages(self):
        yield {"type": "system", "subtype": "init", "session_id": "s", "uuid": "1"}
        usage = {"input_tokens": 9, "cache_read_input_tokens": 20_000}
        message = {"id": "m", "model": "claude-sonnet-4-5", "usage": usage, "content": []}
        yield {"type": "assistant", "session_id": "s", "uuid": "2", "message": message}
class ClaudeSDKClient:
    def __init__(self, options): self._transport = None
    async def connect(self, prompt=None): self._transport = Transport()
    async def __aenter__(self):
        await self.connect()
        return self
    async def __aexit__(self, *_): ...
    async def query(self, prompt): ...
    async def receive_messages(self):
        async for _ in self._transport.read_messages(): yield AssistantMessage()
    receive_response = receive_messages
"""
OPENAI = """
from types import SimpleNamespace
class Answer:
    def model_dump(self, *, mode, exclude_unset):
        usage = {"prompt_tokens": 1_200, "completion_tokens": 5}
        return {"id": "a", "object": "chat.completion", "model": "gpt-4o", "usage": usage}
class AsyncOpenAI:
    def __init__(self):
        async def answer(*, model, messages): return Answer()
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=answer))
"""


@pytest.fixture
def stand_ins(tmp_path: Path) -> Path:
    """A folder of modules in place of the SDKs."""
    (tmp_path / "claude_agent_sdk.py").write_text(CLAUDE)
    (tmp_path / "openai.py").write_text(OPENAI)
    return tmp_path


async def records(kafka: str, prefix: str) -> list[Record]:
    """Derive what was published."""
    deriver = Deriver(Rules(bundled()))
    return [
        made
        for _, record in await written(kafka, prefix)
        for made in deriver.derive(input_message(record)).records
    ]


@pytest.mark.extended
@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda text: re.findall(r"import (\w+)$", text, re.MULTILINE)[-1]
)
def test_an_example_publishes_what_is_derived(
    example: str, stand_ins: Path, kafka: str, topic_prefix: str
) -> None:
    asyncio.run(create(kafka, topic_prefix))
    settings = {"BOOTSTRAP_SERVERS": kafka, "TOPIC_PREFIX": topic_prefix}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=stand_ins,
        env=command_environment(settings) | {"PYTHONPATH": str(stand_ins)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    made = asyncio.run(records(kafka, topic_prefix))
    if "with Publisher" in example and "async with" not in example:
        assert len(asyncio.run(written(kafka, topic_prefix))) == int(done.stdout) == 1
    else:
        assert [record.kind for record in made].count("context_reading") == 1
        (info,) = [record.data for record in made if record.kind == "session_info"][:1]
        assert f'agent_id="{info.publisher_agent_id}"' in example  # type: ignore[union-attr]


def test_there_is_an_example_of_each_kind() -> None:
    assert len(EXAMPLES) == 4


def test_the_policies_and_fates_are_those_of_the_code() -> None:
    documented = {row[0].strip('`"') for row in _rows(_section(TEXT, "When the queue is full"))}
    assert documented == set(get_args(WhenFull))
    fates = {row[0].strip("`") for row in _rows(_section(TEXT, "Results and statistics"))}
    assert fates == set(get_args(Fate))


def test_all_figures_are_named() -> None:
    section = _section(TEXT, "Results and statistics")
    assert [name for name in PublisherStats.__slots__ if f"`{name}`" not in section] == []
