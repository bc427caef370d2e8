"""The documents that messages refer to: in the package, or in a checkout. Without pathlib."""

from os import path

_PACKAGE = path.dirname(path.abspath(__file__))
_PACKAGED = path.join(_PACKAGE, "docs")


def document(name: str) -> str:
    """Return the path of a document of `docs/` on this machine."""
    folder = _PACKAGED if path.isdir(_PACKAGED) else path.join(path.dirname(_PACKAGE), "docs")
    return path.join(folder, name)
