"""`contextgauge doctor` over secured connections, and what it tells of those that are refused."""

import json
from typing import Any

import pytest

from tests.commands import Command
from tests.secure.services import PASSWORD, Secured

pytestmark = pytest.mark.extended


def _examine(command: Command, settings: dict[str, str]) -> tuple[int, dict[str, Any]]:
    done = command("doctor", "--json", **settings)
    assert PASSWORD not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    document = json.loads(done.stdout)
    return done.returncode, {item["id"]: item for item in reversed(document["checks"])}


def test_kafka_with_tls_and_a_user(secured_kafka: Secured, command: Command, prefix: str) -> None:
    names = {"TOPIC_PREFIX": prefix, "GROUP_PREFIX": prefix, "PARTITIONS": "1"}
    settings = names | secured_kafka.kafka_settings("sasl_ssl", "admin", "SCRAM-SHA-256")
    assert command("topics", "create", **settings).returncode == 0
    _, checks = _examine(command, settings)
    for check in ("kafka.reachable", "kafka.access", "kafka.version", "topics.present"):
        assert checks[check]["severity"] == "ok", checks[check]
    assert checks["publishers.keys"]["severity"] == "ok"


def test_a_wrong_password_of_kafka(secured_kafka: Secured, command: Command) -> None:
    settings = secured_kafka.kafka_settings("sasl_ssl", "admin", "SCRAM-SHA-256")
    code, checks = _examine(command, settings | {"KAFKA_PASSWORD": "another"})
    assert (code, checks["kafka.access"]["severity"]) == (1, "error")
    assert "CONTEXTGAUGE_KAFKA_USERNAME" in checks["kafka.access"]["remedy"]


def test_an_authority_that_is_not_trusted(secured_kafka: Secured, command: Command) -> None:
    settings = secured_kafka.kafka_settings("ssl")
    settings.pop("KAFKA_CA_FILE")
    code, checks = _examine(command, settings)
    assert (code, checks["kafka.access"]["severity"]) == (1, "error")
    assert "CONTEXTGAUGE_KAFKA_CA_FILE" in checks["kafka.access"]["found"]


def test_a_user_without_rights(secured_kafka: Secured, command: Command, prefix: str) -> None:
    names = {"TOPIC_PREFIX": prefix, "GROUP_PREFIX": prefix, "PARTITIONS": "1"}
    admin = names | secured_kafka.kafka_settings("sasl_ssl", "admin", "SCRAM-SHA-512")
    assert command("topics", "create", **admin).returncode == 0
    settings = names | secured_kafka.kafka_settings("sasl_ssl", "outsider", "SCRAM-SHA-512")
    code, checks = _examine(command, settings)
    assert (code, checks["kafka.access"]["severity"]) == (1, "error")
    assert "AuthorizationFailed" in checks["kafka.access"]["found"]
    assert checks["kafka.reachable"]["severity"] == "ok"
    assert checks["topics.cleanup"]["severity"] == "skipped"
    assert checks["topics.present"]["severity"] == "skipped"
