"""The style as a test: sizes, banned calls, names that must agree, nothing out of place."""

import ast
import re
import shutil
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from schemas.topics import TOPICS
from streams.edge.local_stack.stack import CONFIG_FOLDER

ROOT = Path(__file__).parents[1]
_IGNORED = ROOT / ".gitignore"
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 70

PRODUCT = sorted(
    path
    for folder in ("contextgauge", "schemas", "streams", "tools")
    for path in (ROOT / folder).rglob("*.py")
)
BENCH = sorted(path for path in (ROOT / "bench").rglob("*.py") if ".venv" not in path.parts)
MODULES = PRODUCT + sorted((ROOT / "tests").rglob("*.py")) + BENCH

BANNED_CALLS = {
    "datetime.now": "time is passed in",
    "datetime.utcnow": "time is passed in",
    "datetime.today": "time is passed in",
    "date.today": "time is passed in",
    "uuid4": "ids are functions of their cause",
    "uuid.uuid4": "ids are functions of their cause",
    "uuid.uuid1": "ids are functions of their cause",
    "print": "results go through streams/cli/screen/output.py, the rest is logged",
}

PRIVATE_WORDS = re.compile(
    r"\b(?:told|untold|unsaid|said|beside|anew|nobody|somebody|anybody|heard|whoever|funnels?"
    r"|glance)\b",
    re.IGNORECASE,
)
"""Words that the project's English once had and technical documentation does not: reported,
unknown, alongside, rebuilt, no one."""

READ_BY_USERS = ("README.md", "CONTRIBUTING.md", "docs", "deploy")

STRAY = (
    (re.compile(r"/(?:home|root|Users)/[A-Za-z]|/work/[a-z]|[A-Z]:\\\\Users"), "an absolute path"),
    (
        re.compile(
            # With classes of one letter, so that this file itself names no host.
            r"p[y]pi\.org|python[h]osted|registry\.[n]pmjs|repo1?\.[m]aven\.|crates\.[i]o"
            r"|--(?:extra-)?index-url|artifactory|/simple/"
        ),
        "a registry's host",
    ),
    (
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY|AKIA[0-9A-Z]{16}|ghp_[A-Za-z0-9]{30}"
            r"|sk-(?:ant|proj)-[A-Za-z0-9_-]{16}|xox[bp]-[0-9]{6}"
        ),
        "a secret",
    ),
    (re.compile(r"\b(?:TODO|FIXME|XXX|HACK|lorem ipsum)\b"), "a stray word"),
    (re.compile(r"^(?:<{7}|={7}|>{7})(?: |$)", re.MULTILINE), "a merge's marker"),
)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def _nodes(path: Path) -> list[ast.AST]:
    """Return what the tests look at of a module, parsed once for all of them."""
    looked_at = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Call
    imports = ast.Import | ast.ImportFrom
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, looked_at | imports)]


@cache
def _tracked() -> list[Path]:
    """All files that git knows or would add; where there is no git, all that it does not ignore."""
    listing = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    git = shutil.which("git")
    listed = git and subprocess.run(
        [git, "-c", "safe.directory=*", *listing], cwd=ROOT, capture_output=True, check=False
    )
    if not listed or listed.returncode != 0:
        patterns = [".git", *(line.strip("/") for line in _IGNORED.read_text().splitlines())]
        files = (path for path in ROOT.rglob("*") if path.is_file() or path.is_symlink())
        relative = (path.relative_to(ROOT) for path in files)
        return [ROOT / path for path in relative if not _fits_one(path, patterns)]
    names = listed.stdout.decode().split("\0")
    paths = [ROOT / name for name in names if name]
    return [path for path in paths if path.is_file() or path.is_symlink()]


def _fits_one(path: Path, patterns: Sequence[str]) -> bool:
    """Return whether a path, or a folder that it is in, fits a pattern, whole or by its name."""
    names = {name for each in (path, *path.parents) for name in (str(each), each.name)}
    return any(fnmatch(name, pattern) for name in names for pattern in patterns)


def _texts() -> Iterator[tuple[Path, str]]:
    for path in _tracked():
        if path.is_symlink():
            continue
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_modules_are_short() -> None:
    sizes = {_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: size for name, size in sizes.items() if size > MAX_MODULE_LINES} == {}


def test_functions_are_short() -> None:
    long = {
        f"{_name(path)}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for path in MODULES
        for node in _nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    }
    assert long == {}


def test_no_banned_calls() -> None:
    may_print = (ROOT / "streams" / "cli", ROOT / "tools")
    banned = [
        f"{_name(path)}:{node.lineno} {called}: {BANNED_CALLS[called]}"
        for path in PRODUCT
        for node in _nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name | ast.Attribute)
        and (called := _called(ast.unparse(node.func))) is not None
        and not (called == "print" and any(map(path.is_relative_to, may_print)))
    ]
    assert banned == []


def _called(name: str) -> str | None:
    """Return the banned call that a dotted name ends in: `dt.datetime.now` is one too."""
    return (
        next(
            (banned for banned in BANNED_CALLS if name == banned or name.endswith(f".{banned}")),
            None,
        )
        if not name.endswith(".print")
        else None
    )


