"""TLS for Kafka and Redis: the files, and what they are checked for."""

import ssl
from dataclasses import dataclass, field

from contextgauge.errors import ConfigError


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Authorities to trust, and the client's certificate.

    `variables` is how the settings' names begin, for errors.
    """

    variables: str
    ca_file: str | None = None
    """Authorities to trust instead of the system's."""
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True


def context_of(files: TlsFiles) -> ssl.SSLContext:
    """Return a client's context. Raises ConfigError where a file is not what it should be."""
    ca_variable = f"{files.variables}CA_FILE"
    try:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=files.ca_file)
    except ssl.SSLError:
        raise ConfigError(
            f"{ca_variable}={files.ca_file} holds no certificate in PEM form "
            "(-----BEGIN CERTIFICATE-----): convert it, or name the right file"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{ca_variable}={files.ca_file} cannot be read ({error.strerror}): name the PEM file "
            "of the authority that signed the server's certificate"
        ) from None
    context.check_hostname = files.check_hostname
    if files.certificate_file is not None:
        _load_own(context, files, files.certificate_file)
    return context


def _load_own(context: ssl.SSLContext, files: TlsFiles, certificate_file: str) -> None:
    for name, path in (("CERTIFICATE_FILE", certificate_file), ("KEY_FILE", files.key_file)):
        try:
            if path is not None:
                with open(path, "rb"):  # noqa: PTH123 -- only whether it can be
                    pass
        except OSError as error:
            raise ConfigError(
                f"{files.variables}{name}={path} cannot be read ({error.strerror}): name a file "
                "that this process may read"
            ) from None
    try:
        # Given always: asked for a password that is not there, OpenSSL would ask the terminal.
        context.load_cert_chain(certificate_file, files.key_file, files.key_password or "")
    except ssl.SSLError as error:
        raise ConfigError(_own_refused(files, error.reason or "")) from None
    except ValueError:
        raise ConfigError(f"{files.variables}KEY_PASSWORD is too long for OpenSSL") from None


def _own_refused(files: TlsFiles, reason: str) -> str:
    pair = f"{files.variables}CERTIFICATE_FILE and {files.variables}KEY_FILE"
    if reason == "KEY_VALUES_MISMATCH":
        return f"{pair} do not belong together: name the key that the certificate was made for"
    if files.key_password is None:
        return (
            f"{pair} cannot be used: are both in PEM form? An encrypted key needs "
            f"{files.variables}KEY_PASSWORD or {files.variables}KEY_PASSWORD_FILE"
        )
    return (
        f"{pair} cannot be used: are both in PEM form, and is {files.variables}KEY_PASSWORD "
        "(or what its file holds) the key's?"
    )
