"""A record's headers by name, for tests of what contextgauge wrote: it writes none that is null."""

from contextgauge.ports import Headers


def by_name(headers: Headers) -> dict[str, bytes]:
    """Return the values by name, the last one of each."""
    assert all(value is not None for _, value in headers)
    return {name: value for name, value in headers if value is not None}
