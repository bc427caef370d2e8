"""The figures of the report: which question each shows, how, and what it stands on.

A figure is a row here and a question of the library; no figure has code of its own.
"""

from typing import Final, Literal, NamedTuple

from streams.cli.pages.values import Unit


class Basis(NamedTuple):
    """What a figure stands on: the rows of a view that have what it needs, of all rows.

    `having` says in words what `where` asks for.
    """

    view: str
    rows: str
    having: str = ""
    where: str = "true"
    of: str = "true"


class Plot(NamedTuple):
    """How an answer is drawn.

    `bars` and `lines` have a label and values from each row, `rows` are a table whose rows have a
    bar, and a `table` has none. `label` are the columns that name a row, `values` what is drawn.
    """

    kind: Literal["bars", "lines", "rows", "table"]
    label: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    unit: Unit = Unit.NUMBER
    columns: tuple[str, ...] = ()
    """Of `rows` and `table`: the columns that are shown; by default all of a table."""


class Figure(NamedTuple):
    """One figure: the answer to a question.

    `doubt` is a column that is true for rows whose percentages or tokens are estimates. `none` is
    what a table without rows means.
    """

    question: str
    title: str
    basis: Basis
    plot: Plot
    note: str = ""
    doubt: str = ""
    none: str = ""


class Section(NamedTuple):
    """Figures on one subject."""

    title: str
    about: str
    figures: tuple[Figure, ...]


class Key(NamedTuple):
    """A key figure: one column of the only row of a question. `note` is filled with the others."""

    question: str
    column: str
    title: str
    note: str
    figure: str
    """The question of the figure that shows more."""
    unit: Unit = Unit.NUMBER


_TRIGGERS: Final = ("automatic", "manual", "other")

_COMPACTIONS: Final = Basis("compactions", "compactions")
_TIMED: Final = Basis(
    "compactions",
    "compactions",
    "with a known duration",
    "duration_ms IS NOT NULL AND duration_source <> 'precomputed'",
)
_MEASURED: Final = Basis(
    "compactions",
    "compactions",
    "with a known size before and after",
    "tokens_before > 0 AND tokens_after IS NOT NULL",
)
_PERCENT: Final = Basis(
    "readings", "responses", "with a known window", "used_percent IS NOT NULL AND day IS NOT NULL"
)
_RESPONSES: Final = Basis("readings", "responses")
_ATTEMPTS: Final = Basis("attempts", "attempts whose start or end was seen")

KEYS: Final = (
    Key("totals", "sessions", "Sessions", "{responses} responses", "pressure-histogram"),
    Key(
        "totals",
        "compactions",
        "Compactions",
        "{automatic} automatic, {manual} manual, {other} other or unknown",
        "frequency",
    ),
    Key(
        "average-compaction",
        "average_messages",
        "Messages per compaction",
        "median {median_messages}",
        "messages-between-histogram",
    ),
    Key(
        "average-compaction",
        "average_pre_tokens",
        "Tokens before",
        "average of {with_size}",
        "pre-tokens",
        Unit.TOKENS,
    ),
    Key(
        "average-compaction",
        "median_ms",
        "Duration",
        "median of {with_duration}; average {average_ms}",
        "duration-histogram",
        Unit.DURATION,
    ),
    Key(
        "tokens-saved",
        "tokens_saved",
        "Tokens saved",
        "by {measured} compactions",
        "compression-histogram",
        Unit.TOKENS,
    ),
    Key(
        "average-compaction",
        "average_left_percent",
        "Left after compaction",
        "average; median {median_left_percent}",
        "compression-histogram",
        Unit.PERCENT,
    ),
    Key(
        "totals",
        "sessions_at_80",
        "Sessions above 80%",
        "of {sessions}; {compacted_sessions} were compacted",
        "pressure-histogram",
    ),
)

