"""What the command line's tests share."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def hangup() -> Iterator[None]:
    """Heed SIGHUP in this process, which `nohup` makes tests ignore."""
    former = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, former)
