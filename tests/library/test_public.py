"""The package that others import: what it names is there and typed, and it imports little."""

import ast
import subprocess
import sys
from inspect import get_annotations, getdoc, signature
from pathlib import Path
from typing import assert_type

import pytest

import contextgauge
from contextgauge import BlockingPublisher, Fate, Publisher, PublisherStats, Stream
from schemas.records import DATA_CLASSES

PACKAGE = Path(contextgauge.__file__).parent


def test_public_names_exist() -> None:
    assert all(hasattr(contextgauge, name) for name in contextgauge.__all__)
    assert dir(contextgauge) == sorted(contextgauge.__all__)


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Subscriber'"):
        _ = contextgauge.Subscriber  # type: ignore[attr-defined]


def test_every_kind_of_record_is_public() -> None:
    assert {cls.__name__ for cls in DATA_CLASSES} <= set(contextgauge.__all__)


def test_all_names_that_a_type_checker_sees_are_named() -> None:
    """What is imported late is imported under TYPE_CHECKING too, under the same names."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module not in {"typing", "importlib"}
        for alias in node.names
    }
    assert imported - {"import_module", "version"} == set(contextgauge.__all__) - {"__version__"}


def test_importing_the_records_imports_no_client() -> None:
    code = (
        "import sys, contextgauge; contextgauge.ContextReading; "
        "print([name for name in ('aiokafka', 'redis', 'pydantic', 'asyncio') "
        "if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("cls", [Publisher, Stream, BlockingPublisher])
def test_every_public_call_is_typed_and_described(cls: type) -> None:
    assert (PACKAGE / "py.typed").exists()
    for name, member in vars(cls).items():
        if name.startswith("_") or not callable(member):
            continue
        assert getdoc(member), name
        typed = get_annotations(member)
        assert set(signature(member).parameters) - {"self"} | {"return"} == set(typed), name


async def types_of_the_library(client: Path) -> None:
    """Read by mypy, never run: the types that users see."""
    async with Publisher(when_full="drop_oldest") as publisher:
        assert_type(publisher, Publisher)
        assert_type(await publisher.publish(b"{}"), Fate)
        assert_type(await publisher.stream(session_id="s").publish({}), Fate)
        assert_type(publisher.tap(client), Path)
        assert_type(publisher.stats, PublisherStats)
    with Publisher(when_full="wait") as blocking:
        assert_type(blocking, BlockingPublisher)
        assert_type(blocking.publish("{}"), Fate)
    Publisher(when_full="never")  # type: ignore[arg-type]  # a policy must be one of three
    Publisher()  # type: ignore[call-arg]  # and it must be chosen
