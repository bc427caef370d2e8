"""docs/CONNECTING.md: its settings load as they are written, its topics are what is created."""

import re
from pathlib import Path

import pytest

from contextgauge.settings.forms import PREFIX
from schemas.topics import CO_PARTITIONED, MIB, TOPICS
from streams.edge.kafka.log import _new_topic
from streams.settings import Settings, load_settings
from tests.docs.test_docs import DOCS, _blocks, _rows, _section

TEXT = (DOCS / "CONNECTING.md").read_text(encoding="utf-8")
EXAMPLES = _blocks(TEXT, "ini")


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_a_whole_and_consistent_set_of_settings(
    example: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files of secrets are the reader's own; here they are the test's."""
    lines = [line.split("=", 1) for line in example.splitlines()]
    for name, value in lines:
        file = tmp_path / name
        file.write_text("a secret")
        monkeypatch.setenv(name, str(file) if name.endswith("PASSWORD_FILE") else value)
    chosen = load_settings()
    changed = {name for name in Settings.model_fields if PREFIX + name.upper() in dict(lines)}
    assert len(changed) == len(lines)
    assert all(getattr(chosen, name) is not None for name in changed)


def test_every_service_that_can_be_connected_to_has_an_example() -> None:
    section = _section(TEXT, "Managed Kafka")
    services = [row[0] for row in _rows(section) if "not possible" not in row[-1]]
    names = re.findall(r"^\*\*([^*]+)\.\*\*", section, re.MULTILINE)
    assert len(services) == len(names) == len(_blocks(section, "ini")) == 4
    assert all(service.startswith(name) for service, name in zip(services, names, strict=True))


def test_every_connection_setting_is_documented() -> None:
    named = set(re.findall(rf"{PREFIX}[A-Z_]+[A-Z]", TEXT))
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    assert named <= known
    about = {name for name in known if name.startswith((f"{PREFIX}KAFKA_", f"{PREFIX}REDIS_"))}
    assert about <= named


def test_topics_made_by_hand_are_those_that_are_created() -> None:
    rows = [row for row in _rows(_section(TEXT, "Creating topics by hand")) if len(row) == 2]
    created = {
        f"`{topic.name}`": {
            f"{name}={value}" for name, value in _new_topic(topic, 1, 3).topic_configs.items()
        }
        for topic in TOPICS
    }
    assert {row[0]: set(re.findall(r"`([^`]+)`", row[1])) for row in rows} == created
    assert [row[0] for row in rows[: len(CO_PARTITIONED)]] == [
        f"`{topic.name}`" for topic in CO_PARTITIONED
    ]


def test_the_smaller_limit_makes_all_topics_fit_eight_mebibytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (limit,) = set(re.findall(rf"^{PREFIX}MESSAGE_LIMIT_BYTES=(\d+)$", TEXT, re.MULTILINE))
    monkeypatch.setenv(f"{PREFIX}MESSAGE_LIMIT_BYTES", limit)
    chosen = load_settings()
    sizes = {topic.name: chosen.topic(topic).max_message_bytes for topic in TOPICS}
    assert max(sizes.values()) == 8 * MIB
    assert sizes["agent.messages"] == int(limit) + MIB
    assert sizes["agent.messages.dead"] == int(limit) + 2 * MIB
