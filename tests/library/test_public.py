"""The package that others import: what it names is there and typed, and it imports little."""

import ast
import subprocess
import sys
from importlib import import_module
from inspect import get_annotations, getdoc, signature
from pathlib import Path
from types import ModuleType
from typing import assert_type

import pytest

import contextgauge
import contextgauge.compaction
from contextgauge import BlockingPublisher, Fate, Publisher, PublisherStats, Stream
from schemas.records import DATA_CLASSES

PACKAGE = Path(contextgauge.__file__).parent


LATE = pytest.mark.parametrize(
    "package", [contextgauge, contextgauge.compaction], ids=lambda package: package.__name__
)


@LATE
def test_public_names_exist(package: ModuleType) -> None:
    assert all(hasattr(package, name) for name in package.__all__)
    assert dir(package) == sorted(package.__all__)


@LATE
def test_other_names_do_not_exist(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="no attribute 'Subscriber'"):
        _ = package.Subscriber


@LATE
def test_no_module_has_the_name_of_what_the_package_gives(package: ModuleType) -> None:
    """Importing such a module would take the name's place."""
    folder = Path(str(package.__file__)).parent
    modules = {each.stem for each in folder.glob("*.py")} | {each.name for each in folder.glob("*")}
    assert modules & set(package.__all__) == set()


def test_every_kind_of_record_is_public() -> None:
    assert {cls.__name__ for cls in DATA_CLASSES} <= set(contextgauge.__all__)


@LATE
def test_all_names_that_a_type_checker_sees_are_named(package: ModuleType) -> None:
    """What is imported late is imported under TYPE_CHECKING too, under the same names."""
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    imported = {
        alias.name: getattr(import_module(str(node.module)), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module not in {"typing", "contextgauge.lazy_names"}
        for alias in node.names
    }
    assert set(imported) == set(package.__all__) - {"__version__"}
    assert [name for name in imported if getattr(package, name) is not imported[name]] == []


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
