"""The local file of `contextgauge view` takes windows that the status line was given."""

from pathlib import Path

from streams import codec
from tests.core.given import SESSION, assistant, line
from tests.flow.local_view_kit import Run, figures


def window_of(local: Path) -> object:
    (view,) = figures(local)["views"].values()
    chain = view["chains"]["main"]
    return chain["window"], chain["window_source"], chain["used_percent"]


def test_a_window_that_becomes_known_is_that_of_the_next_response(tmp_path: Path) -> None:
    file, local = tmp_path / "projects" / "p" / f"{SESSION}.jsonl", tmp_path / "local"
    file.parent.mkdir(parents=True)
    file.write_bytes(codec.dumps(line(assistant("a", read=100_000, model="m", at=1))) + b"\n")
    windows: dict[str, int] = {}
    run = Run(file.parent.parent, local, windows=lambda _session_id: windows)
    run.all()
    assert window_of(local) == (200_000, "default", 50.0)
    windows = {"m": 1_000_000}
    with file.open("ab") as more:
        more.write(codec.dumps(line(assistant("b", read=190_000, model="m", at=9))) + b"\n")
    run = Run(file.parent.parent, local, windows=lambda _session_id: windows)
    run.all()
    assert window_of(local) == (1_000_000, "runtime", 19.0)
    windows = {"m": 500_000}
    with file.open("ab") as more:
        more.write(codec.dumps(line(assistant("c", read=200_000, model="m", at=19))) + b"\n")
    run.all()
    assert window_of(local) == (500_000, "runtime", 40.0)
