"""CI installs the packages that the documents name, and no others."""

import re

from tests.docs.test_docs import ROOT

_INSTALLED = re.compile(r"`apt-get\s+install ([^`]+)`")


def _named(document: str) -> set[str]:
    (packages,) = _INSTALLED.findall((ROOT / document).read_text(encoding="utf-8"))
    return set(packages.split())


_OF_AN_INDEX = re.compile(
    r"(?:pip|pipx|tool) install (?:-U |--upgrade )?['\"]?contextgauge|uvx contextgauge"
)


def test_no_document_installs_what_no_index_has() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/*")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in documents if path.is_file()}
    assert [name for name, text in texts.items() if _OF_AN_INDEX.search(text)] == []
    assert _OF_AN_INDEX.search("pip install 'contextgauge[pipeline]'")


def test_ci_installs_what_the_documents_name() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    listed = {
        name: text.split() for name, text in re.findall(r'^(of_\w+)="(.+)"$', script, re.MULTILINE)
    }
    packages = {name: {each.split(":")[1] for each in listed[name]} for name in listed}
    of_python = set(re.findall(r"missing\+=\((.+)\)$", script, re.MULTILINE)) - {'"${each#*:}"'}
    assert of_python == {"python3-dev", "python3-venv"}
    assert packages["of_test"] | {"python3-venv"} == _named("README.md")
    assert packages["of_check"] | {"python3-dev"} == _named("CONTRIBUTING.md")
