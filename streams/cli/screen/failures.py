"""How an error that ends a command is shown: one clear line, where to read on, an exit code."""

import errno

from contextgauge.documents import document
from contextgauge.errors import ContextgaugeError, RetryError
from streams.cli import exits
from streams.cli.screen.lines import discard_output
from streams.cli.screen.output import err, say
from streams.ports import UnreadableBatch, UnreadableBatchError

NO_SERVICE = (
    "Is it running? `contextgauge stack up` starts Kafka and Redis on this machine; "
    "CONTEXTGAUGE_BOOTSTRAP_SERVERS and CONTEXTGAUGE_REDIS_URL name others."
)
"""The remedy where Kafka or Redis does not answer."""

_BUG = (
    "contextgauge: this is an error in contextgauge itself: please report it with the lines above "
    "(they hold no text of messages)"
)
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""The system cannot write any more: not an error of this program."""


def show_failure(error: Exception) -> int:
    """Print the error on standard error and return the command's exit code."""
    if isinstance(error, ContextgaugeError):
        for line in str(error).splitlines():
            say(f"contextgauge: {line}", "red")
        if isinstance(error, RetryError):
            say(NO_SERVICE, "dim")
        title = exits.runbook_title(error)
        if title is not None:
            say(f'What to do: "{title}" in {document("RUNBOOK.md")}', "dim")
        return exits.code_of(error)
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        discard_output()
        say(f"contextgauge: cannot write {error.filename or 'the output'}: {error.strerror}", "red")
        return exits.Exit.STOPPED
    err.print(f"{exits.where(error)}\n{_BUG}", markup=False, highlight=False, soft_wrap=True)
    return exits.Exit.INTERNAL


def say_passed(batch: UnreadableBatch) -> None:
    """Print that records cannot be read, and are passed over."""
    show_warning(f"{UnreadableBatchError(batch)}; they are left out")


def show_warning(text: str) -> None:
    """Print a warning on standard error."""
    say(f"contextgauge: warning: {text}", "yellow")
