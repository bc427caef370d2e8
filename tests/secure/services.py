"""A real Kafka and a real Redis with TLS, users and access control lists, on free ports."""

import subprocess
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Final
from urllib.parse import quote

from redis import Redis

from contextgauge.settings.local_stack import Running
from streams.edge.local_stack import processes
from streams.edge.local_stack.stack import (
    CONFIG_FOLDER,
    STOP_TIMEOUT_S,
    LocalStack,
    _free_ports,
    _program,
    _redis_answers,
    _wait,
    jars_folder,
)
from tests.secure.certificates import Authority

LISTENERS = ("plaintext", "ssl", "mutual", "sasl_ssl", "sasl_plaintext", "misnamed", "sessions")

SESSION_MS = 4_000
"""Of the listener `sessions`: for so long it is proven who a client is."""

PASSWORD = "marker-password"  # noqa: S105 -- of servers that live as long as a test session
"""What no output may ever hold."""

USERS = (
    *("admin", "publisher", "deriver", "projector", "controller", "operator", "creator"),
    *("analyst", "requester", "exporter", "outsider"),
)


_NEXT: Final = "next"
_ACLS: Final = f"""
public class Acls {{
    public static void main(String[] words) {{
        var one = new java.util.ArrayList<String>();
        for (String word : words) {{
            if (word.equals("{_NEXT}")) {{
                org.apache.kafka.tools.AclCommand.main(one.toArray(new String[0]));
                one.clear();
            }} else {{
                one.add(word);
            }}
        }}
    }}
}}
"""


