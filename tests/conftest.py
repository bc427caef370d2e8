"""Fixtures for all tests: real services on free ports, and names that are never used twice.

Each pytest worker starts a service once, on first use, and stops it at the end. A part that is
missing on this machine fails the test where the environment variable CI is set, and skips it
with the reason elsewhere.

Four marks divide the tests. `service`: needs Kafka, Redis, Chromium, or processes of its own; it
is set here, by the folder and the fixtures of a test. `slow`: takes seconds, by the folder too;
`make test-fast` leaves it out. `extended`: takes some seconds of the processor; `make check` leaves
it to `make test-extended`. `long`: takes minutes; `make test-long` runs it.
"""

import gc
import itertools
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from xdist.scheduler import LoadScopeScheduling

from streams.cli import build
from streams.edge.local_stack.stack import LocalStack, MissingPartError, Name
from tests.commands import Command, command_environment
from tests.environment import settle
from tests.fork_server import ForkServer
from tests.patience import PATIENCE
from tools.kafka_classes import java_options

LONG = bool(os.environ.get("LONG_TESTS"))
"""Whether `make test-long` runs: tests that have two forms run their long one."""

QUICK = bool(os.environ.get("QUICK_TESTS"))
"""Whether `make test-fast` runs: tests on generated input take a tenth of it."""

_SERVICE_FOLDERS = frozenset({"chaos", "e2e", "page", "secure"})
"""Where all tests start something, the quick ones with them."""

_SLOW_FOLDERS = frozenset({"bench", "drivers", "flow", "fuzz", "serve", "simulation"})
"""Where many tests take a second or more: workers and servers that wait for each other."""

_LONGEST_FIRST = ("secure", "chaos", "deploy", "docs", "e2e")
"""Folders of the longest tests: begun first, none is left to one worker at the end."""

_UNMEASURED = tuple(
    f"tests/{each}"
    for each in (
        *("codec/test_shapes.py", "core/derivation/test_captures.py"),
        *("core/derivation/test_golden.py", "library/test_imports.py"),
        *("library/test_kafka_producers.py", "library/test_shorten.py"),
        "library/test_shorten_lines.py",
        *(
            f"compaction/test_{name}.py"
            for name in (
                *("conformance", "format_properties", "obedience", "overhead", "properties"),
                *("recall", "redaction", "spent_goal", "summariser_apis", "tiktoken_counter"),
            )
        ),
    )
)
"""What covers no branch of the pure parts (`include` in pyproject.toml) that others do not cover:
measuring doubles a test's time."""

_ON_ONE_WORKER = ("tests/secure/", "tests/test_tidy.py")
"""What shares what is costly: a Kafka with all its users and rights, all modules parsed."""

_PARTS = frozenset(
    {
        *("_killable_stack", "_stack", "own_stack", "stack_parts", "secured_folder"),
        *("browser", "command", "promtool"),
    }
)
"""The fixtures that start something outside of the pytest process."""

_EXTENDED_MODULE = re.compile(rb"^pytestmark = \[?pytest\.mark\.extended\b", re.MULTILINE)

_SHARED_STACKS = frozenset({"_killable_stack", "_stack"})
"""The fixtures of brokers and of Redis that tests share."""

_SHARES_SERVICES = pytest.StashKey[bool]()
"""Whether a test may need them."""

