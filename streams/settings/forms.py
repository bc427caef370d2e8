"""What several settings have in common: the prefix of their variables, and forms of values."""

from typing import Annotated

from pydantic import Field

PREFIX = "CONTEXTGAUGE_"

FOR_EVER = -1
"""A retention of this many days keeps for ever."""

KAFKA_NAME = r"^[a-zA-Z0-9._-]*$"
"""What Kafka allows in the name of a topic."""

Days = Annotated[int, Field(ge=FOR_EVER, le=36_500)]
