"""Takes the texts out of a line before it leaves the machine, the same way for all publishers."""

from contextgauge.containers import Line
from contextgauge.messages import DeadLetter
from contextgauge.privacy import without_text
from streams import codec


def strip_text(line: Line, key: bytes) -> Line | DeadLetter:
    """Return the line without texts: what `publish --no-text` sends in its place.

    A pure function. `key` is 1 to 64 secret bytes, the same for whoever may publish the line
    again (`streams.edge.text_key` keeps them). A line that cannot be read is a dead letter, and
    must not be sent: what it holds cannot be told from text. A line of tens of megabytes takes
    seconds: on an event loop, call it in a thread.
    """
    if len(line.value) < line.size:
        return DeadLetter("too_large", f"{line.size} bytes: too large to be read")
    body = codec.decode(line.value, limit=line.size)
    if isinstance(body, DeadLetter):
        return body
    value = codec.dumps(without_text(body, line.value, key))
    return line._replace(value=value, size=len(value))
