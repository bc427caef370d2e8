"""The audit: whether each of the user's turns is in the text, after all shortening."""

from contextgauge.compaction.carried.compaction_text import last_number, read_text
from contextgauge.compaction.messages import Carried


def audit(text: str, carried: Carried) -> list[str]:
    """Return what is wrong with the text of a compaction: empty where nothing is.

    A turn that is not there whole has to be shortened or counted as left out. Linear in both.
    """
    read = read_text(text)
    if read is None:
        return ["the text has not the form of a compaction's"]
    shown = {each.number: each for each in read.entries if each.speaker == "user"}
    wrong = [
        f"turn {entry.number} is not word for word"
        for entry in carried.entries
        if entry.speaker == "user"
        and (there := shown.get(entry.number)) is not None
        and not (
            (there.text, there.end) == (entry.text, entry.end)
            or (there.omitted and entry.text.startswith(there.text))
        )
    ]
    missing = last_number(carried) - len(shown) - read.left_out
    return [*wrong, f"{missing} turns are neither there nor left out"] if missing else wrong
