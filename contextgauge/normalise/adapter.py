"""What an adapter declares of its runtime: by what its lines are known, and what is in them.

An adapter is a folder of this package whose `ADAPTERS` say all that is particular of a runtime (or
of an API's answers). `runtimes` finds the folders and joins what they declare; everything that
handles lines works from that: recognising files, deriving (`read`), publishing (`fields` say what
stays when a line is shortened or sent without its texts), conversations, titles, folders.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

from contextgauge.normalise.figure_sources import FigureColumn
from contextgauge.normalise.fork_form import ForkForm
from contextgauge.normalise.installation import Installation
from contextgauge.normalise.signals import Body, Signal
from contextgauge.normalise.spellings import COMMON, Spelling
from contextgauge.normalise.tells import Tells
from contextgauge.record_words import Runtime
from contextgauge.records import Json
from contextgauge.runtime_settings import SettingsReading

ABSENT: Final = object()
"""What a sign wants of a field that must not be there."""

PRESENT: Final = object()
"""What a sign wants of a field whose value does not matter."""

NO_TEXT: Final = "contextgauge_no_text"
"""Field of a message that came without its texts: true, or a keyed hash of what identifies it."""

SHORTENED: Final = "contextgauge_shortened"
"""Field of a message that came with a part of its texts: the original's size and SHA-256 (hex)."""

UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""In the name of a file."""

Sign: TypeAlias = Mapping[str, object]
"""What identifies a message: wanted values by dotted path. A type stands for any value of it."""

Reader: TypeAlias = Callable[[Body], tuple[Signal, ...]]


class Meaning(Enum):
    """What a field holds. It is read, so it stays, whatever else of a message is left out."""

    NAME = auto()
    """An id, a model, a version: at most MAX_NAME characters."""
    LONG_NAME = auto()
    """A session's id or a folder: at most MAX_LONG_NAME characters."""
    WORD = auto()
    """A type or a status."""
    TIME = auto()
    FIGURES = auto()
    """Numbers, flags, ids and words in objects and lists of any depth: a usage, metadata."""
    TEXT = auto()
    """Words of a person or a model: only what an adapter's `beginning` gives of them is read."""


class Words(NamedTuple):
    """Words of a runtime, of which `beginning` gives what is read; it may be empty."""

    beginning: Callable[[str], str]


class Blocks(NamedTuple):
    """A text, or a list of blocks with these fields."""

    block: "Fields"


class Inside(NamedTuple):
    """An object with these fields; `otherwise` is what it is where it is none."""

    fields: "Fields"
    otherwise: "Field | None" = None


class Rows(NamedTuple):
    """A list of such objects."""

    fields: "Fields"


class ByName(NamedTuple):
    """An object of such objects by names that stay, as of models."""

    fields: "Fields"


class Only(NamedTuple):
    """An object of which `read` gives the few fields that are read, all of one meaning."""

    read: Callable[[dict[str, Json]], Mapping[str, Json]]
    meaning: Meaning


class Either(NamedTuple):
    """An object with `fields` where the field `by` is `value`, else with others."""

    by: str
    value: str
    fields: "Fields"
    otherwise: "Fields"


Field: TypeAlias = Meaning | Words | Blocks | Inside | Rows | ByName | Only | Either
Fields: TypeAlias = Mapping[str, Field]


def named(meaning: Field, names: str) -> dict[str, Field]:
    """Return fields of one meaning, by their names with spaces between them."""
    return dict.fromkeys(names.split(), meaning)


def joined(*tables: Fields) -> dict[str, Field]:
    """Return the fields of all tables. Of one that has two meanings the later counts.

    Objects that are in several have the fields of all.
    """
    together: dict[str, Field] = {}
    for table in tables:
        for name, meaning in table.items():
            known = together.get(name)
            if isinstance(known, Inside) and isinstance(meaning, Inside):
                otherwise = meaning.otherwise or known.otherwise
                together[name] = Inside(joined(known.fields, meaning.fields), otherwise)
            else:
                together[name] = meaning
    return together


class FileHead(NamedTuple):
    """Whose a file is, by the line that begins it (R1, R30).

    `thread_id` is set where it is a subagent's, a chain of the session; `origin` is the thread
    whose lines the file may begin with. `is_by_name`: the line shows what the file is, and the
    file's path whose it is, see `Adapter.files`.
    """

    session: str | None
    thread_id: str | None = None
    origin: str | None = None
    subagent_type: str | None = None
    is_by_name: bool = False


def _nothing(_: Body) -> tuple[Signal, ...]:
    return ()


def _none_of_it(_: str) -> str:
    return ""


def _any(_: Body) -> bool:
    return True


_NO_FIELDS: Final[Fields] = {}


