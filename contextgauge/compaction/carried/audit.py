"""The audit: whether what code carries is in the text, after all shortening."""

from contextgauge.compaction.carried.compaction_text import KINDS, heading_of, task_lines
from contextgauge.compaction.messages import Carried


def audit(text: str, carried: Carried) -> list[str]:
    """Return what is missing from the text of a compaction: empty where nothing is.

    Linear in the text for each pin; pins are bounded.
    """
    missing: list[str] = []
    lines = set(text.splitlines())
    for kind in KINDS:
        pins = [each for each in carried.pins if each.kind == kind]
        if pins and heading_of(kind) not in lines:
            missing.append(f"heading {heading_of(kind)!r}")
        missing.extend(f"{kind}: {each.text}" for each in pins if each.text not in text)
    if any(line not in text for line in task_lines(carried.task)):
        missing.append("the original task")
    known = ledger_paths(text)
    missing.extend(f"file: {each.path}" for each in carried.files if each.path not in known)
    return missing


def ledger_paths(text: str) -> set[str]:
    """Return the paths of the ledger in a text."""
    return {
        line[2:].split(" ", 1)[1]
        for line in text.splitlines()
        if line.startswith(("- read ", "- changed "))
    }
