"""What is in force: thresholds, windows and limits, and the tag that names them on each record."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from contextgauge.windows import Catalog, base_name, plain_name

RULES_VERSION: Final = "6"
"""Version of R1 to R35 as implemented; raised when the same input would give other records."""

STATE_VERSION: Final = 5
"""Version of the parts of a session's state: a build refuses a partition that has another."""

DEFAULT_WINDOW: Final = 200_000
"""Window assumed for a model that nothing is known of, tokens (seed: Claude 4.5's)."""

DEFAULT_THRESHOLDS: Final = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
"""Percent used at which a warning is given; 10 used is «90 % remaining»."""


def version_of(tag: str) -> str:
    """Return the version of the rules in a record's tag, whatever was configured."""
    return tag.partition("-")[0]


@dataclass(frozen=True, slots=True)
class Rules:
    """The configuration of a derivation.

    `configured_windows` maps model names, or beginnings of them, to tokens. With `content` there
    are records of what messages contain (R35); all others are the same, and so is the tag. Raises
    ValueError for a configuration that cannot be meant.
    """

    catalog: Catalog
    thresholds: tuple[int, ...] = DEFAULT_THRESHOLDS
    configured_windows: Mapping[str, int] = field(default_factory=dict)
    default_window: int = DEFAULT_WINDOW
    content: bool = False
    configured: Catalog = field(init=False)
    tag: str = field(init=False)

    def __post_init__(self) -> None:
        if not self.thresholds or any(
            low >= high for low, high in zip(self.thresholds, self.thresholds[1:], strict=False)
        ):
            raise ValueError(f"thresholds must ascend and be at least one: {self.thresholds}")
        if self.thresholds[0] < 1:
            raise ValueError(f"a threshold is a percentage above 0: {self.thresholds}")
        if self.default_window < 1 or any(w < 1 for w in self.configured_windows.values()):
            raise ValueError("a window is a number of tokens above 0")
        configured = Catalog.from_rows(
            {"prefix": plain_name(base_name(name)[0]), "context": window}
            for name, window in self.configured_windows.items()
        )
        force = (
            self.thresholds,
            configured.digest,
            self.default_window,
            self.catalog.digest,
        )
        digest = hashlib.sha256(repr(force).encode()).hexdigest()[:8]
        object.__setattr__(self, "configured", configured)
        object.__setattr__(self, "tag", f"{RULES_VERSION}-{digest}")
