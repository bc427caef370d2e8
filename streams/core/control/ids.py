"""Ids of entries of the log of commands: functions of what causes them."""

import uuid
from typing import Final

NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:contextgauge:commands")


def id_of(*parts: object) -> str:
    r"""Return a UUIDv5 of the parts; each comes with its length, so that none runs into another.

    A lone surrogate, which a session's id may hold, is written as `\uXXXX`, as in all output.
    """
    name = "".join(f"{len(part)}:{part}" for part in map(str, parts))
    return str(uuid.uuid5(NAMESPACE, name.encode("utf-8", "backslashreplace").decode()))