@dataclass
class Secured:
    """What runs in a folder; each is started on first use."""

    folder: Path
    ports: dict[str, int] = field(default_factory=dict)
    running: list[Running] = field(default_factory=list)

    def __post_init__(self) -> None:
        _program("openssl", "OpenSSL", "apt-get install openssl")
        self.authority = Authority.make(self.folder / "authority", "authority")
        self.other = Authority.make(self.folder / "other", "other")
        self.server = self.authority.sign("server", "localhost")
        self.client = self.authority.sign("superuser")
        self.stranger = self.other.sign("stranger")

    def stop(self) -> None:
        """End what was started."""
        for process in self.running:
            processes.stop(process, STOP_TIMEOUT_S)

    # -- Kafka

    def start_kafka(self) -> str:
        """Start it once; return its folder. Raises MissingPartError."""
        if "ssl" not in self.ports:
            java = LocalStack(self.folder / "parts").prepare(["kafka"])["kafka"]
            self.ports |= zip(
                (*LISTENERS, "controller_port"),
                _free_ports(len(LISTENERS) + 1, self.folder),
                strict=True,
            )
            self._java = [java, "-Xmx384m", "-cp", f"{jars_folder()}/*"]
            self._format_kafka()
            self.restart_kafka()
        return str(self.folder)

    def _format_kafka(self) -> None:
        keystore = self.folder / "keystore.pem"
        keystore.write_text(self.server.key.read_text() + self.server.certificate.read_text())
        template = Template((Path(__file__).parent / "kafka.properties").read_text())
        self._config = self.folder / "kafka.properties"
        self._config.write_text(
            template.substitute(
                {name: str(port) for name, port in self.ports.items()},
                session_ms=SESSION_MS,
                data_folder=self.folder / "kafka",
                keystore=keystore,
                truststore=self.authority.file,
                plain_users=" ".join(f'user_{user}="{PASSWORD}"' for user in USERS),
            )
        )
        scram = [
            argument
            for user in USERS
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for argument in ("-S", f"{mechanism}=[name={user},password={PASSWORD}]")
        ]
        cluster = str(uuid.uuid5(uuid.NAMESPACE_URL, str(self.folder)))
        self._run_java(
            *("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._config)), *scram
        )

    def restart_kafka(self) -> None:
        """Start the broker, on the same ports and data."""
        log_file = self.folder / "kafka.log"
        begin = log_file.stat().st_size if log_file.exists() else 0
        log4j = f"-Dlog4j2.configurationFile={CONFIG_FOLDER}/log4j2.properties"
        self.kafka = self._start(
            [self._java[0], log4j, *self._java[1:], "kafka.Kafka", str(self._config)],
            log_file,
            lambda: b"Kafka Server started" in log_file.read_bytes()[begin:],
        )

    def _run_java(self, *arguments: str) -> str:
        # For programs that live a second: not to compile what runs once halves that second.
        java = [self._java[0], "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *self._java[1:]]
        done = subprocess.run([*java, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def acl(self, *commands: Sequence[str]) -> None:
        """Do what `kafka-acls.sh` does with the arguments of each, as the broker's own user.

        One program does all of it: each takes seconds to start.
        """
        server = f"localhost:{self.ports['plaintext']}"
        whole = [["--bootstrap-server", server, *arguments] for arguments in commands]
        source = self.folder / "Acls.java"
        source.write_text(_ACLS)
        self._run_java(str(source), *(word for each in whole for word in (*each, _NEXT)))

    def config(self, arguments: Sequence[str]) -> None:
        """Do what `kafka-configs.sh` does with these arguments, as the broker's own user."""
        server = f"localhost:{self.ports['plaintext']}"
        self._run_java("kafka.admin.ConfigCommand", "--bootstrap-server", server, *arguments)

    def kafka_settings(
        self, protocol: str = "sasl_ssl", user: str = "admin", mechanism: str = "SCRAM-SHA-512"
    ) -> dict[str, str]:
        """Return the settings, without prefix, that connect to the listener of this name."""
        settings = {"BOOTSTRAP_SERVERS": f"localhost:{self.ports[protocol]}"}
        real = {"mutual": "ssl", "misnamed": "ssl", "sessions": "sasl_ssl"}.get(protocol, protocol)
        settings["KAFKA_SECURITY_PROTOCOL"] = real
        if real.startswith("sasl"):
            settings["KAFKA_SASL_MECHANISM"] = mechanism
            settings["KAFKA_USERNAME"] = user
            settings["KAFKA_PASSWORD"] = PASSWORD
        if real.endswith("ssl"):
            settings["KAFKA_CA_FILE"] = str(self.authority.file)
        if protocol == "mutual":
            settings["KAFKA_CERTIFICATE_FILE"] = str(self.client.certificate)
            settings["KAFKA_KEY_FILE"] = str(self.client.key)
        return settings

    # -- Redis

    def start_redis(self, *, mutual: bool = False) -> str:
        """Start it once, with a port for TLS and one without; return its folder.

        Raises MissingPartError.
        """
        name = "redis_mutual" if mutual else "redis"
        folder = self.folder / name
        if name in self.ports:
            return str(folder)
        program = _program("redis-server", "Redis", "apt-get install redis-server")
        folder.mkdir()
        plain, tls = _free_ports(2, folder)
        arguments = [
            *("--port", str(plain), "--tls-port", str(tls), "--dir", str(folder), "--save", ""),
            *("--tls-cert-file", str(self.server.certificate)),
            *("--tls-key-file", str(self.server.key)),
            *("--tls-ca-cert-file", str(self.authority.file)),
            *("--tls-auth-clients", "yes" if mutual else "no"),
        ]
        self._start([program, *arguments], folder / "log", lambda: _redis_answers(plain))
        self.ports |= {name: tls, f"{name}_plain": plain}
        return str(folder)

    def start_redis_without(self, command: str) -> str:
        """Start another that does not know a command, as old ones and proxies; return its URL."""
        program = _program("redis-server", "Redis", "apt-get install redis-server")
        folder = self.folder / f"redis_without_{command}"
        folder.mkdir()
        (port,) = _free_ports(1, folder)
        # A user who may do everything: the default one needs no password.
        user = f"user admin on >{PASSWORD} ~* &* +@all\n"
        config = f'port {port}\ndir {folder}\nsave ""\nrename-command {command} ""\n{user}'
        (folder / "redis.conf").write_text(config)
        self._start([program, "redis.conf"], folder / "log", lambda: _redis_answers(port), folder)
        return f"redis://localhost:{port}/0"

    def redis(self, name: str = "redis") -> Redis:
        """Return a client of the port without TLS, as the default user, who may do everything."""
        return Redis(host="localhost", port=self.ports[f"{name}_plain"])

    def redis_settings(self, user: str | None = None) -> dict[str, str]:
        """Return the settings, without prefix, that connect over TLS."""
        settings = {
            "REDIS_URL": f"rediss://localhost:{self.ports['redis']}/0",
            "REDIS_CA_FILE": str(self.authority.file),
        }
        if user is not None:
            settings |= {"REDIS_USERNAME": user, "REDIS_PASSWORD": PASSWORD}
        return settings

    def _start(
        self,
        command: Sequence[str],
        log_file: Path,
        ready: Callable[[], bool],
        folder: Path | None = None,
    ) -> Running:
        process = processes.start(command, log_file, folder=folder or self.folder)
        self.running.append(process)
        assert _wait(process, ready), log_file.read_text()[-2000:]
        return process


def component(secured: Secured, user: str, redis_user: str | None = None) -> dict[str, str]:
    """Return the settings of a component: its user, and the names without prefixes."""
    redis = secured.redis_settings(redis_user) if redis_user else {}
    return secured.kafka_settings("sasl_ssl", user) | redis | {"PARTITIONS": "2"}


def url_with(url: str, user: str, password: str) -> str:
    """Return a URL with user and password in it."""
    return url.replace("://", f"://{quote(user, safe='')}:{quote(password, safe='')}@")


def as_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings as variables."""
    return {f"CONTEXTGAUGE_{name}": value for name, value in settings.items()}
