"""Authorities and certificates of one test session: made by openssl, kept in its folder only."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

KEY_PASSWORD = "marker-key-password"  # noqa: S105 -- of keys that live as long as a test session


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key, each in PEM form."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates in its folder."""

    folder: Path
    name: str

    @classmethod
    def make(cls, folder: Path, name: str) -> "Authority":
        """Make an authority's own key and certificate."""
        folder.mkdir(parents=True, exist_ok=True)
        made = cls(folder, name)
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-days", "3650", "-subj", f"/CN={name}"),
            *("-keyout", made._key, "-out", made.file),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        )
        return made

    @property
    def file(self) -> Path:
        """What clients trust."""
        return self.folder / f"{self.name}.pem"

    @property
    def _key(self) -> Path:
        return self.folder / f"{self.name}.key"

    def sign(self, name: str, host: str | None = None, *, days: int = 3650) -> Certificate:
        """Return a certificate for a user of this name, or for a server at a host."""
        made = Certificate(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        request = self.folder / f"{name}.csr"
        _openssl(
            *("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-subj", f"/CN={name}", "-keyout", made.key, "-out", request),
        )
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName=DNS:{host or name}\n")
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self._key),
            *("-CAcreateserial", "-days", str(days), "-extfile", extensions),
            *("-out", made.certificate),
        )
        return made

    def encrypt(self, key: Path) -> Path:
        """Return an encrypted copy of a key, which `KEY_PASSWORD` opens."""
        target = key.with_suffix(".encrypted")
        _openssl(
            *("pkcs8", "-topk8", "-in", key, "-out", target),
            *("-passout", f"pass:{KEY_PASSWORD}"),
        )
        return target


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
