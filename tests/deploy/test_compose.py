"""The compose file and the container file: what they name exists, and agrees with the rest.

No container engine is needed, so no image is built here.
"""

import re
import shlex
from typing import Any

import pytest
import typer.main
import yaml

from contextgauge.settings.forms import PREFIX
from streams.cli.app import app
from streams.edge.control.kept_conversations import read_kept
from streams.edge.control.service_file import read_service
from streams.edge.local_stack.stack import CONFIG_FOLDER
from streams.settings import Settings
from tests.docs.test_docs import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
OWN = {name: service for name, service in SERVICES.items() if service["image"] == "contextgauge"}
_HEALTH = COMPOSE["x-worker-health"]
CONTAINERFILE = ROOT / "deploy" / "container" / "Containerfile"


def test_all_services_of_the_pipeline_are_present() -> None:
    workers = {"derive", "project", "ingest", "conversations", "control"}
    assert set(OWN) == {"topics", "serve", "publish"} | workers
    assert {name for name in workers if OWN[name].get("healthcheck") != _HEALTH} == set()
    assert set(SERVICES) - set(OWN) == {"kafka", "redis"}


@pytest.mark.parametrize("name", OWN)
def test_a_service_runs_a_command_with_settings_that_exist(name: str) -> None:
    service = OWN[name]
    commands = typer.main.get_group(app)
    context = typer.Context(commands)
    assert commands.get_command(context, service["command"][0]) is not None
    variables = [variable for variable in service["environment"] if variable.startswith(PREFIX)]
    fields = {PREFIX + field.upper() for field in Settings.model_fields}
    assert variables
    assert set(variables) <= fields


@pytest.mark.parametrize("name", ["conversations", "control"])
def test_text_is_kept_and_sessions_are_compacted_only_on_request(name: str) -> None:
    service = OWN[name]
    assert service["profiles"] == ["compaction"]
    (volume,) = service["volumes"]
    source, target, mode = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", volume).split(":")
    assert (service["environment"]["CONTEXTGAUGE_COMPACTION_FILE"], mode) == (target, "ro")
    policy = read_kept(ROOT / source)
    read_service(ROOT / source)
    assert policy.fit("s", None, "/srv/example/shop")
    assert not policy.fit("s", "ann", "/srv/other")
    assert not policy.fit("s", None, None)


def test_the_runbook_shows_them_in_kubernetes() -> None:
    text = (ROOT / "docs" / "RUNBOOK.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    pods = [yaml.safe_load(block) for block in blocks if "CONTEXTGAUGE_COMPACTION_FILE" in block]
    assert [pod["containers"][0]["command"][1] for pod in pods] == ["control"]
    for pod in pods:
        (container,) = pod["containers"]
        values = {each["name"]: each.get("value", "") for each in container["env"]}
        fields = {PREFIX + field.upper() for field in Settings.model_fields}
        assert {name for name in values if name.startswith(PREFIX)} <= fields
        mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
        assert set(mounts) == {each["name"] for each in pod["volumes"]}
        files = [value for name, value in values.items() if name.endswith("_FILE")]
        assert files
        assert all(value.startswith(tuple(mounts.values())) for value in files)


def test_every_port_is_published_on_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_kafka_is_configured_as_the_local_broker() -> None:
    text = (CONFIG_FOLDER / "server.properties").read_text(encoding="utf-8")
    local = dict(re.findall(r"^([a-z.]+)=(.*)$", text, re.MULTILINE))
    environment: dict[str, str] = SERVICES["kafka"]["environment"]
    shared = {
        name: value
        for name, value in local.items()
        if "KAFKA_" + name.upper().replace(".", "_") in environment and "$" not in value
    }
    assert {"auto.create.topics.enable", "message.max.bytes"} <= set(shared)
    own = {"listener.security.protocol.map"}
    for name in set(shared) - own:
        assert environment["KAFKA_" + name.upper().replace(".", "_")] == shared[name], name


def test_kafka_is_of_the_version_that_the_tests_run() -> None:
    pom = (CONFIG_FOLDER / "pom.xml").read_text(encoding="utf-8")
    (version,) = set(re.findall(r"<kafka\.version>([0-9.]+)</kafka\.version>", pom))
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{version}"


def test_redis_is_configured_as_the_local_one() -> None:
    text = (CONFIG_FOLDER / "redis.conf").read_text(encoding="utf-8")
    local = dict(re.findall(r"^([a-z-]+) (.+)$", text, re.MULTILINE))
    words = shlex.split(SERVICES["redis"]["command"])[1:]
    flags = dict(zip(words[::2], words[1::2], strict=True))
    assert {f"--{name}" for name in ("appendonly", "maxmemory-policy")} <= set(flags)
    assert {name: value.strip('"') for name, value in local.items() if f"--{name}" in flags} == {
        name.removeprefix("--"): value for name, value in flags.items()
    }


def test_files_copied_into_the_image_exist_and_are_not_ignored() -> None:
    text = CONTAINERFILE.read_text(encoding="utf-8")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    sources = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert "requirements.lock" in sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert not any(source == item or source.startswith(f"{item}/") for item in ignored), source
