"""The package that others import has what it names, and every kind of record."""

import contextgauge
from schemas.records import DATA_CLASSES


def test_what_is_named_is_there() -> None:
    assert all(hasattr(contextgauge, name) for name in contextgauge.__all__)


def test_every_kind_of_record_is_public() -> None:
    assert {cls.__name__ for cls in DATA_CLASSES} <= set(contextgauge.__all__)
