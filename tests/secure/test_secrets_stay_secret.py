"""A password that is set in every place is in no output, whatever goes wrong."""

import io
import logging
import pickle
import time
from pathlib import Path

import pytest

from streams import wiring
from streams.settings import Settings, load_settings
from tests.commands import Command
from tests.patience import PATIENCE_S
from tests.secure.services import Secured, as_environment, url_with

MARKER = "marker+Hidden/7Q"
ENCODED = "marker%2BHidden%2F7Q"
SHOWN = (MARKER, ENCODED, "Hidden")
"""Its middle too: an error may show a piece of a URL."""


def _clean(text: str) -> bool:
    return not any(piece in text for piece in SHOWN)


def _everywhere(secured: Secured, **changed: str) -> dict[str, str]:
    """Return settings with the marker in each place that may hold a secret."""
    kafka = secured.kafka_settings("sasl_ssl") | {
        "KAFKA_PASSWORD": MARKER,
        "KAFKA_CERTIFICATE_FILE": str(secured.client.certificate),
        "KAFKA_KEY_FILE": str(secured.client.key),
        "KAFKA_KEY_PASSWORD": MARKER,
    }
    redis = {
        "REDIS_URL": url_with(secured.redis_settings()["REDIS_URL"], "someone", MARKER),
        "REDIS_CA_FILE": str(secured.authority.file),
        "REDIS_CERTIFICATE_FILE": str(secured.client.certificate),
        "REDIS_KEY_FILE": str(secured.client.key),
        "REDIS_KEY_PASSWORD": MARKER,
    }
    return kafka | redis | {"LOG_LEVEL": "debug"} | changed


COMMANDS = (
    ("topics", "list"),
    ("topics", "create"),
    ("project",),
    ("publish", "-"),
    ("sessions",),
)
CHANGES: tuple[dict[str, str], ...] = (
    {},
    {"KAFKA_SASL_MECHANISM": "PLAIN", "LOG_FORMAT": "console"},
    {"KAFKA_CA_FILE": "/dev/null"},
    {"REDIS_URL": f"redis://someone:{MARKER}@localhost:1/0", "BOOTSTRAP_SERVERS": "nowhere"},
    {"REDIS_USERNAME": "two", "KAFKA_USERNAME": ""},
)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("arguments", "changed"),
    [*((one, {}) for one in COMMANDS), *((("derive",), changed) for changed in CHANGES)],
    ids=str,
)
def test_a_refused_password_is_in_no_output(
    secured_kafka: Secured,
    secured_redis: Secured,
    command: Command,
    arguments: tuple[str, ...],
    changed: dict[str, str],
) -> None:
    assert secured_redis is secured_kafka
    done = command(*arguments, stdin="", **_everywhere(secured_kafka, **changed))
    assert done.returncode == 2, done.stderr
    assert done.stderr
    assert _clean(done.stdout + done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_help_shows_no_password(
    secured_kafka: Secured, secured_redis: Secured, command: Command
) -> None:
    assert secured_redis is secured_kafka
    for arguments in (("--help",), ("derive", "--help"), ("publish", "--help")):
        done = command(*arguments, **_everywhere(secured_kafka))
        assert done.returncode == 0
        assert "Usage" in done.stdout
        assert _clean(done.stdout + done.stderr)


@pytest.mark.extended
def test_debug_logs_and_the_process_list_show_no_password(
    secured_kafka: Secured, command: Command, tmp_path: Path, prefix: str
) -> None:
    """It connects, with PLAIN, which sends the password itself."""
    settings = secured_kafka.kafka_settings("sasl_ssl", "admin", "PLAIN")
    password = settings["KAFKA_PASSWORD"]
    names = {"TOPIC_PREFIX": prefix, "GROUP_PREFIX": prefix, "PARTITIONS": "1"}
    settings |= names | {"LOG_LEVEL": "debug", "LOG_FORMAT": "console"}
    assert command("topics", "create", **settings).returncode == 0
    log = tmp_path / "log"
    worker = command.start_logging(log, "derive", **settings)
    lines = command("simulate", "--sample").stdout
    assert command("publish", "-", stdin=lines, **settings).returncode == 0
    deadline = time.monotonic() + PATIENCE_S
    while "aiokafka" not in log.read_text() and "Committ" not in log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.2)
    shown = Path(f"/proc/{worker.pid}/cmdline").read_text()
    worker.terminate()
    assert worker.wait(PATIENCE_S) == 0
    text = log.read_text()
    assert "debug" in text
    assert password not in text
    assert "derive" in shown
    assert password not in shown


def test_no_object_with_a_password_shows_it(
    secured_folder: Secured, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secured_folder.ports.setdefault("sasl_ssl", 1)
    secured_folder.ports.setdefault("redis", 1)
    for name, value in as_environment(_everywhere(secured_folder)).items():
        monkeypatch.setenv(name, value)
    chosen = load_settings()
    options, access = wiring.kafka_options(chosen), wiring.redis_access(chosen)
    views = wiring.redis_views(chosen)
    for thing in (chosen, options, access, views, access.tls):
        assert _clean(f"{thing!r} {thing}")
    assert _clean(chosen.model_dump_json())
    assert _clean(wiring.redis_address(chosen))
    assert "localhost" in wiring.redis_address(chosen)
    assert options.security.password == MARKER
    assert isinstance(pickle.loads(pickle.dumps(chosen)), Settings)  # noqa: S301 -- its own
    assert _clean(caplog.text)


def test_the_log_of_the_client_contains_no_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("aiokafka.conn")
    stream = io.StringIO()
    # As in a program of its own: what other tests configured does not matter.
    monkeypatch.setattr(logger, "handlers", [logging.StreamHandler(stream)])
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    monkeypatch.setattr(logger, "disabled", False)
    monkeypatch.setattr(logger, "propagate", False)
    logger.debug("Request to %s: %s", "a broker", MARKER)
    logger.warning("still logged")
    assert stream.getvalue() == "still logged\n"
