"""Quick constructors: as those of dataclasses in all that can be seen."""

import dataclasses
import inspect
from dataclasses import FrozenInstanceError, dataclass, field

import pytest

from contextgauge.quick_init import quick_init
from schemas.records import DATA_CLASSES, Category, Record, RecordData


@pytest.mark.parametrize("made", [*DATA_CLASSES, Category, Record])
def test_a_record_takes_what_its_dataclass_would(made: type[RecordData]) -> None:
    plain = dataclasses.make_dataclass(
        made.__name__,
        [
            (one.name, one.type, field(default=one.default, kw_only=one.kw_only))
            for one in dataclasses.fields(made)
        ],
        frozen=True,
        slots=True,
    )
    own, former = inspect.signature(made), inspect.signature(plain)
    assert list(own.parameters) == list(former.parameters)
    for name, parameter in own.parameters.items():
        assert parameter.kind == former.parameters[name].kind
        assert parameter.default == former.parameters[name].default


def test_it_sets_every_field_and_nothing_can_be_changed() -> None:
    category = Category(id="a", name="b", kind="c", tokens=4)
    assert dataclasses.asdict(category) == {"id": "a", "name": "b", "kind": "c", "tokens": 4}
    assert category == dataclasses.replace(category)
    with pytest.raises(FrozenInstanceError):
        category.tokens = 5  # type: ignore[misc]  # what is tested
    with pytest.raises(TypeError, match="tokens"):
        Category(id="a", name="b", kind="c")  # type: ignore[call-arg]  # what is tested
    with pytest.raises(TypeError, match="more"):
        Category(id="a", name="b", kind="c", tokens=4, more=5)  # type: ignore[call-arg]  # as above


def test_a_default_is_the_dataclass_own() -> None:
    @quick_init
    @dataclass(frozen=True, slots=True)
    class Made:
        first: int
        second: tuple[int, ...] = (1, 2)

    assert Made(1) == Made(1, (1, 2))
    assert Made(second=(), first=3).second == ()


def test_what_is_no_plain_field_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Listed:
        values: list[int] = field(default_factory=list)

    @dataclass(frozen=True, slots=True)
    class After:
        value: int

        def __post_init__(self) -> None:
            """Do something else."""

    for made in (Listed, After):
        with pytest.raises(TypeError, match="only plain fields"):
            quick_init(made)