def test_a_banned_call_is_detected() -> None:
    assert _called("dt.datetime.now") == "datetime.now"
    assert _called("uuid.uuid4") == "uuid4"
    assert _called("print") == "print"
    assert _called("console.print") is None
    assert _called("clock.now_ms") is None


def test_class_names_are_unique() -> None:
    places = defaultdict(list)
    for path in PRODUCT:
        for node in _nodes(path):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(_name(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_modules_have_no_import_cycles() -> None:
    modules = {_module(path): path for path in PRODUCT}
    imports = {name: set(_imported(name, path, modules)) for name, path in modules.items()}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imported(name: str, path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """Yield the project's modules that a module imports, anywhere in it, for types too."""
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            # Of `from package import module`, the module; else the package itself.
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [each if each in modules else node.module for each in inner]
        else:
            continue
        yield from {each for each in names if each in modules and each != name}


@pytest.mark.extended
def test_product_code_has_no_private_words() -> None:
    words = {_name(path): _private_words(path.read_text(encoding="utf-8")) for path in PRODUCT}
    assert {name: lines for name, lines in words.items() if lines} == {}


def test_docs_have_no_private_words() -> None:
    private = {
        _name(path): words
        for path, text in _texts()
        if path.relative_to(ROOT).parts[0] in READ_BY_USERS and (words := _private_words(text))
    }
    assert private == {}


def test_test_names_have_no_private_words() -> None:
    private = [
        f"{_name(path)}:{node.lineno} {node.name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in _nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and _private_words(node.name.replace("_", " "))
    ]
    assert private == []


def _private_words(text: str) -> list[str]:
    return [
        f"line {number}: {match.group()}"
        for number, line in enumerate(text.splitlines(), 1)
        for match in PRIVATE_WORDS.finditer(line)
    ]


def test_private_words_are_detected() -> None:
    assert _private_words("Nobody was told.") == ["line 1: Nobody", "line 1: told"]


def test_topics_named_in_deploy_are_those_of_the_schemas() -> None:
    known = {topic.name for topic in TOPICS}
    spoken = re.compile(r"\b(?:agent|context)\.[a-z]+(?:\.[a-z]+)*\b")
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path, text in _texts()
        if path.is_relative_to(ROOT / "deploy")
        for name in spoken.findall(text)
        if name not in known
    }
    assert not wrong


def test_the_local_broker_accepts_the_largest_messages_of_the_topics() -> None:
    text = (CONFIG_FOLDER / "server.properties").read_text()
    (limit,) = re.findall(r"^message\.max\.bytes=(\d+)$", text, re.MULTILINE)
    assert int(limit) > max(topic.max_message_bytes for topic in TOPICS)
    assert re.search(r"^auto\.create\.topics\.enable=false$", text, re.MULTILINE)


@pytest.mark.extended
def test_nothing_stray_in_any_file() -> None:
    stray = [
        f"{path.relative_to(ROOT)}: {what}: {match.group()[:40]}"
        for path, text in _texts()
        if path != Path(__file__)
        for pattern, what in STRAY
        if (match := pattern.search(text)) is not None
    ]
    assert not stray


def test_no_link_leads_out_of_the_repository() -> None:
    links = [path for path in _tracked() if path.is_symlink()]
    assert not [_name(link) for link in links if not link.resolve().is_relative_to(ROOT)]


@pytest.mark.parametrize(
    "text",
    [
        "see /home/ann/x",
        "https://py" + "pi.org/project/x",
        "AKIA" + "ABCDEFGHIJKLMNOP",
        "# TO" + "DO later",
        "<<<<<<< HEAD\n",
    ],
)
def test_stray_things_are_detected(text: str) -> None:
    assert any(pattern.search(text) for pattern, _ in STRAY)


@pytest.mark.parametrize(
    ("lock", "groups"),
    [("requirements.lock", ("build",)), ("requirements-dev.lock", ("build", "dev"))],
)
def test_the_lock_files_satisfy_the_requirements(lock: str, groups: tuple[str, ...]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    asked = [Requirement(text) for text in project["project"]["dependencies"]]
    asked += [Requirement(text) for name in ("kafka", "pipeline") for text in extras[name]]
    asked += [Requirement(text) for name in groups for text in project["dependency-groups"][name]]
    text = (ROOT / lock).read_text()
    pinned = {
        name: Version(version)
        for name, version in re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE)
    }
    wrong = [
        str(item)
        for item in asked
        if item.name != "contextgauge"
        and (item.name not in pinned or pinned[item.name] not in item.specifier)
    ]
    assert not wrong
    # Each pin is a logical line of its own, and each must carry a hash.
    lines = text.replace("\\\n", " ").splitlines()
    assert [line for line in lines if line.strip() and "--hash=sha256:" not in line] == []


def test_only_the_fixture_shared_knows_where_real_captures_are() -> None:
    pattern = re.compile(r"/ \"shared\"|\.\./shared/|[\"']shared/")
    readers = [_name(path) for path in MODULES if pattern.search(path.read_text(encoding="utf-8"))]
    assert readers == ["tests/conftest.py"]
