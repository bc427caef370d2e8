"""What the people and tools of the generated sessions say. `{v}` is a value that is measured."""

from typing import Final, NamedTuple


class Phrase(NamedTuple):
    """A sentence with a value of a kind (`values`)."""

    text: str
    kind: str


CONSTRAINTS: Final = (
    Phrase("Never edit {v}, it is generated.", "protected"),
    Phrase("Hands off {v}: the vendor owns that file.", "protected"),
    Phrase("Do not add a dependency without asking {v}.", "person"),
    Phrase("Only {v} may approve a migration.", "person"),
    Phrase("Public endpoints must answer within {v}.", "duration"),
    Phrase("One test must not take longer than {v}.", "duration"),
    Phrase("The whole worker has to stay within {v} of memory.", "memory"),
    Phrase("Don't log anything from the field {v}.", "identifier"),
    Phrase("Please don't rename the column {v}, the monthly reports read it.", "identifier"),
    Phrase("Everything new stays behind the flag {v} until I say otherwise.", "flag"),
    Phrase("Use {v} for every integration test and nothing else.", "host"),
    Phrase("Errors that users see always start with the code {v}.", "code"),
    Phrase("The ticket for this work is {v}.", "ticket"),
    Phrase("Commit messages begin with {v}, the hook checks that.", "ticket"),
    Phrase("The customer id in all examples is {v}.", "customer"),
    Phrase("Keep the coverage above {v}.", "percent"),
    Phrase("No function longer than {v}, our linter counts them.", "statements"),
    Phrase("Backups are kept for {v}, whatever the table says.", "days"),
    Phrase("I would rather have {v} in the examples than a made-up name.", "person"),
    Phrase("Anything that costs more than {v} needs my approval first.", "money"),
    Phrase("What you write to disk belongs below {v}.", "folder"),
    Phrase("Requests to the outside go through {v}, there is no other way out.", "host"),
)


class Changing(NamedTuple):
    """Something whose value is stated once and replaced later, in other words."""

    kind: str
    first: str
    later: tuple[str, ...]


CHANGING: Final = (
    Changing(
        "duration",
        "The request timeout must be {v}.",
        (
            "Let's go to a request timeout of {v} instead.",
            "The request timeout is {v} after all.",
        ),
    ),
    Changing(
        "host",
        "Deploys go to {v}.",
        ("Correction: from today deploys go to {v}.", "Deploys moved again, they go to {v} now."),
    ),
    Changing(
        "date",
        "We release on {v}.",
        ("The release moved: we release on {v}.", "New release date, we release on {v}."),
    ),
    Changing(
        "branch",
        "Use the branch {v} for this.",
        ("Switch to the branch {v} for the rest.", "Please work on the branch {v} now."),
    ),
    Changing(
        "attempts",
        "The retry limit is {v}.",
        ("Please raise the retry limit to {v}.", "Set the retry limit to {v}, we measured it."),
    ),
    Changing(
        "memory",
        "Keep the image below {v}.",
        ("Ops changed their mind: the image may have {v} at most.", "The image limit is {v} now."),
    ),
    Changing(
        "person",
        "The owner on call is {v}.",
        ("On call has changed, it is {v} now.", "The owner on call is {v} as of this morning."),
    ),
    Changing(
        "money",
        "Our spending limit for test runs is {v}.",
        (
            "Finance approved a new spending limit for test runs: {v}.",
            "The spending limit for test runs is {v} from now on.",
        ),
    ),
    Changing(
        "version",
        "Python has to be {v} here.",
        ("We upgraded, Python has to be {v} from now on.", "Target Python {v} instead."),
    ),
    Changing(
        "topic",
        "Audit lines go to the topic {v}.",
        ("Rename: audit lines go to the topic {v}.", "Audit lines now belong in the topic {v}."),
    ),
    Changing(
        "rows",
        "The page size is {v}.",
        ("Make the page size {v}, the customer asked for it.", "Page size: {v} from here on."),
    ),
    Changing(
        "minutes",
        "The cache lives for {v}.",
        ("New number for the cache, it lives for {v}.", "Let the cache live for {v}."),
    ),
)

REQUESTS: Final = (
    "Please look at {path} and find out why {noun} is {adjective}.",
    "Next: {verb} the {noun} in {path}.",
    "Can you {verb} {path} so that the {noun} is no longer {adjective}?",
    "The {noun} in {path} is still {adjective}, please {verb} it.",
    "Let's {verb} the {noun} now; {path} is where it starts.",
    "Okay, go on with {path} and {verb} the {noun}.",
)

TALK: Final = (
    "We saw this twice last week and both times it was gone after a restart.",
    "I think it has to do with how the {noun} is read, but I may be wrong.",
    "The {noun} was written in a hurry and looks {adjective} to me.",
    "A colleague tried to {verb} it in spring and gave up.",
    "Take your time with the {noun}, it is not urgent.",
    "There is a test for the {noun} somewhere, and it is {adjective}.",
    "It worked before the {noun} was moved.",
    "You will see a lot of {adjective} code there, ignore it for now.",
    "The old {noun} did this in one pass.",
    "If the {noun} turns out to be fine, look at what calls it.",
)

PROGRESS: Final = (
    "I'll read {path} first.",
    "The {noun} is built in {path}; let me look at how it is used.",
    "That explains it: the {noun} is {adjective} when the list is empty.",
    "Now I'll {verb} the {noun} and run the tests.",
    "Two callers depend on the {noun}, so I check them before the change.",
    "The tests pass, one warning about the {noun} remains.",
)

ANSWERS: Final = (
    "Done: I changed {path} so that the {noun} is no longer {adjective}. All tests pass.",
    "The {noun} was {adjective} because it was read twice; {path} reads it once now.",
    "I moved the {noun} into {path} and removed the old code.",
    "The cause was in {path}. I did {verb} the {noun} and added a test for it.",
)

NOUNS: Final = (
    "parser", "cache", "scheduler", "index", "importer", "session table", "retry loop", "encoder",
    "rate limiter", "export", "migration", "webhook handler", "worker pool", "audit trail",
    "search page", "billing run", "login form", "queue reader", "report", "settings loader",
)  # fmt: skip
ADJECTIVES: Final = (
    "slow", "flaky", "wrong", "empty", "too large", "incomplete", "out of date", "unreadable",
)  # fmt: skip
VERBS: Final = ("simplify", "rewrite", "split", "test", "speed up", "clean up", "extend", "fix")

FOLDERS: Final = ("src", "src/core", "src/web", "src/jobs", "lib/store", "tests", "tools")
WORDS: Final = (
    "order", "batch", "cursor", "value", "record", "stream", "handle", "bucket", "result", "entry",
    "lookup", "token", "window", "region", "buffer", "policy", "signal", "payload", "ledger",
    "segment", "router", "filter", "client", "writer", "reader", "shard", "offset", "replica",
)  # fmt: skip
FIRST_NAMES: Final = (
    "Mira", "Oskar", "Ines", "Tomas", "Aylin", "Jonas", "Priya", "Lucia", "Henrik", "Sanne",
    "Davor", "Noemi", "Kofi", "Elif", "Marek", "Wanda",
)  # fmt: skip
LAST_NAMES: Final = (
    "Olsen", "Lindqvist", "Moreau", "Novak", "Demir", "Keller", "Raman", "Ferreira", "Dahl",
    "Visser", "Horvat", "Marchetti", "Mensah", "Aydin", "Kowalski", "Brandt",
)  # fmt: skip