# Never by the clock, which a busy machine would fail.
hypothesis_settings.register_profile(
    "short", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
hypothesis_settings.register_profile(
    "long", hypothesis_settings.get_profile("short"), max_examples=5_000
)
hypothesis_settings.register_profile(
    "quick", hypothesis_settings.get_profile("short"), max_examples=10
)
hypothesis_settings.load_profile("long" if LONG else "quick" if QUICK else "short")

_counter = itertools.count(1)
_ASYNCIO_LOGGER = logging.getLogger("asyncio")
_ROOT = Path(__file__).parents[1]


def pytest_configure() -> None:
    """Make the environment that of a new user; let every JVM that a test starts come up quickly."""
    settle(os.environ)
    os.environ.setdefault("JDK_JAVA_OPTIONS", java_options())
    # Measured once for all workers: time limits are in the names of tests, which must be the same.
    os.environ.setdefault("TEST_PATIENCE", str(PATIENCE))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Stop what pytest-cov 7 starts in a worker before it knows that this is one.

    It would go on where the other is paused: `no_cover` would have no effect.
    """
    measuring = session.config.pluginmanager.getplugin("_cov")
    if measuring is not None and hasattr(session.config, "workerinput"):
        measuring.cov_controller.cov.stop()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import modules that are `extended` as a whole, where these are not run."""
    if collection_path.suffix != ".py" or "not extended" not in config.option.markexpr:
        return None
    return True if _EXTENDED_MODULE.search(collection_path.read_bytes()) else None


def pytest_itemcollected(item: Any) -> None:  # of a class of schemathesis
    """Give requests to each operation an id of their own, which pytest 9.2 does not."""
    label = getattr(item, "operation_label", None)
    if label is not None and "[" not in item.nodeid:
        item._id = item._id.with_params(label)  # noqa: SLF001 -- there is no other way


def pytest_collection_finish() -> None:
    """Exempt what collecting made, some million objects, from all later garbage collections.

    These come less often too: what a test makes goes with the test.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives workers test by test, but some files as a whole."""

    def _split_scope(self, nodeid: str) -> str:
        return next((each for each in _ON_ONE_WORKER if nodeid.startswith(each)), nodeid)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Forget what is done: xdist counts all that it remembers, after each test."""
        super().mark_test_complete(node, item_index, duration)
        given = self.assigned_work[node]
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(given[scope].values()):
            del given[scope]


@pytest.hookimpl(optionalhook=True)  # xdist's
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Return who divides the tests; marks for groups have no effect on this version of pytest."""
    return Scheduling(config, log)


def _is_measured(item: pytest.Item) -> bool:
    """Return whether the coverage counts: what generated inputs cover, luck decides."""
    is_generated = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return not is_generated and not item.nodeid.startswith(_UNMEASURED)


def _rank(item: pytest.Item) -> tuple[bool, bool, int]:
    """Return what items are sorted by: those of services, the shared ones, the longest first."""
    folder = item.path.parent.name
    place = _LONGEST_FIRST.index(folder) if folder in _LONGEST_FIRST else len(_LONGEST_FIRST)
    is_pure = item.get_closest_marker("service") is None
    return is_pure, not item.stash[_SHARES_SERVICES] and place == len(_LONGEST_FIRST), place


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a service, and run it first: what is left at the end is short.

    Tests of the compiled reader are deselected where it is not compiled.
    """
    second_try = os.environ.get("SECOND_TRY")
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        # One that is marked in its file may ask for a broker while it runs.
        is_marked = item.get_closest_marker("service") is not None
        item.stash[_SHARES_SERVICES] = is_marked or not fixtures.isdisjoint(_SHARED_STACKS)
        if item.path.parent.name in _SERVICE_FOLDERS or not fixtures.isdisjoint(_PARTS):
            item.add_marker(pytest.mark.service)
            if second_try:
                item.add_marker(pytest.mark.flaky(reruns=1))
        if not _SLOW_FOLDERS.isdisjoint(item.path.relative_to(_ROOT).parts):
            item.add_marker(pytest.mark.slow)
        if LONG and item.get_closest_marker("has_long_form") is not None:
            item.add_marker(pytest.mark.long)
        if config.getoption("cov_source", None) and not _is_measured(item):
            item.add_marker(pytest.mark.no_cover)
    name, count = Counter(item.nodeid for item in items).most_common(1)[0] if items else ("", 1)
    if count > 1:
        raise pytest.UsageError(f"xdist would run one test of {count} with the id {name}")
    items.sort(key=_rank)
    if not build.is_compiled() and not os.environ.get("CHECK_COMPILED"):
        compiled = [item for item in items if item.get_closest_marker("compiled") is not None]
        config.hook.pytest_deselected(items=compiled)
        items[:] = [item for item in items if item.get_closest_marker("compiled") is None]


_lasting: list[LocalStack] = []
"""What tests share."""

_resting: list[tuple[LocalStack, list[Name]]] = []
"""What is stopped of it."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Stop shared services where a test needs none: these come last, and idle brokers cost CPU.

    A test of them that comes later all the same (`--failed-first`) has them again, on their ports.
    The longest tests come first and may start a broker of their own: they leave it as it is.
    """
    is_long = item.path.parent.name in _LONGEST_FIRST
    if item.stash[_SHARES_SERVICES]:
        while _resting:
            stack, names = _resting.pop()
            stack.start(names)
    elif not _resting and not is_long:
        _resting.extend((stack, names) for stack in _lasting if (names := stack.stop()))


def _shared_stack(folder: Path) -> Iterator[LocalStack]:
    stack = LocalStack(folder)
    _lasting.append(stack)
    yield stack
    _lasting.remove(stack)
    stack.stop()


@pytest.fixture(scope="session")
def _fork_server() -> Iterator[ForkServer]:
    server = ForkServer(command_environment({}))
    yield server
    server.stop()


@pytest.fixture
def command(_fork_server: ForkServer) -> Iterator[Command]:
    """Run the command line: `command("topics", "list", BOOTSTRAP_SERVERS=kafka)`."""
    runner = Command(_fork_server)
    yield runner
    runner.end()


def require(part: Callable[[], str]) -> str:
    """Return what `part` starts; where this machine lacks it, fail under CI and skip elsewhere."""
    try:
        return part()
    except MissingPartError as error:
        if os.environ.get("CI"):
            pytest.fail(f"{error} (CI is set: nothing may be skipped)")
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real captures next to the project; who takes it is marked `shared`."""
    folder = _ROOT.parent / "shared"
    if not (folder / "fixtures").is_dir():
        pytest.skip("the real captures (../shared) are not on this machine")
    return folder


@pytest.fixture(scope="session")
def _stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    yield from _shared_stack(tmp_path_factory.mktemp("stack"))


@pytest.fixture(scope="session")
def kafka(_stack: LocalStack) -> str:
    """Bootstrap servers of a real Kafka of this test session."""
    return require(lambda: _stack.start(["kafka"])["kafka"].address)


@pytest.fixture(scope="session")
def redis_url(_stack: LocalStack) -> str:
    """URL of a real Redis of this test session."""
    return require(lambda: _stack.start(["redis"])["redis"].address)


@pytest.fixture(scope="session")
def stack_parts(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Make sure that the command under test can start a Kafka and a Redis."""
    stack = LocalStack(tmp_path_factory.mktemp("parts"))
    require(lambda: str(stack.prepare(["kafka", "redis"])))


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


@pytest.fixture(scope="session")
def _killable_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    yield from _shared_stack(tmp_path_factory.mktemp("killable"))


@pytest.fixture
def killable_kafka(_killable_stack: LocalStack) -> LocalStack:
    """A stack with a running Kafka that the test may kill, as those before it did.

    Tests that only use a broker have `kafka`; here too each has a prefix of its own.
    """
    require(lambda: _killable_stack.start(["kafka"])["kafka"].address)
    return _killable_stack


@pytest.fixture(autouse=True)
def _home_of_its_own() -> Iterator[None]:
    """Let no test read what another one left for its user: remembered windows, settings."""
    worker_home = os.environ["HOME"]
    home = Path(worker_home, str(next(_counter)))
    home.mkdir()
    os.environ["HOME"] = str(home)
    yield
    os.environ["HOME"] = worker_home


@pytest.fixture(autouse=True)
def _process_as_before() -> Iterator[None]:
    """Undo what a command that runs in this process sets for its own: logs, garbage collection."""
    root = logging.getLogger()
    handlers, level, asyncio_level = root.handlers[:], root.level, _ASYNCIO_LOGGER.level
    thresholds = gc.get_threshold()
    yield
    gc.enable()
    gc.set_threshold(*thresholds)
    root.handlers[:] = handlers
    root.setLevel(level)
    _ASYNCIO_LOGGER.setLevel(asyncio_level)
    structlog.reset_defaults()


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    """A name of this test's own, fit to begin names of topics, groups and Redis keys."""
    name = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name)[:60]
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    return f"{name}-{worker}{next(_counter)}-"


@pytest.fixture
def settings(kafka: str, redis_url: str, prefix: str) -> dict[str, str]:
    """Names of this test's own on the real services; who needs other ones has its own fixture."""
    return {
        "BOOTSTRAP_SERVERS": kafka,
        "REDIS_URL": redis_url,
        "TOPIC_PREFIX": prefix,
        "GROUP_PREFIX": prefix,
        "KEY_PREFIX": prefix,
        "PARTITIONS": "2",
        "SESSION_TIMEOUT_MS": "6000",
    }


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
