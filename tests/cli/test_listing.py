"""`contextgauge sessions PATH` lists the same with what `view` has stored as without."""

import os
import random
import shutil
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from contextgauge.errors import ConfigError, StopError
from streams import codec
from streams.cli import transcripts
from streams.cli.listing import Listing, Order
from streams.codec import view_codec
from streams.edge.files.status_windows import StatusWindows
from streams.edge.files.watch import InputSource
from streams.settings import load_settings
from streams.wiring.stored import local_file, local_tag
from tests.edge.follower_kit import add
from tests.flow.local_view_kit import Run, write_sample

Derive = Callable[..., transcripts.Replay]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A projects folder; local files are in a folder of the test's."""
    monkeypatch.setenv("CONTEXTGAUGE_STATE_FOLDER", str(tmp_path / "state"))
    return write_sample(tmp_path / "projects")


class Viewed(NamedTuple):
    """A projects folder that was viewed to the end: not to be changed."""

    folder: Path
    state: Path
    listed: list[bytes]


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Viewed:
    here = tmp_path_factory.mktemp("viewed")
    folder = write_sample(here / "projects")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTEXTGAUGE_STATE_FOLDER", str(here / "state"))
        _view(folder).store.close()
        return Viewed(folder, here / "state", _without_store(folder))


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the files that are derived."""
    names: list[str] = []
    replay = transcripts.Replay

    def derive(sources: Sequence[InputSource], **options: object) -> transcripts.Replay:
        names.extend(Path(source.name).name for source in sources)
        return replay(sources, **options)  # type: ignore[arg-type]  # as they come

    monkeypatch.setattr(transcripts, "Replay", derive)
    return names


def _view(*paths: Path, tag: str | None = None) -> Run:
    """Read as `contextgauge view` does, to the end."""
    settings = load_settings()
    file = local_file(settings, [str(path) for path in paths])
    file.parent.mkdir(parents=True, exist_ok=True)
    return Run(paths[0], file, tag or local_tag(settings)).all()


def _file(*paths: Path) -> Path:
    return local_file(load_settings(), [str(path) for path in paths])


def _listed(*paths: Path, order: Order = Order.recent) -> list[bytes]:
    listed = Listing([str(path) for path in paths]).read(order, 1_000)
    views = [view_codec.encode(view) for view in listed.views]
    return [*views, repr((listed.total, listed.points)).encode()]


def _without_store(*paths: Path, order: Order = Order.recent) -> list[bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTEXTGAUGE_STATE_FOLDER", str(paths[0].parent / "none"))
        return _listed(*paths, order=order)


@pytest.mark.extended
def test_nothing_is_derived_where_all_is_stored(folder: Path, derived: list[str]) -> None:
    expected = {order: _without_store(folder, order=order) for order in Order}
    assert len(derived) == 2 * len(list(folder.rglob("*.jsonl")))
    _view(folder)
    derived.clear()
    assert {order: _listed(folder, order=order) for order in Order} == expected
    assert derived == []


def test_a_part_of_what_is_viewed_is_listed_alone(folder: Path, derived: list[str]) -> None:
    _view(folder)
    for part in (folder / "-srv-repo", min(folder.rglob("streams/*.jsonl"))):
        assert _listed(part) == _without_store(part)
    derived.clear()
    _listed(folder / "-srv-repo")
    assert derived == []


@pytest.mark.extended
def test_only_what_changed_is_derived(folder: Path, derived: list[str]) -> None:
    _view(folder)
    rollout = max(folder.rglob("rollout-*.jsonl"), key=lambda path: path.stat().st_size)
    lines = rollout.read_bytes().splitlines(keepends=True)
    rollout.write_bytes(b"".join(lines[: len(lines) // 2]))
    assert _listed(folder) == _without_store(folder)
    derived.clear()
    _listed(folder)
    assert derived == [rollout.name]


@pytest.mark.extended
def test_a_session_that_goes_on_in_a_new_file_is_derived_whole(
    folder: Path, derived: list[str]
) -> None:
    _view(folder)
    main = max(folder.glob("-srv-repo/*.jsonl"), key=lambda path: path.stat().st_size)
    # In the order of names before and after it.
    for name in ("0-resumed.jsonl", "zz-resumed.jsonl"):
        shutil.copy(main, main.with_name(name))
        derived.clear()
        _listed(folder)
        assert {name, main.name} <= set(derived)
        assert len(set(derived)) < len(list(folder.rglob("*.jsonl")))
        assert _listed(folder) == _without_store(folder)


def test_a_session_that_lost_a_file_is_derived_again(folder: Path) -> None:
    _view(folder)
    min(folder.rglob("subagents/agent-*.jsonl")).unlink()
    assert _listed(folder) == _without_store(folder)


@pytest.mark.extended
def test_another_builds_or_other_rules_figures_are_not_shown(
    folder: Path, derived: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _view(folder, tag="another build")
    assert _listed(folder) == _without_store(folder)
    _view(folder)
    monkeypatch.setenv("CONTEXTGAUGE_DEFAULT_WINDOW", "150000")
    derived.clear()
    listed = _listed(folder)
    assert len(derived) == len(list(folder.rglob("*.jsonl")))
    assert listed == _without_store(folder)


def _no_database(file: Path) -> None:
    file.write_bytes(b"no database at all" * 1_000)


def _truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 3])


def _without_a_table(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE members")


def _damaged_views(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE sessions SET view = ?", (b'{"session_id": 1',))


def _other_views(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE sessions SET view = ?", (b'{"last_ms": 0, "session_id": "s"}',))


def _damaged_totals(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE totals SET document = ?", (b"[]",))


def _damaged_marks(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE files SET mark = ?", (b"[1]",))


def _empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.extended
@pytest.mark.parametrize(
    "damage",
    [
        *(_no_database, _truncated, _without_a_table, _damaged_views, _other_views),
        *(_damaged_totals, _damaged_marks, _empty, Path.unlink),
    ],
)
def test_a_damaged_file_makes_no_difference(
    viewed: Viewed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]
) -> None:
    shutil.copytree(viewed.state, tmp_path / "state")
    monkeypatch.setenv("CONTEXTGAUGE_STATE_FOLDER", str(tmp_path / "state"))
    damage(_file(viewed.folder))
    assert _listed(viewed.folder) == viewed.listed


@pytest.mark.extended
def test_at_any_moment_of_a_reading_the_list_is_that_of_the_files(folder: Path) -> None:
    settings = load_settings()
    _file(folder).parent.mkdir(parents=True)
    expected, moments = _without_store(folder), []

    def look(number: int) -> None:
        moments.append(number)
        assert _listed(folder) == expected

    Run(folder, _file(folder), local_tag(settings)).all(look)
    assert len(moments) > 10
    assert _listed(folder) == expected


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(2))
def test_however_files_grew_while_they_were_viewed_the_list_is_that_of_the_files(
    folder: Path, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 -- by seed
    whole = {path: path.read_bytes() for path in sorted(folder.rglob("*.jsonl"))}
    cut = dict.fromkeys(whole, 0)
    for path in whole:
        path.unlink()
    while any(cut[path] < len(content) for path, content in whole.items()):
        for path in rng.sample(list(whole), rng.randint(1, len(whole))):
            cut[path] += rng.randint(0, len(whole[path]) // 2 + 2)
            if seed:  # between two lines, else also within one
                cut[path] = whole[path].find(b"\n", cut[path]) + 1 or len(whole[path])
            path.write_bytes(whole[path][: cut[path]])
        if rng.random() < 0.8:
            _view(folder)
        if any(path.stat().st_size for path in folder.rglob("*.jsonl")):
            assert _outcome(folder) == _outcome_without_store(folder)


def _outcome(folder: Path) -> object:
    try:
        return _listed(folder)
    except (ConfigError, StopError) as error:
        return str(error)


def _outcome_without_store(folder: Path) -> object:
    try:
        return _without_store(folder)
    except (ConfigError, StopError) as error:
        return str(error)


@pytest.mark.extended
def test_lines_that_cannot_be_derived_are_reported_each_time(
    folder: Path, derived: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bad = min(folder.rglob("rollout-*.jsonl"))
    add(bad, "no JSON", "[]")
    _view(folder)
    expected = _without_store(folder), capsys.readouterr().err
    derived.clear()
    assert (_listed(folder), capsys.readouterr().err) == expected
    assert "2 could not be derived" in expected[1]
    assert derived == [bad.name]


def test_files_without_sessions_are_the_same_error(folder: Path, tmp_path: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    add(folder / "a.jsonl", "{}")
    _view(folder)
    assert _outcome(folder) == _outcome_without_store(folder)
    assert "has no session" in str(_outcome(folder))
    assert not list((tmp_path / "state").glob("*.jsonl"))


@pytest.mark.extended
def test_a_file_that_is_named_twice_is_read_once(folder: Path, derived: list[str]) -> None:
    _view(folder)
    one = min(folder.rglob("streams/*.jsonl"))
    assert _listed(folder, one) == _without_store(folder, one) == _listed(folder)
    derived.clear()
    _listed(folder, one)
    assert derived == []


@pytest.mark.extended
def test_a_pipe_is_read_once(folder: Path, tmp_path: Path) -> None:
    _view(folder)
    line = '{"type":"assistant","message":{"usage":{"input_tokens":9}},"session_id":"piped"}'
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_text, args=(f"{line}\n",), daemon=True).start()
    assert any(b'"piped"' in view for view in _listed(folder, pipe))


def test_the_position_counts_a_sessions_own_records(folder: Path) -> None:
    for document in _without_store(folder)[:-1]:
        view = codec.loads(document)
        assert view["position"] == view["sequence"]


def test_a_window_that_the_status_line_was_given_since_is_in_the_list(
    folder: Path, derived: list[str]
) -> None:
    _view(folder)
    views = {each.session_id: each for each in Listing([str(folder)]).read(Order.recent, 99).views}
    session, chain = next(
        (view.session_id, chain)
        for view in views.values()
        if (chain := view.chains.get("main")) and chain.window_source in ("catalog", "default")
    )
    windows = StatusWindows(load_settings().state_folder)
    windows.remember(session, str(chain.model), 3_000_000)
    windows.remember("of-another-machine", str(chain.model), 3_000_000)
    derived.clear()
    listed = Listing([str(folder)]).read(Order.recent, 99).views
    after = {each.session_id: each for each in listed}
    assert (after[session].chains["main"].window, bool(derived)) == (3_000_000, True)
    assert {name: view for name, view in after.items() if name != session} == {
        name: view for name, view in views.items() if name != session
    }
    # Too small for the session's size: it would be disproved.
    windows.remember(session, str(chain.model), 1)
    derived.clear()
    assert Listing([str(folder)]).read(Order.recent, 99).views
    assert derived == []


def test_an_error_of_the_derivation_is_no_damage_of_what_is_stored(
    folder: Path, derived: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _view(folder)
    path = next(folder.rglob("*.jsonl"))
    with path.open("a") as target:
        target.write("{}\n")
    derived.clear()

    def fail(_self: object) -> None:
        raise ValueError("a mistake")

    monkeypatch.setattr("streams.cli.deriving.Derivation.parts", lambda *_: fail(None))
    with pytest.raises(ValueError, match="a mistake"):
        _listed(folder)
    # Once, and of what changed: nothing else was tried after it.
    assert 0 < len(derived) < len(list(folder.rglob("*.jsonl")))
