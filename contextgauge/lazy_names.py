"""Packages whose names are imported when they are asked for, so that none is paid for unused."""

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: dict[str, object], modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package, whose globals are given: it imports a name once.

    `modules` names the modules, and what each of them has, separated by spaces. Raises
    AttributeError for other names, as a package does.
    """
    places = {name: module for module, names in modules.items() for name in names.split()}

    def import_name(name: str) -> object:
        module = places.get(name)
        if module is None:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        value: object = getattr(import_module(module), name)
        package[name] = value
        return value

    return import_name
