"""The local stack that `contextgauge stack up` started: its state file.

A service is recorded with its process id and the time when the process started, so that a process
id that was reused since is never taken for the service.
"""

import contextlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from contextgauge import user_folders
from contextgauge.errors import ConfigError

STATE_FILE: Final = "stack.json"

_LARGEST_PID: Final = (1 << 31) - 1
"""No system has larger ones, and its calls take no larger ones."""


def stack_folder() -> Path:
    """Return where the local stack keeps data, logs and its state."""
    return Path(user_folders.stack_folder())


@dataclass(frozen=True, slots=True)
class Running:
    """A started process. `started` is the system's own mark of when, compared and never read."""

    pid: int
    started: str

    def alive(self) -> bool:
        """Return whether that very process still runs."""
        with contextlib.suppress(ChildProcessError):  # collect it, if it is a child that ended
            os.waitpid(self.pid, os.WNOHANG)
        return start_mark(self.pid) == self.started


@dataclass(frozen=True, slots=True)
class Service:
    """One service of a stack: the address to connect to, and its process."""

    address: str
    process: Running
    log_file: str


def read_state(folder: Path) -> dict[str, Service]:
    """Return the recorded services of a stack by name; none without a file. Raises ConfigError."""
    path = folder / STATE_FILE
    try:
        state = json.loads(path.read_bytes())
        return {name: _service(entry) for name, entry in state.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror}): make it readable, or name Kafka and Redis "
            "by CONTEXTGAUGE_BOOTSTRAP_SERVERS and CONTEXTGAUGE_REDIS_URL"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{path} is damaged: stop the processes that it names and delete it"
        ) from error


def _service(entry: dict[str, Any]) -> Service:
    service = Service(entry["address"], Running(**entry["process"]), entry["log_file"])
    process = service.process
    texts = (service.address, process.started, service.log_file)
    is_pid = type(process.pid) is int and 0 < process.pid <= _LARGEST_PID
    if not is_pid or not all(isinstance(text, str) for text in texts):
        raise ValueError("a service of the stack is not what it should be")
    return service


def stack_addresses(folder: Path | None = None) -> dict[str, str]:
    """Return the addresses of the services that run, by name: `kafka`, `redis`.

    The address of a service that ended may be another program's by now. Raises ConfigError.
    """
    state = read_state(stack_folder() if folder is None else folder)
    return {name: service.address for name, service in state.items() if service.process.alive()}


def start_mark(pid: int) -> str | None:
    """Return a mark of when the process of this pid started, None where none runs."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            # The command's name is in parentheses and may hold anything; field 3 is the state
            # (Z: ended, not yet collected), 20 the number of threads, 22 the start in ticks since
            # boot. While one of its threads still ends, it holds its ports.
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] == "Z" and int(fields[17]) <= 1 else fields[19]
    listed = subprocess.run(  # noqa: S603 -- fixed arguments, no shell
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],  # noqa: S607 -- a tool of the system
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split(maxsplit=1)
    return None if len(listed) != 2 or listed[0].startswith("Z") else listed[1].strip()  # noqa: PLR2004 -- state and time