SECTIONS: Final = (
    Section(
        "Compactions",
        "How often contexts are compacted, and at which size.",
        (
            Figure(
                "frequency",
                "Frequency",
                Basis("compactions", "compactions", "with a known time", "day IS NOT NULL"),
                Plot("bars", ("day",), _TRIGGERS),
            ),
            Figure(
                "messages-between-histogram",
                "Messages between compactions",
                Basis(
                    "compactions",
                    "compactions",
                    "of main conversations",
                    "chain = 'main' AND messages_since_last IS NOT NULL",
                ),
                Plot("bars", ("messages",), _TRIGGERS),
            ),
            Figure(
                "compactions-by-trigger",
                "Automatic and manual",
                _COMPACTIONS,
                Plot(
                    "rows",
                    ("trigger",),
                    ("compactions",),
                    columns=("compactions", "percent", "sessions", "average_pre_tokens"),
                ),
            ),
            Figure(
                "pre-tokens",
                "Size before",
                Basis("compactions", "compactions", "with a known size", "pre_tokens IS NOT NULL"),
                Plot(
                    "rows",
                    ("model", "trigger"),
                    ("average",),
                    Unit.TOKENS,
                    ("average", "least", "most", "with_size"),
                ),
            ),
        ),
    ),
    Section(
        "Time",
        "How long compactions take. Those prepared in the background are left out.",
        (
            Figure(
                "duration-histogram",
                "Durations",
                _TIMED,
                Plot("bars", ("duration",), _TRIGGERS),
            ),
            Figure(
                "slow-hours",
                "Slow hours",
                Basis(
                    "compactions",
                    "compactions",
                    "with a known duration and time",
                    f"{_TIMED.where} AND ended IS NOT NULL",
                ),
                Plot("bars", ("hour",), ("median_ms",), Unit.DURATION),
                "Median by hour of the day, UTC.",
            ),
            Figure(
                "durations",
                "By trigger, and by how it is known",
                Basis(
                    "compactions",
                    "compactions",
                    "with a duration, also a precomputed one",
                    "duration_ms IS NOT NULL",
                ),
                Plot(
                    "rows",
                    ("trigger", "duration_source"),
                    ("median_ms",),
                    Unit.DURATION,
                    ("median_ms", "average_ms", "p95_ms", "compactions"),
                ),
            ),
        ),
    ),
    Section(
        "Effect and cost",
        "What compactions remove, what they cost, and what changes after them.",
        (
            Figure(
                "compression-histogram",
                "What is left of a context",
                _MEASURED,
                Plot("bars", ("left_percent",), _TRIGGERS),
            ),
            Figure(
                "compression",
                "Compression by trigger",
                _MEASURED,
                Plot(
                    "rows",
                    ("trigger",),
                    ("median_left_percent",),
                    Unit.PERCENT,
                    (
                        "median_left_percent",
                        "average_left_percent",
                        "worst_left_percent",
                        "measured",
                    ),
                ),
            ),
            Figure(
                "compaction-cost",
                "Cost in tokens and time",
                _COMPACTIONS,
                Plot("table"),
                "Tokens that the next response wrote to the cache again, and the summary's own. "
                "Each sum is of the compactions that report it (with rewrite, with summary).",
            ),
            Figure(
                "around-boundaries",
                "Size around a compaction",
                _COMPACTIONS,
                Plot("lines", ("response",), ("average_used_tokens",), Unit.TOKENS),
                "Average size of the ten responses before and after it.",
            ),
            Figure(
                "before-and-after",
                "Behaviour before and after",
                _COMPACTIONS,
                Plot("table"),
                "Elsewhere are the other responses of the same conversations: what differs there "
                "too is no effect of compactions.",
            ),
        ),
    ),
    Section(
        "Pressure",
        "How full contexts get. ~ marks percentages of a window that is assumed.",
        (
            Figure(
                "pressure-histogram",
                "Fullest moment of each session",
                Basis(
                    "sessions", "sessions", "with a known share", "most_used_percent IS NOT NULL"
                ),
                Plot("bars", ("used_percent",), ("known_window", "assumed_window")),
            ),
            Figure(
                "pressure-by-day",
                "Pressure over time",
                _PERCENT,
                Plot("lines", ("day",), ("p90_percent", "median_percent"), Unit.PERCENT),
                doubt="some_windows_assumed",
            ),
            Figure(
                "pressure",
                "By model",
                _RESPONSES,
                Plot(
                    "rows",
                    ("model",),
                    ("p90_percent",),
                    Unit.PERCENT,
                    ("p90_percent", "average_percent", "most_percent", "responses"),
                ),
                doubt="some_windows_assumed",
            ),
            Figure(
                "growth",
                "Growth with each response",
                _RESPONSES,
                Plot(
                    "rows",
                    ("model",),
                    ("median",),
                    Unit.TOKENS,
                    ("median", "average", "most", "steps"),
                ),
            ),
            Figure(
                "subagents",
                "Subagents",
                Basis("readings", "responses", "of subagents", "chain <> 'main'"),
                Plot(
                    "rows",
                    ("subagent_type",),
                    ("average_used_tokens",),
                    Unit.TOKENS,
                    ("average_used_tokens", "most_used_tokens", "subagents", "responses"),
                ),
            ),
        ),
    ),
    Section(
        "Composition and waste",
        "What contexts consist of, and what is sent more often than it had to be.",
        (
            Figure(
                "composition",
                "Composition",
                Basis(
                    "context_limits",
                    "accounts by runtimes of their contexts",
                    "",
                    "categories IS NOT NULL AND inherited IS NOT TRUE",
                    "categories IS NOT NULL",
                ),
                Plot(
                    "rows",
                    ("category",),
                    ("average_tokens",),
                    Unit.TOKENS,
                    ("average_tokens", "percent", "sessions"),
                ),
                "The latest account of each session, without free space.",
            ),
            Figure(
                "base-share",
                "Sent with every response",
                Basis("readings", "responses", "of main conversations", "chain = 'main'"),
                Plot(
                    "rows",
                    ("model",),
                    ("repeated_percent",),
                    Unit.PERCENT,
                    ("repeated_percent", "average_base_tokens", "repeated_tokens"),
                ),
                "The first response's context (instructions, tools, first request) as a share of "
                "all that was sent.",
                doubt="is_estimate",
            ),
            Figure(
                "cache-misses",
                "Sent again for want of a cache",
                Basis(
                    "readings",
                    "responses",
                    "that report what they read from the cache",
                    "cache_read_tokens IS NOT NULL",
                ),
                Plot(
                    "rows",
                    ("pause",),
                    ("missed_tokens",),
                    Unit.TOKENS,
                    ("missed_tokens", "missed_percent", "responses"),
                ),
                "Tokens of the response before that were not read from the cache, by the pause "
                "between the two.",
                doubt="is_estimate",
            ),
            Figure(
                "cache-share",
                "Read from the cache",
                Basis(
                    "readings",
                    "responses",
                    "that report it, with a known time",
                    "cache_read_tokens IS NOT NULL AND day IS NOT NULL",
                ),
                Plot("lines", ("day",), ("percent_read",), Unit.PERCENT),
                "Share of all context tokens, day by day.",
            ),
        ),
    ),
    Section(
        "Trouble",
        "What went wrong, and what people learned too late.",
        (
            Figure(
                "attempts-by-outcome",
                "How attempts ended",
                _ATTEMPTS,
                Plot(
                    "rows",
                    ("outcome",),
                    ("attempts",),
                    columns=("attempts", "percent", "sessions", "median_ms"),
                ),
            ),
            Figure(
                "warning-lead",
                "Responses between the first warning and compaction",
                Basis("compactions", "compactions", "that were automatic", "\"trigger\" = 'auto'"),
                Plot("bars", ("lead",), ("compactions",)),
                "None, or few, is too late to act on.",
            ),
            Figure(
                "compaction-errors",
                "Why they failed",
                _ATTEMPTS,
                Plot("table"),
                none="No attempt failed",
            ),
            Figure(
                "open-attempts",
                "Begun, without an end",
                _ATTEMPTS,
                Plot("table"),
                none="Every attempt has an end",
            ),
            Figure(
                "thrashing",
                "Thrashing",
                Basis("compactions", "compactions", "with a known time", "ended IS NOT NULL"),
                Plot("table"),
                "Conversations compacted three times or more within ten minutes.",
                none="No conversation was compacted three times within ten minutes",
            ),
            Figure(
                "unreachable-floors",
                "Unreachable floors",
                Basis(
                    "compactions",
                    "compactions",
                    "with a known size after",
                    "tokens_after IS NOT NULL",
                ),
                Plot("table"),
                "Conversations that stay above three quarters of their threshold after each "
                "compaction: what cannot be compacted takes the room.",
                none="Every conversation fell below three quarters of its threshold",
            ),
            Figure(
                "exhausted",
                "Turns that ended at a full window",
                _RESPONSES,
                Plot("table"),
                none="No turn ended so",
            ),
            Figure(
                "wrong-windows",
                "Windows that are assumed or wrong",
                _RESPONSES,
                Plot("table"),
                "Exceeded: the context was larger than the window that was assumed.",
                none="Every response's window is reported or known of its model",
            ),
        ),
    ),
)
