"""Documents are read as their dataclasses say, and nothing else is."""

import copy
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pydantic import TypeAdapter, ValidationError

from contextgauge.errors import VersionError
from schemas.views import Aggregates, Compaction, LiveEntry, PartitionView, SessionView
from streams import codec
from streams.codec import view_codec
from streams.codec.shapes import ShapeError, reader
from tests.flow.local_view_kit import Run, contents, write_sample

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from contextgauge.frozen import dataclass

VIEWS = [Aggregates, Compaction, LiveEntry, PartitionView, SessionView]


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[type[Any], list[Any]]:
    """Return documents of the sample sessions, by what they are."""
    folder: Path = tmp_path_factory.mktemp("shapes")
    Run(write_sample(folder / "projects"), folder / "local").all()
    rows = contents(folder / "local")
    with sqlite3.connect(folder / "local") as connection:
        live = connection.execute("SELECT document FROM live").fetchall()
    stats = dict(rows["stats"])
    return {
        SessionView: [codec.loads(row[2]) for row in rows["sessions"]],
        Compaction: [codec.loads(row[2]) for row in rows["compactions"]],
        PartitionView: [stats.pop(b"partition")],
        Aggregates: list(stats.values()),
        LiveEntry: [codec.loads(document) for (document,) in live],
    }


_read: Any = reader
_adapter: Any = cache(TypeAdapter)


def _changed(document: Any, values: list[Any]) -> Iterator[Any]:
    """Yield the document with each of its parts left out, or replaced by each of these."""
    for place in list(_places(document)):
        *above, last = place
        for value in ["left out", *values]:
            changed = copy.deepcopy(document)
            parent = changed
            for key in above:
                parent = parent[key]
            if value == "left out":
                if isinstance(parent, dict):
                    del parent[last]
            else:
                parent[last] = copy.deepcopy(value)
            yield changed


def _places(document: Any) -> Iterator[list[Any]]:
    parts = document.items() if isinstance(document, dict) else enumerate(document)
    for key, part in parts:
        yield [key]
        if isinstance(part, dict | list):
            yield from ([key, *rest] for rest in _places(part))


def _outcome(cls: type[Any], document: Any) -> Any:
    try:
        return _read(cls)(document)
    except ShapeError:
        return None


def _by_pydantic(cls: type[Any], document: Any) -> Any:
    try:
        return _adapter(cls).validate_python(document)
    except ValidationError:
        return None


@pytest.mark.extended
@pytest.mark.parametrize("cls", VIEWS)
def test_a_document_is_read_as_pydantic_reads_it(
    cls: type[Any], documents: dict[type[Any], list[Any]]
) -> None:
    assert documents[cls]
    for document in documents[cls]:
        value = _read(cls)(document)
        assert value == _adapter(cls).validate_python(document)
        assert codec.loads(codec.dumps(value)) == document


@pytest.mark.parametrize("cls", VIEWS)
def test_what_pydantic_refuses_is_refused(
    cls: type[Any], documents: dict[type[Any], list[Any]]
) -> None:
    largest = max(documents[cls], key=lambda document: len(codec.dumps(document)))
    count = 0
    for changed in _changed(largest, [{}, [], [1], "text", None, 1.5, {"name": {}}]):
        assert _outcome(cls, changed) == _by_pydantic(cls, changed)
        count += 1
    assert count >= 50 or cls is PartitionView


@dataclass(frozen=True, slots=True)
class _Inner:
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Outer:
    count: int
    share: float | None
    kind: Literal["a", "b", "c"]
    inner: dict[str, _Inner]


def test_nothing_is_converted() -> None:
    document = {"count": 1, "share": 1, "kind": "c", "inner": {"x": {"names": ["n"]}}, "new": 1}
    value = reader(_Outer)(document)
    assert value == _Outer(1, 1.0, "c", {"x": _Inner(("n",))})
    assert type(value.share) is float
    for name, wrong in (("count", "1"), ("count", True), ("share", False), ("kind", "d")):
        with pytest.raises(ShapeError) as error:
            reader(_Outer)(document | {name: wrong})
        assert error.value.place == (name,)
    with pytest.raises(ShapeError) as error:
        reader(_Outer)(document | {"inner": {"x": {"names": ["n", 1]}}})
    assert error.value.place == ("names", "x", "inner")
    with pytest.raises(ShapeError):
        reader(_Outer)([])


def test_a_type_that_no_document_has_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Strange:
        raw: bytes

    with pytest.raises(TypeError, match="bytes"):
        reader(Strange)


def test_the_field_that_is_wrong_is_named(documents: dict[type[Any], list[Any]]) -> None:
    document = copy.deepcopy(documents[SessionView][0])
    chain = next(iter(document["chains"]))
    document["chains"][chain]["messages"] = "many"
    with pytest.raises(VersionError, match=rf"shape of version 3: chains\.{chain}\.messages"):
        view_codec.decode(SessionView, codec.dumps(document))
