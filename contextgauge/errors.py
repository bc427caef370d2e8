"""The errors, named by the reaction that they demand.

    ContextgaugeError
    ├── StopError            stop with a clear message: going on would be wrong
    │   ├── ConfigError        a setting, a topic or an argument; the message says what to do
    │   │   └── RecordError      the broker does not take this one record: leave it out
    │   ├── VersionError       a record, state or view of a version that this build cannot read
    │   │   └── FormerViewsError views of a former format: a projector rebuilds them from the log
    │   ├── PositionError      the stored position is out of the log's range
    │   └── DeadLetterFlood    more than half of the last messages were dead letters
    ├── FencedError          another worker took the partition over: end its task at once
    ├── ReseekError          the view store's position is not the one read from: re-read from it
    ├── LostError            the view store lost documents: build a new generation of views
    ├── RetryError           the broker or Redis is unavailable: back off, report it, retry
    │   └── WrongServerError   a server answers that does not serve now: connect again, then retry
    ├── ClosedError          a publisher was given a message before it was opened or after it closed
    └── UndeliveredError     a strict publisher could not send all that it had accepted

A message that cannot be derived from is no error: it is a `DeadLetter`, committed with its batch.
"""


class ContextgaugeError(Exception):
    """Base of all errors that this project raises on purpose."""


class StopError(ContextgaugeError):
    """Stop the worker and report why; a restart alone does not help."""


class ConfigError(StopError):
    """A setting, a topic or an argument is wrong."""


class RecordError(ConfigError):
    """The broker refuses this one record; others go through."""


class VersionError(StopError):
    """Something stored has a version that this build does not know; never dead-lettered."""


class FormerViewsError(VersionError):
    """The views have a former format: a projector builds a new generation, readers stop."""


class PositionError(StopError):
    """The stored position is out of the log's range: retention overtook it, or a new topic."""


class DeadLetterFlood(StopError):  # noqa: N818 -- named for what happened
    """More than half of the last messages were dead letters."""


class FencedError(ContextgaugeError):
    """Another producer with the same transactional id took over."""


class ReseekError(ContextgaugeError):
    """The view store is at another position than the one the batch was read from."""


class LostError(ContextgaugeError):
    """The view store lost documents that its position says were there."""


class RetryError(ContextgaugeError):
    """A service is away for now."""


class WrongServerError(RetryError):
    """What answers is a replica, or not ready. Where that lasts, a restart may help."""


class ClosedError(ContextgaugeError):
    """A publisher takes messages only inside its `with`."""


class UndeliveredError(ContextgaugeError):
    """Accepted messages were not acknowledged by the broker before the publisher closed."""
