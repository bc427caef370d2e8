"""How `contextgauge serve` answers: where, whom, how much."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode


class ServingSettings(BaseSettings):
    """How `contextgauge serve` answers: where, whom, how much."""

    serve_host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address that the API and the page are served on; 0.0.0.0 for all. Beyond "
        "this machine, set CONTEXTGAUGE_SERVE_TOKENS_FILE too.",
    )
    serve_port: int = Field(
        default=8642,
        ge=0,
        le=65_535,
        description="Port that the API and the page are served on; 0: any free one, which the "
        "log tells.",
    )
    serve_tokens_file: Path | None = Field(
        default=None,
        description="File of those who may read, a name and a token's hash a line, as "
        "`contextgauge token NAME` prints it. Read anew when it changes. Not set, whoever "
        "reaches the port may read.",
    )
    serve_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Origins whose pages may read the API from a browser (CORS), such as "
        "https://board.example; several with commas. None unless set.",
    )
    serve_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Addresses or networks of the reverse proxies whose X-Forwarded-For is "
        "believed, with commas. None unless set.",
    )
    serve_requests_per_s: int = Field(
        default=100,
        ge=0,
        le=1_000_000,
        description="Requests a second that one reader (a token, else an address) may make, "
        "ten seconds' worth at once; 0: no limit.",
    )
    serve_streams: int = Field(
        default=2_000,
        ge=1,
        le=100_000,
        description="Readers of the live feed at a time, 1 to 100 000. Each takes a connection, "
        "so the limit of open files must be higher.",
    )

    @field_validator("serve_origins", "serve_proxies", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(part.strip() for part in value.split(",") if part.strip())

    @field_validator("serve_origins")
    @classmethod
    def _check_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            parts = urlsplit(origin)
            if (
                parts.scheme not in {"http", "https"}
                or origin != f"{parts.scheme}://{parts.netloc}"
            ):
                raise ValueError(f"has {origin!r}, which is no origin: https://host[:port]")
        return value
