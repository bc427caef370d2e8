"""Frozen dataclasses of our own behave like those of `dataclasses`."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import MISSING, FrozenInstanceError, field
from typing import Any

import pytest

from contextgauge.frozen import closed, copied, dataclass, fields_of, maker, opened, replace
from schemas.records import DATA_CLASSES, Category, Record, RecordData
from schemas.views import (
    Breakdown,
    ChainView,
    Distribution,
    PendingCompaction,
    SessionView,
    UntimedCompaction,
)

CLASSES = [*DATA_CLASSES, Category, Record, Breakdown, ChainView, Distribution, SessionView]


@pytest.mark.parametrize("own", CLASSES)
def test_the_constructor_takes_the_arguments_of_a_dataclass(own: type[RecordData]) -> None:
    standard = dataclasses.make_dataclass(
        own.__name__,
        [
            (
                each.name,
                each.type,
                field(kw_only=each.kw_only, default_factory=each.default_factory)
                if each.default_factory is not dataclasses.MISSING
                else field(kw_only=each.kw_only, default=each.default),
            )
            for each in dataclasses.fields(own)
        ],
        frozen=True,
        slots=True,
    )
    parameters, expected = (inspect.signature(cls).parameters for cls in (own, standard))
    assert list(parameters) == list(expected)
    for name, parameter in parameters.items():
        assert parameter.kind == expected[name].kind
        assert (parameter.default is inspect.Parameter.empty) == (
            expected[name].default is inspect.Parameter.empty
        )


def test_fields_are_set_and_cannot_be_changed() -> None:
    category = Category(id="a", name="b", kind="c", tokens=4)
    assert dataclasses.asdict(category) == {"id": "a", "name": "b", "kind": "c", "tokens": 4}
    assert repr(category) == "Category(id='a', name='b', kind='c', tokens=4)"
    assert dataclasses.replace(category, tokens=5).tokens == 5
    with pytest.raises(FrozenInstanceError):
        category.tokens = 5  # type: ignore[misc]  # what is tested
    with pytest.raises(FrozenInstanceError):
        del category.tokens
    with pytest.raises(TypeError, match="tokens"):
        Category(id="a", name="b", kind="c")  # type: ignore[call-arg]  # what is tested
    with pytest.raises(TypeError, match="more"):
        Category(id="a", name="b", kind="c", tokens=4, more=5)  # type: ignore[call-arg]  # as above


def test_fields_of_the_same_names_are_copied_unless_others_are_given() -> None:
    pending = PendingCompaction(boundary_id="b", number=3)
    others = {"trigger": None, "model": "m", "time_ms": 5}
    untimed = copied(UntimedCompaction, pending, number=4, **others)
    assert untimed == UntimedCompaction(
        boundary_id="b", number=4, trigger=None, model="m", time_ms=5
    )


def test_a_copy_with_changes_is_frozen_and_leaves_the_original() -> None:
    category = Category(id="a", name="b", kind="c", tokens=4)
    changed = replace(category, tokens=5, name=None)
    assert changed == Category(id="a", name=None, kind="c", tokens=5)
    assert category == Category(id="a", name="b", kind="c", tokens=4)
    assert type(changed) is Category
    with pytest.raises(FrozenInstanceError):
        changed.tokens = 6  # type: ignore[misc]  # what is tested
    with pytest.raises(AttributeError, match="more"):
        replace(category, more=5)


@pytest.mark.parametrize("own", CLASSES)
def test_a_maker_creates_what_its_class_does(own: type[Any]) -> None:
    make = maker(own)
    required = {
        each.name: each.name
        for each in dataclasses.fields(own)
        if each.default is MISSING and each.default_factory is MISSING
    }
    everything = {each.name: each.name for each in dataclasses.fields(own)}
    for arguments in (required, everything):
        made = make(**arguments)
        assert made == own(**arguments)
        assert type(made) is own
        with pytest.raises(FrozenInstanceError):
            setattr(made, next(iter(everything)), "other")
    with pytest.raises(TypeError, match="more"):
        make(**required, more=5)
    if required:
        with pytest.raises(TypeError, match="required"):
            make()


def test_a_default_factory_is_called_for_each_instance_that_is_made() -> None:
    make = maker(Distribution)
    assert make().buckets is not make().buckets


def test_an_opened_copy_can_be_changed_until_it_is_closed() -> None:
    category = Category(id="a", name="b", kind="c", tokens=4)
    copied = opened(category)
    copied.tokens = 5
    with pytest.raises(AttributeError, match="more"):
        copied.more = 5
    changed = closed(copied, Category)
    assert changed == Category(id="a", name="b", kind="c", tokens=5)
    assert category.tokens == 4
    with pytest.raises(FrozenInstanceError):
        changed.tokens = 6  # type: ignore[misc]  # what is tested


@pytest.mark.parametrize("own", CLASSES)
def test_fields_of_any_number_are_given_in_their_order(own: type[Any]) -> None:
    values = {each.name: object() for each in dataclasses.fields(own)}
    instance = own(**values)
    given = fields_of(instance)
    assert list(given.items()) == list(values.items())
    fields_of(own(**dict.fromkeys(values)))
    assert given == values  # each its own


def test_fields_are_given_in_their_order_and_as_they_are() -> None:
    category = Category(id="a", name="b", kind="c", tokens=4)
    assert list(fields_of(category).items()) == [
        ("id", "a"),
        ("name", "b"),
        ("kind", "c"),
        ("tokens", 4),
    ]
    for other in (("a", 4), {"a": 4}, None):
        with pytest.raises(TypeError, match="dataclass"):
            fields_of(other)


def test_values_of_one_class_are_compared_hashed_and_copied_by_their_fields() -> None:
    category = Category(id="a", name="b", kind="c", tokens=4)
    same = dataclasses.replace(category)
    assert category == same
    assert hash(category) == hash(same)
    assert category != dataclasses.replace(category, tokens=5)
    others: set[object] = {
        Breakdown(input_tokens=1, cache_creation_tokens=None, cache_read_tokens=None)
    }
    assert category not in others
    assert copy.deepcopy(category) == copy.copy(category) == category
    assert pickle.loads(pickle.dumps(category)) == category  # noqa: S301 -- made here


def test_defaults_are_those_of_the_class() -> None:
    @dataclass(frozen=True, slots=True)
    class Example:
        first: int
        second: tuple[int, ...] = (1, 2)
        third: list[int] = field(default_factory=list)

    made = Example(1)  # type: ignore[call-arg]  # type checkers see it where it is imported for them
    assert (made.first, made.second, made.third) == (1, (1, 2), [])
    assert made.third is not Example(1).third  # type: ignore[call-arg]  # as above


def test_other_dataclasses_are_refused() -> None:
    class After:
        value: int

        def __post_init__(self) -> None:
            """Do something after the fields."""

    for cls, frozen, slots in (
        (After, True, True),
        (Category, False, True),
        (Category, True, False),
    ):
        with pytest.raises(TypeError, match="only frozen dataclasses"):
            dataclass(frozen=frozen, slots=slots)(cls)


def test_a_subclass_of_either_kind_is_frozen() -> None:
    @dataclasses.dataclass(frozen=True)
    class Standard(Category):
        more: int = 0

    @dataclass(frozen=True, slots=True)
    class Own(Category):
        more: int = 0

    classes: list[Any] = [Standard, Own, Category]
    for cls in classes:
        assert cls.__dataclass_params__.frozen
        instance = cls(id="a", name="b", kind="c", tokens=4)
        with pytest.raises(FrozenInstanceError):
            instance.tokens = 5
