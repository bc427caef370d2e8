"""What agents import stands alone: none of the pipeline, no client before it is needed."""

import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest

from contextgauge import ConfigError
from contextgauge.settings import local_stack
from contextgauge.settings.loading import variable
from contextgauge.settings.local_stack import STATE_FILE, stack_addresses
from contextgauge.settings.publishing import PublisherSettings, publisher_settings
from streams.settings import Settings

ROOT = Path(__file__).parents[2]

PIPELINE = (
    "aiohttp",
    "faust",
    "prometheus_client",
    "redis",
    "rich",
    "schemas",
    "streams",
)


def run(code: str, folder: Path, *, blocked: tuple[str, ...] = ()) -> str:
    """Run a program of a user in a folder; importing a `blocked` package fails there."""
    hide = "".join(f"sys.modules[{name!r}] = None\n" for name in blocked)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{hide}{textwrap.dedent(code)}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_import_loads_no_client_and_none_of_the_pipeline(tmp_path: Path) -> None:
    loaded = run(
        """
        import contextgauge
        contextgauge.Publisher, contextgauge.BlockingPublisher, contextgauge.SessionView
        print(sorted({name.partition('.')[0] for name in sys.modules}))
        """,
        tmp_path,
    )
    assert "contextgauge" in loaded
    assert [name for name in ("aiokafka", *PIPELINE) if f"'{name}'" in loaded] == []


def test_the_import_is_light(tmp_path: Path) -> None:
    """Counted in modules, which do not depend on the machine; it takes some 40 ms."""
    count = run(
        "before = len(sys.modules)\nimport contextgauge\nprint(len(sys.modules) - before)", tmp_path
    )
    assert int(count) < 100


def test_an_error_is_imported_alone(tmp_path: Path) -> None:
    loaded = run(
        """
        from contextgauge import ConfigError
        print(*sorted(name for name in sys.modules if name.startswith('contextgauge')))
        """,
        tmp_path,
    )
    assert loaded.split() == ["contextgauge", "contextgauge.errors", "contextgauge.lazy_names"]


KAFKA = ("aiokafka", "cramjam", "zstandard")


def test_the_compaction_engine_needs_and_loads_no_client(tmp_path: Path) -> None:
    """It takes 0.2 s of CPU time with Python's start: pydantic alone would take another 0.1."""
    loaded = run(
        """
        import contextgauge.compaction as engine
        compact = engine.Compactor().before_call(engine.History())
        print([getattr(engine, name) for name in engine.__all__] and sorted(sys.modules))
        compact.close()
        """,
        tmp_path,
        blocked=KAFKA,
    )
    assert "'contextgauge.compaction.compactor'" in loaded
    assert "'pydantic'" not in loaded
    assert loaded.count(",") < 400


def test_the_library_alone_installs_two_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [re.match(r"[\w-]+", text)[0] for text in project["dependencies"]] == [  # type: ignore[index]
        "orjson",
        "pydantic",
    ]


def test_a_publisher_says_what_to_install_for_it(tmp_path: Path) -> None:
    printed = run(
        """
        from contextgauge import ConfigError, Publisher

        try:
            with Publisher(when_full="wait", bootstrap_servers="127.0.0.1:1"):
                pass
        except ConfigError as error:
            print(error)
        """,
        tmp_path,
        blocked=KAFKA,
    )
    assert printed == (
        "a publisher needs the extra `kafka`: install 'contextgauge[kafka]' in place of "
        "'contextgauge', the same way"
    )


def test_a_users_own_schemas_and_streams_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "schemas.py").write_text("raise SystemExit('the user\\'s schemas were imported')\n")
    (tmp_path / "streams.py").write_text("raise SystemExit('the user\\'s streams were imported')\n")
    printed = run(
        """
        import contextgauge
        print(contextgauge.Publisher.__name__, contextgauge.Record.__name__)
        print(contextgauge.__version__)
        """,
        tmp_path,
    )
    assert printed.split()[:2] == ["Publisher", "Record"]


