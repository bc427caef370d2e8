"""The recipe of PUBLISHING.md for other producers runs as it stands, and gives times."""

import asyncio
import json
import subprocess
import sys

from contextgauge.partitioner import partition_of
from contextgauge.window_catalog import bundled
from schemas.messages import (
    AGENT_ID_HEADER,
    AGENT_MESSAGES_TOPIC,
    OBSERVED_HEADER,
    OBSERVED_LIVE,
    TASK_ID_HEADER,
)
from schemas.records import CompactBoundary
from streams.core.derivation.rules_config import Rules
from streams.flow.derive.deriver import Deriver, input_message
from tests.docs.test_docs import DOCS, ROOT, _blocks, _section
from tests.e2e.test_publisher import PARTITIONS, create, written
from tests.patience import PATIENCE_S

SECTION = _section((DOCS / "PUBLISHING.md").read_text(encoding="utf-8"), "From another producer")
(RECIPE,) = _blocks(SECTION, "python")
HEADER = f"{OBSERVED_HEADER}: {OBSERVED_LIVE.decode()}"

SESSIONS = ("one", "another")
BODIES: list[dict[str, object]] = [
    {"subtype": "status", "status": "compacting"},
    {"subtype": "compact_boundary", "compact_metadata": {"trigger": "manual"}},
]
MESSAGES = [
    {"session_id": session_id, "uuid": f"{session_id}-{number}", "type": "system", **body}
    for session_id in SESSIONS
    for number, body in enumerate(BODIES)
]
"""A compaction in each session, without times, as a stream has them."""


def test_the_recipe_publishes_messages_that_have_times(kafka: str, topic_prefix: str) -> None:
    asyncio.run(create(kafka, topic_prefix))
    recipe = RECIPE.replace("localhost:9092", kafka)
    recipe = recipe.replace(AGENT_MESSAGES_TOPIC, topic_prefix + AGENT_MESSAGES_TOPIC)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", recipe],
        input="".join(f"{json.dumps(message)}\n" for message in MESSAGES),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    messages = asyncio.run(written(kafka, topic_prefix))
    assert len(messages) == len(MESSAGES)
    deriver = Deriver(Rules(bundled()))
    boundaries = []
    for partition, record in messages:
        assert record.key is not None
        assert partition == partition_of(record.key.decode(), PARTITIONS)
        records = deriver.derive(input_message(record)).records
        boundaries += [made for made in records if isinstance(made.data, CompactBoundary)]
    assert len(boundaries) == len(SESSIONS)
    for boundary in boundaries:
        assert isinstance(boundary.data, CompactBoundary)
        assert boundary.time_ms is not None
        assert boundary.data.attempt_id is not None
        # Sent within the same millisecond, the two messages give no duration.
        source = None if boundary.data.duration_ms is None else "paired"
        assert boundary.data.duration_source == source


def test_every_recipe_names_the_header_and_all_others() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"`{HEADER}`" in _section(readme, "Publishing")
    for name in (AGENT_MESSAGES_TOPIC, OBSERVED_HEADER, AGENT_ID_HEADER, TASK_ID_HEADER):
        assert f"`{name}`" in SECTION
