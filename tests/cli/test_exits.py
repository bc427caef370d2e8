"""Exit codes: one closed table, and each of them from the real command where it can be had."""

import subprocess
import sys

import pytest

from contextgauge import errors
from streams.cli.exits import Exit, by_signal, code_of, where
from tests.commands import Command


def test_exit_codes_do_not_change() -> None:
    assert {code.name: int(code) for code in Exit} == {
        "DONE": 0,
        "STOPPED": 1,
        "WRONG": 2,
        "VERSION": 3,
        "POSITION": 4,
        "FLOOD": 5,
        "TIME_LIMIT": 6,
        "DIFFERENT": 7,
        "INTERNAL": 70,
        "AWAY": 75,
    }
    assert all(code.meaning.endswith(".") for code in Exit)
    assert by_signal(15) == 143


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.StopError, Exit.STOPPED),
        (errors.ConfigError, Exit.WRONG),
        (errors.VersionError, Exit.VERSION),
        (errors.PositionError, Exit.POSITION),
        (errors.DeadLetterFlood, Exit.FLOOD),
        (errors.RetryError, Exit.AWAY),
    ],
)
def test_each_error_has_its_code(error: type[Exception], code: Exit) -> None:
    assert code_of(error("what to do")) is code


def test_the_place_of_an_error_is_shown_without_its_text() -> None:
    def inner() -> None:
        raise KeyError("text of a message")

    def outer() -> None:
        try:
            inner()
        except KeyError as error:
            raise ValueError("more of it") from error

    with pytest.raises(ValueError, match="more") as caught:
        outer()
    place = where(caught.value)
    assert "text of a message" not in place.replace('raise KeyError("text of a message")', "")
    assert place.index("builtins.KeyError") < place.index("builtins.ValueError")
    assert "in inner" in place


def test_an_error_of_the_program_itself_is_exit_70_with_where_it_happened() -> None:
    script = (
        "import sys\n"
        "from streams.cli import app, topics\n"
        "def broken(*_):\n"
        "    raise KeyError(sys.argv[2] * 2)\n"
        "topics.wiring.settings = broken\n"
        "sys.argv = ['contextgauge', 'topics', 'list']\n"
        "app.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == Exit.INTERNAL
    assert "in broken" in done.stderr
    assert "builtins.KeyError" in done.stderr
    assert "listlist" not in done.stderr
    assert "report it" in done.stderr


def test_wrong_arguments_and_wrong_settings_are_exit_2(command: Command) -> None:
    assert command("derive", "--no-such").returncode == Exit.WRONG
    assert command("derive", STOP_TIMEOUT_S="no").returncode == Exit.WRONG


@pytest.mark.extended
def test_an_unavailable_service_is_exit_75(command: Command) -> None:
    for words in (("topics", "list"), ("sessions",)):
        assert command(*words).returncode == Exit.AWAY