def test_a_publisher_works_without_the_packages_of_the_pipeline(tmp_path: Path) -> None:
    """It starts, reports that the broker is away, and closes, with all of them missing."""
    printed = run(
        """
        import asyncio
        from contextgauge import Publisher

        async def main():
            problems = []
            async with Publisher(
                when_full="drop_oldest", bootstrap_servers="127.0.0.1:1",
                close_timeout_s=0.2, on_problem=problems.append,
            ) as publisher:
                print(await publisher.publish({"type": "user", "session_id": "s"}))
                while not problems:
                    await asyncio.sleep(0.01)
                print(publisher.stats.waiting + publisher.stats.unacknowledged)

        asyncio.run(main())
        print("aiokafka" in sys.modules)
        """,
        tmp_path,
        blocked=PIPELINE,
    )
    assert printed.split() == ["queued", "1", "True"]


def test_a_publisher_ignores_settings_of_the_pipeline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in set(Settings.model_fields) - set(PublisherSettings.model_fields):
        monkeypatch.setenv(variable(name), "of no concern")
    assert publisher_settings({"bootstrap_servers": "h:1"}).bootstrap_servers == "h:1"


@pytest.mark.parametrize("name", ["KAFKA_PROTOCOL", "KAFKA_USER", "KAFKA_CA", "BOOTSTRAP_SERVER"])
def test_an_unknown_setting_of_kafka_is_an_error(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(f"CONTEXTGAUGE_{name}", "ssl")
    with pytest.raises(ConfigError, match=f"CONTEXTGAUGE_{name} is not a setting"):
        publisher_settings({"bootstrap_servers": "h:1"})


RUNNING = {"pid": 2**22, "started": "1"}
ENDED: dict[str, Any] = {"address": "127.0.0.1:20001", "process": RUNNING, "log_file": "kafka.log"}


def test_the_address_of_a_local_service_that_ended_is_not_used(tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).write_text(json.dumps({"kafka": ENDED}))
    assert stack_addresses(tmp_path) == {}
    assert stack_addresses(tmp_path / "nowhere") == {}


ODD_SERVICES: list[Any] = [
    None,
    {},
    [],
    "x",
    {key: value for key, value in ENDED.items() if key != "address"},
    ENDED | {"address": 5},
    ENDED | {"process": None},
    ENDED | {"process": RUNNING | {"pid": "1"}},
    ENDED | {"process": RUNNING | {"pid": -1}},
    ENDED | {"process": RUNNING | {"pid": 2**70}},
    ENDED | {"process": RUNNING | {"more": 1}},
]


@pytest.mark.parametrize(
    "state",
    [
        *(b"", b"{", b"\xff", b"[]", b"5"),
        *(json.dumps({"kafka": service}).encode() for service in ODD_SERVICES),
    ],
)
def test_a_damaged_state_file_of_the_local_stack_is_a_config_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: bytes
) -> None:
    monkeypatch.setattr(local_stack, "stack_folder", lambda: tmp_path)
    (tmp_path / STATE_FILE).write_bytes(state)
    with pytest.raises(ConfigError, match=f"{tmp_path}/{STATE_FILE} is damaged: stop"):
        publisher_settings({})


def test_a_state_file_that_cannot_be_read_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).mkdir()
    with pytest.raises(ConfigError, match=r"cannot be read .*: make it readable, or name Kafka"):
        stack_addresses(tmp_path)


@pytest.mark.parametrize(
    ("given", "words"), [("a b", "'a b' does not have the expected form"), (5, "'5' should be a")]
)
def test_a_wrong_argument_is_named_as_it_was_given(
    monkeypatch: pytest.MonkeyPatch, given: Any, words: str
) -> None:
    monkeypatch.setenv("CONTEXTGAUGE_TOPIC_PREFIX", "fine")
    with pytest.raises(ConfigError, match="letters, digits") as caught:
        publisher_settings({"bootstrap_servers": "h:1", "topic_prefix": given})
    text = str(caught.value)
    assert text.startswith(f"topic_prefix={words}")
    assert "CONTEXTGAUGE" not in text
    assert "unset" not in text


def test_a_misspelled_setting_of_a_publisher_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTGAUGE_BOOTSTRAP_SERVER", "h:1")
    with pytest.raises(ConfigError, match="did you mean CONTEXTGAUGE_BOOTSTRAP_SERVERS"):
        publisher_settings({})
