"""What documents, docstrings and comments name exists: paths, modules, symbols and decisions.

Checked are paths that begin with a folder of the repository, and in backticks: file names of
modules, dotted names of packages and classes, a symbol after its module, with a colon or a comma
between them, and names with an underscore or a capital within. Code, strings and fenced examples
are not looked at: their own tests run them.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from schemas.records import DATA_CLASS_BY_KIND
from streams.codec.otel_events import ATTRIBUTES, EVENT_PREFIX
from streams.codec.otel_figures import INSTRUMENTS
from tests.docs.test_docs import _FENCED, DOCUMENTS, ROOT, _name

_PACKAGES = ("contextgauge", "schemas", "streams")
_FOLDERS = (*_PACKAGES, "tests", "tools", "bench", "deploy", "docs", "examples")
_MODULES = sorted(
    path
    for folder in (*_PACKAGES, "tests", "tools", "bench", "examples")
    for path in (ROOT / folder).rglob("*.py")
    if not {"node_modules", ".venv"} & set(path.parts)
)
_OTHERS = sorted(
    [
        *(ROOT / name for name in ("Makefile", "pyproject.toml", "compose.yaml", "hatch_build.py")),
        *(path for ending in ("pyx", "lua") for path in (ROOT / "streams").rglob(f"*.{ending}")),
        *(ROOT / "streams/serve/page").glob("*.js"),
        *(
            path
            for path in (ROOT / "deploy").rglob("*")
            if path.suffix in {".toml", ".yml", ".conf"}
        ),
    ]
)
_CODE_FILES = frozenset(
    path.relative_to(ROOT)
    for path in [*_MODULES, *_OTHERS, *ROOT.glob("*.py"), *(ROOT / "streams").rglob("*.pxd")]
)

_PATH = re.compile(
    rf"(?<![\w./~<>-])((?:{'|'.join(_FOLDERS)})/[\w*.-]+(?:/[\w*.-]+)*/?)(?![\w{{<])"
)
_FILE = re.compile(r"`(\w{3,}\.(?:py|pyx|lua))`")
_SYMBOL = re.compile(r"`((?:\w+/)*\w+\.py)(?:: |`, `)([A-Za-z_]\w*)`")
_CLASS_OF = re.compile(r"`((?:\w+/)+\w+\.py)`: [^`.]{0,60}`([A-Z]\w+)`")
_DOTTED = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)[(`]")
_NAME = re.compile(r"`(_?[A-Za-z]\w*_\w+|_?[A-Za-z]\w*[a-z][A-Z]\w*)(?:\(\))?`")
_WORD = re.compile(r"\w+")
_DECISION = re.compile(r"\bADRs? (\d{4})\b|docs/adr/(\d{4})")
_NOT_CODE = re.compile(r"page/vendor\b|\.venv\b|\.v1$|^contextgauge\.background$")
"""Folders that npm or pip fills; types of records and a field of a message, not modules."""
_COMMENT = re.compile(r"(?:^|\s)(?:#|//|--|\*) ?(.*)$", re.MULTILINE)

_LISTS = {"CONTEXTGAUGE_": "docs/SETTINGS.md", "contextgauge_": "docs/METRICS.md"}
"""Documents with all settings and all metrics: how these names begin."""

_EXPORTED = ATTRIBUTES | INSTRUMENTS.keys() | {EVENT_PREFIX + kind for kind in DATA_CLASS_BY_KIND}
"""Names in OpenTelemetry, which begin as modules do."""

_FOREIGN = re.compile(
    "AmazonMSK_|CoreMessage|EventSource|GEMINI_TELEMETRY_OTLP_ENDPOINT|OTEL_[A-Z_]+|HTTPS?_PROXY|SQLITE_TMPDIR|"
    "compactionEvent|conversation_id|create_react_agent|estimate(?:Messages)?Tokens|"
    "formatMessagesForSummary|generateContent|messages_summarized|minReadySeconds|"
    "otlp(?:Endpoint|Protocol)|previous_response_id|trust_env"
)
"""Names of others' code, and that of an example."""

