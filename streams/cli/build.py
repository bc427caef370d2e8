"""Which build this is: whether the deriver's hot modules are compiled."""

from importlib.util import find_spec

_ONE_OF_THEM = "streams.core.derivation.derive"
"""Of the compiled modules; `hatch_build.py` compiles all of them or none."""


def is_compiled() -> bool:
    """Return whether compiled modules run, and not the Python sources."""
    spec = find_spec(_ONE_OF_THEM)
    return spec is not None and spec.origin is not None and not spec.origin.endswith(".py")


def mark() -> str:
    """Return what `contextgauge --version` says after the version: nothing of the pure build."""
    return " (compiled)" if is_compiled() else ""
