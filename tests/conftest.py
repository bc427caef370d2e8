"""Fixtures for all tests: real services on free ports, and names that are never used twice.

A service is started once a session, on first use, and stopped at the end. A part that is
missing on this machine fails the test where the environment variable CI is set, and skips it
with the reason elsewhere.
"""

import itertools
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streams.edge.local_stack import LocalStack, MissingPartError, Name

_counter = itertools.count(1)


def require(part: Callable[[], str]) -> str:
    """Return what `part` starts; where this machine lacks it, fail under CI and skip elsewhere."""
    try:
        return part()
    except MissingPartError as error:
        if os.environ.get("CI"):
            pytest.fail(f"{error} (CI is set: nothing may be skipped)")
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def _stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    stack = LocalStack(tmp_path_factory.mktemp("stack"))
    yield stack
    stack.stop()


@pytest.fixture(scope="session")
def kafka(_stack: LocalStack) -> str:
    """Bootstrap servers of a real Kafka of this test session."""
    return require(lambda: _stack.start(["kafka"])["kafka"].address)


@pytest.fixture(scope="session")
def redis_url(_stack: LocalStack) -> str:
    """URL of a real Redis of this test session."""
    return require(lambda: _stack.start(["redis"])["redis"].address)


@pytest.fixture
def own_stack(tmp_path: Path) -> Iterator[Callable[..., LocalStack]]:
    """Start services of the test's own, which it may kill: `own_stack("kafka", "redis")`.

    Addresses are in `.services()`; `.kill(name)` is a crash, `.start()` brings it back on the
    same port.
    """
    stack = LocalStack(tmp_path / "stack")

    def start(*wanted: Name) -> LocalStack:
        require(lambda: str(stack.start(wanted)))
        return stack

    yield start
    stack.stop()


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    """A name of this test's own, fit to begin names of topics, groups and Redis keys."""
    name = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name)[:60]
    return f"{name}-{next(_counter)}-"


@pytest.fixture
def topic_prefix(prefix: str) -> str:
    """A prefix of topics of this test's own."""
    return prefix


@pytest.fixture
def group_prefix(prefix: str) -> str:
    """A prefix of consumer groups and transactional ids of this test's own."""
    return prefix


@pytest.fixture
def key_prefix(prefix: str) -> str:
    """A prefix of Redis keys of this test's own, without a colon at its end."""
    return prefix.rstrip("-")
