"""The audit of dependencies reads what pip-audit and npm report."""

from tools.audit import Audited, page_packages, python_packages


def test_a_known_vulnerability_is_named_with_what_mends_it() -> None:
    vulnerability = {"id": "PYSEC-2024-1", "fix_versions": ["2.1"]}
    report = {
        "dependencies": [
            {
                "name": "one",
                "version": "2.0",
                "vulns": [vulnerability, {"id": "X-2", "fix_versions": []}],
            },
            {"name": "two", "version": "1.0", "vulns": []},
            {"name": "three", "skip_reason": "not found"},
        ]
    }
    expected = ("one 2.0: PYSEC-2024-1, fixed in 2.1", "one 2.0: X-2")
    assert python_packages(report) == Audited(2, 1, expected)


def test_of_npm_the_severity_is_named() -> None:
    report = {
        "vulnerabilities": {"uplot": {"severity": "high"}},
        "metadata": {"dependencies": {"total": 3}},
    }
    assert page_packages(report) == Audited(3, 0, ("uplot: high",))


def test_an_audit_that_npm_could_not_make_is_none() -> None:
    assert page_packages({"message": "405 Method Not Allowed"}) is None