_WITHOUT_MEMBERS = {
    "object",
    "Protocol",
    "Generic",
    "NamedTuple",
    "Exception",
    "StrEnum",
    "IntEnum",
}
_DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _written(path: Path) -> str:
    """Return what people read of a file: a document, or the docstrings and comments of code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    if path.suffix != ".py":
        return "\n".join(_COMMENT.findall(text) + re.findall(r'"""(.*?)"""', text, re.DOTALL))
    docstrings = [
        node.value.value
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    return "\n".join(docstrings + _COMMENT.findall(text))


@cache
def _names(path: Path) -> frozenset[str]:
    """Return what a module defines, imports or lists by name, wherever in it."""
    nodes = list(ast.walk(_tree(path)))
    return frozenset(
        [node.name for node in nodes if isinstance(node, _DEFINITION)]
        + [node.id for node in nodes if isinstance(node, ast.Name)]
        + [node.attr for node in nodes if isinstance(node, ast.Attribute)]
        + [(node.asname or node.name) for node in nodes if isinstance(node, ast.alias)]
        + [
            node.value
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
    )


@cache
def _words() -> Counter[str]:
    """Return how often code has each word outside of its docstrings and comments."""
    words: Counter[str] = Counter()
    for path in {*_MODULES, *_OTHERS} - {Path(__file__)}:
        words.update(_WORD.findall(path.read_text(encoding="utf-8")))
        words.subtract(_WORD.findall(_written(path)))
    return words


@cache
def _classes() -> dict[str, list[ast.ClassDef]]:
    """Return the classes of the product, by name."""
    classes: dict[str, list[ast.ClassDef]] = {}
    for path in _MODULES:
        if path.relative_to(ROOT).parts[0] in _PACKAGES:
            for node in ast.walk(_tree(path)):
                if isinstance(node, ast.ClassDef):
                    classes.setdefault(node.name, []).append(node)
    return classes


def _may_have(node: ast.ClassDef, member: str) -> bool:
    """Return whether a class or one of its bases has a member; True where a base is unknown."""
    names = {each.name for each in ast.walk(node) if isinstance(each, _DEFINITION)}
    names |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    names |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    if member in names:
        return True
    bases = {
        ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases
    } - _WITHOUT_MEMBERS
    known = _classes()
    return any(
        base not in known
        or any(_may_have(each, member) for each in known[base] if each is not node)
        for base in bases
    )


def _is_there(text: str) -> bool:
    if re.fullmatch(r"docs/adr/\d{4}", text):
        text += "-*"
    return any(ROOT.glob(text.rstrip("/"))) if "*" in text else (ROOT / text).exists()


def _wrong_dotted(text: str) -> str | None:
    """Return what a dotted name lacks, of a package or a class of ours; None of any other."""
    first, *rest = text.split(".")
    if first in _PACKAGES:
        path = ROOT / first
        while rest and (path / rest[0]).is_dir():
            path /= rest.pop(0)
        if rest and (path / f"{rest[0]}.py").is_file():
            path /= f"{rest.pop(0)}.py"
        elif (path / "__init__.py").is_file():
            path /= "__init__.py"
        if rest and (path.is_dir() or not {rest[0], "*"} & _names(path)):
            return f"{text}: there is no {rest[0]} in {_name(path)}"
    elif first in _classes() and not any(_may_have(each, rest[0]) for each in _classes()[first]):
        return f"{text}: the class {first} has no {rest[0]}"
    return None


def _missing_files(path: Path, text: str) -> Iterator[str]:
    prose = _FENCED.sub("", text)
    for named in {each.rstrip(".") for each in _PATH.findall(prose)}:
        if not _is_there(named) and not _NOT_CODE.search(named):
            yield f"there is no {named}"
    folder = Path() if path.suffix == ".md" else path.parent.relative_to(ROOT)
    for named in set(_FILE.findall(prose)):
        files = [file for file in _CODE_FILES if file.name == named]
        if named.endswith(".py"):  # of a script in Lua or Cython there is one
            files = [each for each in files if each.is_relative_to(folder) or len(each.parts) == 1]
        if not files and named not in "".join(re.findall(r"```.*?```", text, re.DOTALL)):
            yield f"there is no {named} in {folder}/: give its path if it is elsewhere"
    for number in {first or second for first, second in _DECISION.findall(prose)}:
        if not any((ROOT / "docs/adr").glob(f"{number}-*.md")):
            yield f"there is no decision record {number}"


def _missing_symbols(text: str) -> Iterator[str]:
    prose = _FENCED.sub("", text)
    for file, symbol in {*_SYMBOL.findall(prose), *_CLASS_OF.findall(prose)}:
        modules = [each for each in _MODULES if f"/{each.relative_to(ROOT)}".endswith(f"/{file}")]
        if modules and not any(symbol in _names(each) for each in modules):
            yield f"there is no {symbol} in {file}"
    for named in set(_DOTTED.findall(prose)):
        is_code = named not in _EXPORTED and not _NOT_CODE.search(named)
        if is_code and (lack := _wrong_dotted(named)):
            yield lack
    for named in set(_NAME.findall(prose)):
        lists = [each for prefix, each in _LISTS.items() if named.startswith(prefix)]
        if lists and named not in (ROOT / lists[0]).read_text(encoding="utf-8"):
            yield f"there is no {named} in {lists[0]}"
        if not lists and _words()[named] < 1 and not _FOREIGN.fullmatch(named):
            yield f"nothing is called {named}"


def faults(path: Path, text: str) -> list[str]:
    """Return what a text names that does not exist; a bare module is one next to or below it."""
    return sorted([*_missing_files(path, text), *_missing_symbols(text)])


ABSENT = (
    ("see streams/core/normalise for it", "there is no streams/core/normalise"),
    ("`windows.py` decides", "there is no windows.py in streams/core/derivation/"),
    ("`contextgauge/views.py`, `compact_boundary`", "there is no compact_boundary in"),
    ("`contextgauge/views.py: Compaction_`", "there is no Compaction_ in"),
    ("`contextgauge/views.py`: add it to `Nothing`", "there is no Nothing in"),
    ("`Deriver.derives_nothing()`", "Deriver.derives_nothing: the class Deriver has no"),
    ("`contextgauge.nothing.here`", "contextgauge.nothing.here: there is no nothing"),
    ("`CONTEXTGAUGE_NOTHING`", "there is no CONTEXTGAUGE_NOTHING in docs/SETTINGS.md"),
    ("`is_nothing()` says", "nothing is called is_nothing"),
    ("as ADR 0003 says", "there is no decision record 0003"),
)
"""Texts that name what does not exist, and how each is reported."""


def test_everything_that_texts_name_exists() -> None:
    """In one test: what code names is read once, which takes seconds."""
    for text, fault in ABSENT:
        (reported,) = faults(ROOT / "streams/core/derivation/derive.py", text)
        assert reported.startswith(fault)
    missing = [
        f"{_name(path)}: {fault}"
        for path in (*DOCUMENTS, *_OTHERS, *_MODULES)
        for fault in faults(path, _written(path))
    ]
    assert not missing, "texts name what does not exist (moved? renamed?):\n" + "\n".join(missing)
