"""Settings of `contextgauge ingest`: address, access, limits."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field, field_validator

from contextgauge.settings.forms import PREFIX, SettingsPart
from schemas.topics import MIB


class IngestSettings(SettingsPart):
    """Settings of `contextgauge ingest`: address, access, limits."""

    ingest_host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address that takes messages over HTTP; 0.0.0.0 for all interfaces. Beyond "
        "this machine, also set CONTEXTGAUGE_INGEST_TOKENS_FILE.",
    )
    ingest_port: int = Field(
        default=8643,
        ge=0,
        le=65_535,
        description="Port that takes messages over HTTP; 0: any free port, shown in the log.",
    )
    ingest_tokens_file: Path | None = Field(
        default=None,
        description="File of the publishers: a name and a token hash per line, as `contextgauge "
        "token NAME --publish` prints it; it may be the file of the readers too. Reloaded when it "
        "changes. If unset, anyone who reaches the port may publish.",
    )
    ingest_names: tuple[str, ...] = Field(
        default=(),
        description="Names by which the server is reached, separated by commas, and as localhost, "
        "as CONTEXTGAUGE_SERVE_NAMES. Default: any name; on the loopback interface localhost "
        "alone.",
    )
    ingest_proxies: tuple[str, ...] = Field(
        default=(),
        description="Addresses or networks of the reverse proxies whose X-Forwarded-For is "
        "trusted, separated by commas. Default: none.",
    )
    ingest_requests_per_s: int = Field(
        default=1_000,
        ge=0,
        le=1_000_000,
        description="Requests per second of one publisher (a token, else an address), with bursts "
        "of ten seconds' worth; 0: no limit.",
    )
    ingest_body_limit_bytes: int = Field(
        default=32 * MIB,
        ge=64 * 1024,
        le=512 * MIB,
        description="Largest body of a request, as it is sent and decompressed.",
    )
    ingest_waiting_bytes: int = Field(
        default=128 * MIB,
        ge=64 * 1024,
        description="What may be under way: bodies of requests, and messages that wait for Kafka. "
        "Beyond it, requests are answered with 429 and Retry-After.",
    )
    ingest_no_text: bool = Field(
        default=False,
        description="Whether texts are left out of what is taken over HTTP, each replaced by its "
        "length, as by `contextgauge publish --no-text`.",
    )

    @field_validator("ingest_names", "ingest_proxies", mode="before")
    @classmethod
    def _split_at_commas(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(part.strip() for part in value.split(",") if part.strip())


def inconsistencies(settings: IngestSettings) -> Iterator[str]:
    """Yield an error for each setting that contradicts another."""
    if settings.ingest_waiting_bytes < 2 * settings.ingest_body_limit_bytes:
        yield (
            f"{PREFIX}INGEST_WAITING_BYTES={settings.ingest_waiting_bytes} is below twice "
            f"{PREFIX}INGEST_BODY_LIMIT_BYTES={settings.ingest_body_limit_bytes}: a request "
            "could never be taken. Raise it, or lower the other"
        )