class LineType(NamedTuple):
    """What the lines of one type say; by default nothing.

    `read` gives the signals for the rules. `fields` are those that only these lines have.
    `conversation` reduces a line to what its conversation needs, in a form that
    `contextgauge/compaction/reading/conversation.py` reads: Claude Code's `user`, `assistant` and
    `compact_boundary`, Codex' items, or an API's answer. `prompt` gives the content of what a
    person typed. `instructions` gives the system prompt that a line has, `attached` the text that
    a runtime attached and its model sees. `head` is of lines that begin a file. `moment` gives the
    time of a line without `timestamp`, `turn_ms` when the turn began that a line opens, both in
    milliseconds since 1970. `thread` gives the subagent whose a line is, where it stands in the
    file of its session and names it otherwise than by a field of the `spelling` (R2).
    """

    read: Reader = _nothing
    fields: Fields = _NO_FIELDS
    conversation: Callable[[Body], dict[str, Json] | None] | None = None
    prompt: Callable[[Body], Json] | None = None
    instructions: Callable[[Body], str | None] | None = None
    attached: Callable[[Body], str | None] | None = None
    head: Callable[[Body], FileHead] | None = None
    moment: Callable[[Body], int | None] | None = None
    turn_ms: Callable[[Body], int | None] | None = None
    thread: Callable[[Body], str | None] | None = None
    spelling: Spelling = COMMON
    session: Callable[[Body], str | None] | None = None
    cause: Callable[[Body], str | None] | None = None
    beginning: Callable[[str], str] = _none_of_it
    """These four are set by `runtimes`, to the adapter's; it adds the adapter's `fields` too."""


_NO_TYPES: Final[Mapping[str, LineType]] = {}


ANY_TEXT: Final = r".*"
"""The shape of what only the action before it marks: not in a conversation with calls of tools."""


class TextMark(NamedTuple):
    """What a harness writes in the user's role, by the whole shape of a text (a block's).

    White space around the text, and after the answer, is not looked at. A shape never tries a part
    again at each place of another (atomic groups): a hostile text would take hours.

    `shape` is a regular expression of the whole text; its groups are what in it a person wrote,
    and where all are empty or missing, nothing is. With `after`, it is only a mark right after an
    answer of the model in which that is found: the text alone could be a person's. With `rest`,
    the text is a heading: what follows it in the message is of the harness too, but for what
    `rest` has in its group.
    """

    shape: str
    after: str | None = None
    rest: str | None = None


def tagged(names: str) -> str:
    """Return the shape of a text in one of these tags; what follows the last one is a person's.

    A closing tag within the content is not the last, so content cannot end what it stands in.
    """
    tag = "|".join(names.split())
    return rf"<(?:{tag})(?:\s[^<>]*)?>.*</(?:{tag})>\s*(.*)"


class OwnCalls(NamedTuple):
    """Chains in which a runtime writes a compaction's own call: how their ids begin (R11)."""

    prefix: str
    read: Callable[[str, Body], tuple[Signal, ...]]


class CopiedLines(NamedTuple):
    """Lines that show whether a file's are copies of another thread's (R30).

    Each has one of `signs`; `key` gives what it is known by, in a copy too. `folders` gives the
    folders below `Folders.transcripts` in which a thread's file may be, where its id shows them:
    all as deep as those of the copies.
    """

    signs: tuple[bytes, ...]
    key: Callable[[Body], bytes | None]
    folders: Callable[[str], Sequence[str]]


class Folders(NamedTuple):
    """A runtime's folders: `transcripts` and `archive` are below each of its homes.

    Its homes are those that the first set one of `variables` lists, separated by commas, else
    `homes`: of these one may begin with a `$VARIABLE`, and is none where that is not set and has
    no default. The runtime moves transcripts that a user archives to `archive`, and back: those
    whose names `archived` describes. What its groups match are the folders below `transcripts` that
    such a file came from.
    """

    variables: tuple[str, ...]
    homes: tuple[str, ...]
    transcripts: str
    archive: str | None = None
    archived: str | None = None


class Database(NamedTuple):
    """A SQLite database in which a runtime keeps its sessions.

    Each of `queries` gives a row's number, its key and its line, a JSON object's text, of the rows
    after `:after` in the order in which they came, at most `:limit`. A line never changes once it
    is there; it is null while the row is not complete. The rows of each query come behind those of
    the query before it. A file is such a database where one of them can be prepared: of the others
    it has not the tables. `sessions` give the id and title of each, but for subagents'.
    """

    queries: tuple[str, ...]
    sessions: tuple[str, ...]


