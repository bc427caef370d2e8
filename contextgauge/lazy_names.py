"""Packages whose names are imported when they are asked for, so that none is paid for unused."""

from collections.abc import Callable, Sequence
from importlib import import_module


def lazy_names(
    package: str, names: Sequence[str], modules: Sequence[str]
) -> Callable[[str], object]:
    """Return the package's `__getattr__`: it imports a name of `names` the first time.

    A name is looked for in `modules`, in this order, and they are imported until it is found: name
    those last that take longest. Raises AttributeError for other names, as a package does.
    """

    def import_name(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        for module in modules:
            found = import_module(module)
            if hasattr(found, name):
                return getattr(found, name)
        raise AttributeError(f"{package} names {name!r}, and none of its modules has it")

    return import_name
