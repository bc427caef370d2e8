"""Settings of `contextgauge serve`: addresses, access, limits."""

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from contextgauge.settings.forms import SettingsPart


class ServingSettings(SettingsPart):
    """Settings of `contextgauge serve`: addresses, access, limits."""

    serve_host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address of the API and the page; 0.0.0.0 for all interfaces. Beyond this "
        "machine, also set CONTEXTGAUGE_SERVE_TOKENS_FILE.",
    )
    serve_port: int = Field(
        default=8642,
        ge=0,
        le=65_535,
        description="Port of the API and the page; 0: any free port, shown in the log.",
    )
    serve_tokens_file: Path | None = Field(
        default=None,
        description="File of the readers: a name and a token hash per line, as "
        "`contextgauge token NAME` prints it. Reloaded when it changes. If unset, anyone who "
        "reaches the port may read.",
    )
    serve_control: bool = Field(
        default=False,
        description="Whether the API may request compactions, cancel them, set thresholds and "
        "delete text. Beyond this machine it needs CONTEXTGAUGE_SERVE_TOKENS_FILE too, and tokens "
        "that `contextgauge token --write` made.",
    )
    serve_origins: tuple[str, ...] = Field(
        default=(),
        description="Origins whose pages may read the API from a browser (CORS), such as "
        "https://board.example, separated by commas.",
    )
    serve_names: tuple[str, ...] = Field(
        default=(),
        description="Names by which the server is reached besides localhost, separated by commas: "
        "without tokens, requests with another name in Host are refused. Default: any name; on the "
        "loopback interface localhost alone.",
    )
    serve_proxies: tuple[str, ...] = Field(
        default=(),
        description="Addresses or networks of the reverse proxies whose X-Forwarded-For is "
        "trusted, separated by commas.",
    )
    serve_requests_per_s: int = Field(
        default=100,
        ge=0,
        le=1_000_000,
        description="Requests per second for one reader (a token, else an address), with bursts "
        "of ten seconds' worth; 0: no limit.",
    )
    serve_streams: int = Field(
        default=2_000,
        ge=1,
        le=100_000,
        description="Concurrent readers of the live feed, 1 to 100 000. Each uses a connection, "
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
