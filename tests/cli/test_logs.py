"""What is logged, and what is not: a worker's own lines, and none of the Kafka client's."""

import logging
from collections.abc import Iterator

import pytest
import structlog
from aiokafka.errors import NodeNotReadyError

from streams.cli import logs
from streams.cli.lazy import silence_logs
from streams.settings import Settings


@pytest.fixture(autouse=True)
def _kafka_client_is_heard() -> Iterator[None]:
    client = logging.getLogger("aiokafka")
    former = client.level
    client.setLevel(logging.NOTSET)  # a publisher of an earlier test silences it
    yield
    client.setLevel(former)


def _say() -> None:
    structlog.get_logger().warning("trying again", pause_s=1)
    logging.getLogger("aiokafka.consumer.fetcher").error("Failed fetch: NodeNotReadyError")
    logging.getLogger("aiokafka").error("Unable to update metadata")
    error = NodeNotReadyError()
    logging.getLogger("asyncio").error(
        "Future exception was never retrieved", exc_info=(type(error), error, None)
    )
    logging.getLogger("asyncio").error("Task was destroyed but it is pending!")


def test_a_worker_logs_its_own_lines_only(capsys: pytest.CaptureFixture[str]) -> None:
    kafka_errors: list[bool] = []
    logs.configure(Settings(log_format="json"), lambda: kafka_errors.append(True))
    _say()
    assert kafka_errors == [True]
    shown = capsys.readouterr()
    assert not shown.out
    own, of_tasks = shown.err.splitlines()
    assert '"event": "trying again"' in own
    assert "destroyed" in of_tasks


def test_an_error_of_the_network_that_the_client_forgot_is_not_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure(Settings(log_format="json"))
    for scope in ("aiokafka.conn", "streams.flow"):
        code = compile("raise ConnectionResetError('by peer')", "conn.py", "exec")
        try:
            exec(code, {"__name__": scope})  # noqa: S102 -- a frame of a module of that name
        except ConnectionResetError:
            logging.getLogger("asyncio").exception("Exception was never retrieved: %s", scope)
    assert "aiokafka" not in (shown := capsys.readouterr().err)
    assert "never retrieved: streams.flow" in shown


@pytest.mark.parametrize(
    "forgotten",
    [
        "Unclosed AIOKafkaConnection\nconn: <AIOKafkaConnection host=kafka port=9092>",
        "Task was destroyed but it is pending!\ntask: <Task coro=<x() at aiokafka/sender.py:9>>",
    ],
)
def test_what_the_client_forgot_to_close_is_not_logged(
    capsys: pytest.CaptureFixture[str], forgotten: str
) -> None:
    logs.configure(Settings(log_format="json"))
    logging.getLogger("asyncio").error(forgotten)
    structlog.get_logger().error("aiokafka is named here")
    (shown,) = capsys.readouterr().err.splitlines()
    assert "is named here" in shown


def test_kafka_client_logs_are_shown_at_debug_level(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(Settings(log_format="json", log_level="debug"))
    _say()
    assert "Failed fetch" in capsys.readouterr().err


def test_a_command_that_is_no_worker_logs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    silence_logs()
    _say()
    shown = capsys.readouterr()
    assert not shown.out
    assert not shown.err


def test_a_worker_logs_after_all_was_silenced(capsys: pytest.CaptureFixture[str]) -> None:
    silence_logs()
    logger = structlog.get_logger()
    logger.warning("not heard")
    logs.configure(Settings(log_format="json"))
    logger.warning("heard")
    shown = capsys.readouterr().err
    assert "not heard" not in shown
    assert "heard" in shown