class Joined(NamedTuple):
    """How a session in JSON documents, which its runtime writes again, is read as lines.

    A file that the adapter's `files` describe, and whose name ends with `suffix`, is a session's,
    if it has one of the `signs`; with a `/` before it, the suffix is the whole name. `others` are
    files that belong to it, as patterns of paths from its folder, in which `{}` is its name without
    the suffix. `lines` gives the lines' objects of the document and of those others: for each
    pattern the objects of its files, by their names.

    `below` are further files that belong to each of the others, as a pattern in which `{}` is that
    one's name without its ending; those that `is_kept` holds of are the next objects for `lines`.
    A change of them alone is not looked for: the runtime writes the other one again after them.
    `above` is the field that names the document in the same folder which the session belongs to:
    the last objects for `lines` are that one, what it belongs to, and so on. `title` is the field
    with the session's title.
    """

    suffix: str
    others: tuple[str, ...]
    lines: Callable[[Body, Sequence[Sequence[Body]]], Iterable[Body]]
    below: str | None = None
    is_kept: Callable[[Body], bool] = _any
    above: str | None = None
    title: str | None = None


class Adapter(NamedTuple):
    """One format of one runtime.

    `label` is its name for people, `runtime` that in records: by default its folder's. Of `signs`
    one that fits is enough, and of `line_signs`, by which lines are its own where other adapters
    have their types. `types` are its lines by `type`, `untyped` those without one by a field that
    they have; an adapter without any only recognises. `fields` are those that all its lines may
    have.
    """

    label: str
    runtime: Runtime = ""
    signs: tuple[Sign, ...] = ()
    line_signs: tuple[Sign, ...] = ()
    types: Mapping[str, LineType] = _NO_TYPES
    untyped: Mapping[str, LineType] = _NO_TYPES
    ignored: tuple[str, ...] = ()
    """Types of its lines whose figures are sums, of calls outside the conversation, or repeated."""
    fields: Fields = _NO_FIELDS
    spelling: Spelling = COMMON
    session: Callable[[Body], str | None] | None = None
    """Gives the session that a line names otherwise than by a field of the `spelling`."""
    cause: Callable[[Body], str | None] | None = None
    """Gives what identifies a line without a `uuid`, however often and where it is written (R4)."""
    session_names: tuple[str, ...] = ()
    """The fields in which it does so, at any depth."""
    versions: tuple[str, ...] = ()
    """Fields of an `init` that name the runtime's version."""
    is_transcript: bool = False
    """Its lines have the fields of Claude Code's transcripts."""
    is_borrowed: bool = False
    """Others write lines in its form: it is asked last, and any line may have its fields."""
    has_default_window: bool = False
    """The default window is assumed for a model that nothing is known of."""
    has_own_windows: bool = False
    """It gives models windows of its own: those of the catalog are none of its sessions'."""
    compacts_itself: bool = False
    """It replaces its own history, and sends what it knows itself, whatever others keep of it."""
    database: Database | None = None
    """Where its sessions are rows, which stand for lines."""
    joined: Joined | None = None
    document: str | None = None
    """The field that lists the messages where a file is a single JSON object."""
    files: tuple[str, ...] = ()
    """Regular expressions of how the paths of its transcripts end, with `/` between folders.

    A group `session` is the session's id, of the file or of a folder that holds all its files,
    `thread` names the chain of a subagent's file, `own_call` one of a compaction's own call,
    `loose` one of a subagent whose session only the lines name. Any other name is a session's, too.
    """
    other_files: tuple[str, ...] = ()
    """The same of files next to them which are not transcripts, as a history of commands."""
    closed: str | None = None
    """A regular expression of what it adds to the name of a session's file once that is over."""
    folders: Folders | None = None
    settings: SettingsReading | None = None
    """Of automatic compaction; its homes are those of `folders`."""
    installation: Installation | None = None
    """Its homes are those of `folders`, too."""
    own_calls: OwnCalls | None = None
    copied: CopiedLines | None = None
    fork: ForkForm | None = None
    """How its sessions are forked; its files are below the first of its `folders`."""
    figure_words: tuple[str, ...] = ()
    """Fields among FIGURES that hold a word, and no text."""
    prompt_words: tuple[str, ...] = ()
    """JSON strings, one of which is in each line that may have a prompt."""
    beginning: Callable[[str], str] = _none_of_it
    """Gives the beginning of a text that is read, as of a user's commands; it may be empty."""
    marks: tuple[TextMark, ...] = ()
    """What it writes in the user's role, which is no person's."""
    without_size: Sequence[tuple[str, str]] = ()
    """Regular expressions of types that never give a size, and what to publish instead."""
    tells: Tells | None = None
    """None of one that is only recognised."""
    figures: tuple[FigureColumn, ...] = ()
    """Where its figures come from, by format."""
    instead: str | None = None
    """Of a file that is only recognised: what it is, and which other file has the session."""

    @property
    def is_read(self) -> bool:
        """Whether this version reads it, and not only recognises it."""
        return bool(self.types or self.untyped)

    @property
    def session_label(self) -> str:
        """One of its sessions, in words: a pi session, an opencode session."""
        article = "an" if self.label[0].lower() in "aeiou" else "a"
        return f"{article} {self.label} session"
