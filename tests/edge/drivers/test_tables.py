"""The drivers of a configuration: each key is used or refused, and secrets come from elsewhere."""

import tomllib
from pathlib import Path

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError
from streams.edge.drivers.tables import driver_of, drivers_of
from streams.ports.control import Driver
from tests.edge.drivers.codex_kit import THREAD, TOKEN, CodexServer
from tests.edge.drivers.opencode_kit import PASSWORD, SESSION, OpencodeServer


def drivers(text: str) -> dict[str, Driver]:
    return drivers_of(tomllib.loads(text), SystemClock())


async def test_drivers_work_as_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_TOKEN", TOKEN)
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    codex, opencode = CodexServer(), OpencodeServer()
    async with codex.listening() as codex_url, opencode.listening() as opencode_url:
        by_name = drivers(f"""
            [codex]
            url = "{codex_url}"
            token_env = "CODEX_TOKEN"
            timeout_s = 5
            [opencode]
            url = "{opencode_url}"
            password_file = "{tmp_path / "password"}"
            model = "anthropic/claude-haiku"
            [claude-code]
        """)
        assert list(by_name) == [driver.name for driver in by_name.values()]
        assert (await by_name["codex"].compact(THREAD, None)).outcome == "done"
        assert (await by_name["opencode"].compact(SESSION, None)).outcome == "done"
        assert (await by_name["claude-code"].compact("s", "keep")).outcome == "started"
        for driver in by_name.values():
            await driver.stop()
    assert opencode.bodies == [{"providerID": "anthropic", "modelID": "claude-haiku"}]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[cursor]", "[drivers.cursor] is unknown: use codex, opencode, claude-code"),
        ("codex = 3", "drivers.codex is not a table: write [drivers.codex]"),
        ("[codex]", "[drivers.codex]: url is missing: set it, or command"),
        ('[codex]\nurl = "ws://x"\ncommand = ["codex"]', "command is set, and url is too"),
        ('[codex]\nurl = "http://x"', "url is not valid: write ws://… or wss://… or unix://…"),
        ('[codex]\nurl = "ws://ann:pa55@x"', "url is not valid"),
        ('[codex]\ncommand = "codex app-server"', 'write ["codex", "app-server"]'),
        ('[codex]\nurl = "ws://x"\ntoken = "t"', "(did you mean 'token_env'?)"),
        ('[codex]\nurl = "ws://x"\ntoken_env = "UNSET"', "names UNSET, which is not set: set it"),
        ('[codex]\nurl = "ws://x"\ntoken_env = "A"\ntoken_file = "b"', "and token_env is too"),
        ('[codex]\nurl = "wss://x"\nca_file = "nowhere.pem"', "nowhere.pem cannot be read"),
        ('[opencode]\nmodel = "gpt-5"', "model is not valid: write provider/model"),
        ("[opencode]\ntimeout_s = 0", "timeout_s is 0: give a number of seconds, 1 to 3600"),
        ("[opencode]\ntimeout_s = true", "timeout_s is True: give a number of seconds"),
        ("[opencode]\nusername = 3", "username is not a string"),
        ("[claude-code]\nurl = 'http://x'", "url is not known here"),
    ],
)
def test_a_wrong_configuration_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as refused:
        drivers(text)
    assert fault in str(refused.value)
    assert "pa55" not in str(refused.value)


def test_every_fault_is_reported() -> None:
    with pytest.raises(ConfigError) as refused:
        drivers("[codex]\n[opencode]\ntimeout_s = 0")
    assert len(str(refused.value).splitlines()) == 2


def test_opencode_needs_no_configuration() -> None:
    assert driver_of("opencode", {}, SystemClock()).name == "opencode"
