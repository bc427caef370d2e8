"""`contextgauge view` and `sessions` of a home in which every runtime has sessions."""

import json
from pathlib import Path
from typing import Any

from contextgauge.normalise.runtimes import ADAPTERS
from tests.commands import Command
from tests.e2e.view_kit import View
from tests.runtimes import every_runtime


def test_a_home_with_every_runtime_shows_each_session_as_its_runtime_wrote_it(
    command: Command, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    every_runtime.write(home)
    command.environment["HOME"] = str(home)
    view = View(command, tmp_path / "state", "--titles")
    view.wait_until_read()
    shown = [_shown(session) for session in view.sessions().values()]
    assert sorted(shown) == sorted(every_runtime.SHOWN)
    read = {each.runtime for each in ADAPTERS if each.tells is not None}
    assert {each.runtime for each in shown} == read
    assert view.stop() == 0
    listed = json.loads(command("sessions", str(home), "--json").stdout)
    untitled = sorted(each._replace(title=None) for each in every_runtime.SHOWN)
    assert sorted(map(_shown, listed)) == untitled


def _shown(session: dict[str, Any]) -> every_runtime.Shown:
    main, identity = session["chains"]["main"], session["identity"]
    counts = session["compactions"]
    kinds = ("manual", "automatic", "idle", "unknown_trigger")
    return every_runtime.Shown(
        identity["runtime"],
        session["session_id"],
        main["used_tokens"],
        main["window"],
        sum(counts[each] for each in kinds),
        identity["cwd"],
        session.get("title"),
    )
