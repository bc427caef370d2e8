"""Commands whose packages come with an extra of their own."""

from collections.abc import Iterator
from contextlib import contextmanager

from contextgauge.errors import ConfigError


@contextmanager
def needs(command: str, extra: str, packages: frozenset[str]) -> Iterator[None]:
    """Turn a missing package into a ConfigError that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        raise ConfigError(
            f"`contextgauge {command}` needs packages that are not installed: install "
            f"'contextgauge[pipeline,{extra}]', the same way as contextgauge"
        ) from None


ANALYSIS = frozenset(("duckdb", "numpy", "pyarrow"))
"""Of the extra `analysis`."""
