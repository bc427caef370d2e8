# cython: language_level=3, boundscheck=False, wraparound=False, embedsignature=True
"""Reads the messages that come most often without making what nothing looks at.

A user's line, an API response, a frame of a response's stream and a transcript's `progress` make up nine
tenths of what Claude's runtimes send and write, and of their bytes next to all are words. This reader
checks that a message is JSON from its first byte to its last, makes the values that the derivation looks
at, and gives up on whatever is not usual: any field, type, escape or number that it was not made for.
What it gives up on is read in full, so it decides nothing: it must only never say what a full reading
would not (docs/adr/0023-the-deriver-can-be-compiled.md).
"""

from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy, memset

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DecodeUTF8

from streams.compiled.json_scan cimport (
    Bytes,
    enter,
    is_name,
    is_utf8,
    next_one,
    once,
    read_count,
    read_empty_list,
    read_name,
    read_text,
    read_truth,
    Reader,
    skip_any,
    skip_blank,
    skip_string,
    skip_word,
    Text,
)

from streams.compiled.record_batches cimport FetchedRecords, Place, read_varint

from contextgauge.normalise.usual import NOTHING as _nothing, UsualMessage as _usual_message
from streams.compiled.plain_messages import UsualRecord as _usual_record

cdef object NOTHING = _nothing, UsualMessage = _usual_message, UsualRecord = _usual_record

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* (*tp_alloc)(PyTypeObject*, Py_ssize_t) except NULL
    bint PyUnicode_IS_COMPACT_ASCII(PyObject* text)
    const void* PyUnicode_DATA(PyObject* text)
    Py_ssize_t PyUnicode_GET_LENGTH(PyObject* text)

cdef enum:
    _NAMES = 4096  # names at hand: those of the open sessions' chains and a fleet's models, most of the time
    _NAME_BYTES = 128  # longer ones are not kept

cdef PyObject* _names[_NAMES]

cdef enum:
    VARINT_BYTES = 10  # of a number, at most

cdef struct Source:  # what a record adds to its message
    long long offset
    long long timestamp_ms
    bint is_live
    Text key
    Text task
    Text agent

from contextgauge.normalise.runtimes import OWN_CALL_PREFIXES

cdef tuple _own_calls = OWN_CALL_PREFIXES

cdef enum Kind:  # as contextgauge/normalise/usual.py names them
    LINE = 0  # a transcript line without a figure of its own
    USER = 1
    RESPONSE = 2
    RESPONSE_END = 3

cdef struct Counts:
    long long input  # -1: null, or not there
    long long creation
    long long read
    long long output
    long long creation_1h
    Text tier
    Text speed

cdef struct Frame:
    unsigned int seen
    Text type
    Text session
    Text process  # a transcript's `session_id`: after `/clear` it names the process's first session
    Text uuid
    Text timestamp
    Text parent
    Text agent
    Text subagent
    Text request
    Text version
    Text folder
    bint is_transcript
    bint is_side

cdef struct Response:
    unsigned int seen
    Text id
    Text model
    Counts counts
    bint has_counts
    bint is_marked  # its words begin like a command, or like a command's output


cdef inline bint _is_of_no_interest_in_usage(Text name) noexcept nogil:
    return (
        is_name(name, b"inference_geo", 13)
        or is_name(name, b"server_tool_use", 15)
        or is_name(name, b"model", 5)
    )


cdef bint _creation(Reader* r, Counts* counts) noexcept nogil:
    """Read by how long what was written to the cache is kept."""
    cdef Text name
    cdef unsigned int seen = 0
    cdef int more
    if r.at[0] == c'n':
        return skip_word(r, b"null", 4)
    more = enter(r, c'{', c'}')
    while more > 0:
        if not read_name(r, &name):
            return False
        if is_name(name, b"ephemeral_1h_input_tokens", 25):
            if not (once(&seen, 1) and read_count(r, &counts.creation_1h)):
                return False
        elif not skip_any(r):
            return False
        more = next_one(r, c'}')
    return more == 0


cdef bint _usage(Reader* r, Counts* counts, Text* kind) noexcept nogil:
    """Read an object of token counts, Anthropic's; or an iteration of one, which has a `kind`."""
    cdef Text name
    cdef Counts counted = counts[0]
    cdef bint is_usual, is_iterated = False
    cdef unsigned int seen = 0
    cdef int more = enter(r, c'{', c'}')
    while more > 0:
        if not read_name(r, &name):
            return False
        if is_name(name, b"input_tokens", 12):
            is_usual = once(&seen, 1) and read_count(r, &counts.input)
        elif is_name(name, b"cache_creation_input_tokens", 27):
            is_usual = once(&seen, 2) and read_count(r, &counts.creation)
        elif is_name(name, b"cache_read_input_tokens", 23):
            is_usual = once(&seen, 4) and read_count(r, &counts.read)
        elif is_name(name, b"output_tokens", 13):
            is_usual = once(&seen, 8) and read_count(r, &counts.output)
        elif is_name(name, b"cache_creation", 14):
            is_usual = once(&seen, 64) and _creation(r, counts)
        elif is_name(name, b"service_tier", 12):
            is_usual = once(&seen, 128) and read_text(r, &counts.tier)
        elif is_name(name, b"speed", 5):
            is_usual = once(&seen, 256) and read_text(r, &counts.speed)
        elif kind != NULL and is_name(name, b"type", 4):
            is_usual = once(&seen, 16) and read_text(r, kind)
        elif kind == NULL and is_name(name, b"iterations", 10):
            is_usual = once(&seen, 32) and _iterations(r, &counted, &is_iterated)
        else:
            is_usual = _is_of_no_interest_in_usage(name) and skip_any(r)
        if not is_usual:
            return False
        more = next_one(r, c'}')
    if is_iterated:
        counts.input, counts.creation, counts.read = counted.input, counted.creation, counted.read
        counts.creation_1h = counted.creation_1h
    return more == 0


cdef bint _iterations(Reader* r, Counts* counted, bint* is_iterated) noexcept nogil:
    """Read a response's calls of the model: the last that is the conversation's counts (R8)."""
    cdef Counts counts
    cdef Text kind
    cdef int more
    if r.at[0] == c'n':
        return skip_word(r, b"null", 4)
    more = enter(r, c'[', c']')
    while more > 0:
        counts.input = counts.creation = counts.read = counts.output = counts.creation_1h = -1
        kind.at = NULL
        if not _usage(r, &counts, &kind):
            return False
        if kind.at != NULL and (
            is_name(kind, b"message", 7) or is_name(kind, b"fallback_message", 16)
        ):
            counted[0], is_iterated[0] = counts, True
        more = next_one(r, c']')
    return more == 0


cdef bint _no_edits(Reader* r) noexcept nogil:
    """Read a `context_management` without an edit."""
    cdef Text name
    cdef int more
    if r.at[0] == c'n':
        return skip_word(r, b"null", 4)
    more = enter(r, c'{', c'}')
    while more > 0:
        if not (read_name(r, &name) and is_name(name, b"applied_edits", 13) and read_empty_list(r)):
            return False
        more = next_one(r, c'}')
    return more == 0


cdef bint _stop_reason(Reader* r) noexcept nogil:
    """Read why a response ended, unless it was for lack of room."""
    cdef Text reason
    return read_text(r, &reason) and (
        reason.at == NULL or not is_name(reason, b"model_context_window_exceeded", 29)
    )


cdef inline void _mark(Reader* r, bint* is_marked) noexcept nogil:
    """Note whether a string that comes begins with `<` or `/`, as it stands or escaped."""
    cdef unsigned char c
    if r.at[0] == c'"':
        c = r.at[1]
        if c == c'\\':
            c = r.at[2]
            is_marked[0] |= c == c'u' or c == c'/'
        else:
            is_marked[0] |= c == c'<' or c == c'/'


cdef bint _block(Reader* r, bint* is_marked, bint is_first) noexcept nogil:
    """Read a content block that is no compaction."""
    cdef Text name, kind
    cdef int more = enter(r, c'{', c'}')
    while more > 0:
        if not read_name(r, &name):
            return False
        if is_name(name, b"type", 4):
            if not read_text(r, &kind) or kind.at == NULL or is_name(kind, b"compaction", 10):
                return False
        else:
            if is_first and is_name(name, b"text", 4):
                _mark(r, is_marked)
            if not skip_any(r):
                return False
        more = next_one(r, c'}')
    return more == 0


cdef bint _content(Reader* r, bint* is_marked) noexcept nogil:
    """Read a message's words: a string, or blocks."""
    cdef bint is_first = True
    cdef int more
    if r.at[0] == c'"':
        _mark(r, is_marked)
        r.at += 1
        return skip_string(r)
    more = enter(r, c'[', c']')
    while more > 0:
        if not _block(r, is_marked, is_first):
            return False
        is_first = False
        more = next_one(r, c']')
    return more == 0


cdef inline bint _is_of_no_interest_in_message(Text name) noexcept nogil:
    return (
        is_name(name, b"role", 4)
        or is_name(name, b"type", 4)
        or is_name(name, b"stop_sequence", 13)
        or is_name(name, b"stop_details", 12)
        or is_name(name, b"diagnostics", 11)
        or is_name(name, b"container", 9)
    )


cdef bint _message(Reader* r, Response* response) noexcept nogil:
    """Read the message inside a frame, a user's or a response."""
    cdef Text name
    cdef bint is_usual
    cdef int more = enter(r, c'{', c'}')
    while more > 0:
        if not read_name(r, &name):
            return False
        if is_name(name, b"content", 7):
            is_usual = once(&response.seen, 1) and _content(r, &response.is_marked)
        elif is_name(name, b"usage", 5):
            response.has_counts = True
            is_usual = once(&response.seen, 2) and _usage(r, &response.counts, NULL)
        elif is_name(name, b"id", 2):
            is_usual = once(&response.seen, 4) and read_text(r, &response.id)
        elif is_name(name, b"model", 5):
            is_usual = once(&response.seen, 8) and read_text(r, &response.model) and (
                response.model.at == NULL or not is_name(response.model, b"<synthetic>", 11)
            )
        elif is_name(name, b"stop_reason", 11):
            is_usual = _stop_reason(r)
        elif is_name(name, b"context_management", 18):
            is_usual = _no_edits(r)
        else:
            is_usual = _is_of_no_interest_in_message(name) and skip_any(r)
        if not is_usual:
            return False
        more = next_one(r, c'}')
    return more == 0


cdef bint _delta(Reader* r) noexcept nogil:
    """Read what a stream's event adds, unless it says that there was no room."""
    cdef Text name
    cdef int more = enter(r, c'{', c'}')
    while more > 0:
        if not read_name(r, &name):
            return False
        if not (_stop_reason(r) if is_name(name, b"stop_reason", 11) else skip_any(r)):
            return False
        more = next_one(r, c'}')
    return more == 0


cdef inline bint _is_of_no_interest_in_event(Text name) noexcept nogil:
    return is_name(name, b"index", 5) or is_name(name, b"content_block", 13)


cdef bint _event(Reader* r, Text* kind, Response* response) noexcept nogil:
    """Read an event of a response's stream."""
    cdef Text name
    cdef bint is_usual
    cdef unsigned int seen = 0
    cdef int more = enter(r, c'{', c'}')
    while more > 0:
        if not read_name(r, &name):
            return False
        if is_name(name, b"type", 4):
            is_usual = once(&seen, 1) and read_text(r, kind)
        elif is_name(name, b"delta", 5):
            is_usual = _delta(r)
        elif is_name(name, b"usage", 5):
            # The end's own counts are next to a message, the start's are in it: never both.
            is_usual = (
                not response.seen and once(&seen, 2) and _usage(r, &response.counts, NULL)
            )
            response.has_counts = True
        elif is_name(name, b"message", 7):
            is_usual = not response.has_counts and once(&seen, 4) and _message(r, response)
        elif is_name(name, b"context_management", 18):
            is_usual = _no_edits(r)
        else:
            is_usual = _is_of_no_interest_in_event(name) and skip_any(r)
        if not is_usual:
            return False
        more = next_one(r, c'}')
    return more == 0 and kind.at != NULL


cdef bint _field(Reader* r, Frame* frame, Text name) noexcept nogil:
    """Read a field next to the message: in the stream's spelling, the transcript's, or both the same."""
    cdef unsigned int bit
    cdef Text* text
    if is_name(name, b"type", 4):
        bit, text = 1, &frame.type
    elif is_name(name, b"session_id", 10):
        bit, text = 2048, &frame.process
    elif is_name(name, b"uuid", 4):
        bit, text = 4, &frame.uuid
    elif is_name(name, b"timestamp", 9):
        bit, text = 8, &frame.timestamp
    elif is_name(name, b"parent_tool_use_id", 18):
        bit, text = 16, &frame.parent
    elif is_name(name, b"request_id", 10) or is_name(name, b"requestId", 9):
        bit, text = 32, &frame.request
    elif is_name(name, b"agent_id", 8) or is_name(name, b"agentId", 7):
        bit, text = 64, &frame.agent
    elif is_name(name, b"subagent_type", 13):
        bit, text = 128, &frame.subagent
    elif is_name(name, b"sessionId", 9):
        frame.is_transcript = True
        bit, text = 2, &frame.session
    elif is_name(name, b"version", 7):
        bit, text = 256, &frame.version
    elif is_name(name, b"cwd", 3):
        bit, text = 512, &frame.folder
    elif is_name(name, b"isSidechain", 11):
        frame.is_transcript = True
        return once(&frame.seen, 1024) and read_truth(r, &frame.is_side)
    elif is_name(name, b"parentUuid", 10):
        frame.is_transcript = True
        return skip_any(r)
    elif is_name(name, b"toolUseResult", 13) or is_name(name, b"tool_use_result", 15):
        return _tool_result(r)
    else:
        return _is_of_no_interest(name) and skip_any(r)
    return once(&frame.seen, bit) and read_text(r, text)


cdef bint _tool_result(Reader* r) noexcept nogil:
    """Read a tool's result, unless it is an agent's: it names the type, and the model with its suffix."""
    cdef Text name
    cdef int more
    if r.at[0] != c'{':
        return skip_any(r)
    more = enter(r, c'{', c'}')
    while more > 0:
        if not read_name(r, &name):
            return False
        if is_name(name, b"resolvedModel", 13) or is_name(name, b"resolved_model", 14):
            return False
        if is_name(name, b"agentType", 9) or is_name(name, b"agent_type", 10):
            return False
        if not skip_any(r):
            return False
        more = next_one(r, c'}')
    return more == 0


cdef inline bint _is_of_no_interest(Text name) noexcept nogil:
    """Return whether nothing reads a field next to a message."""
    return (
        is_name(name, b"userType", 8)
        or is_name(name, b"gitBranch", 9)
        or is_name(name, b"slug", 4)
        or is_name(name, b"entrypoint", 10)
        or is_name(name, b"permissionMode", 14)
        or is_name(name, b"sourceToolAssistantUUID", 23)
        or is_name(name, b"sourceToolUseID", 15)
        or is_name(name, b"thinkingMetadata", 16)
        or is_name(name, b"todos", 5)
        or is_name(name, b"isVisibleInTranscriptOnly", 25)
        or is_name(name, b"promptId", 8)
        or is_name(name, b"data", 4)
        or is_name(name, b"toolUseID", 9)
        or is_name(name, b"parentToolUseID", 15)
    )


cdef inline bint _says_nothing(Text event) noexcept nogil:
    """Return whether an event of a response's stream is only a piece of it."""
    return (
        is_name(event, b"content_block_delta", 19)
        or is_name(event, b"content_block_start", 19)
        or is_name(event, b"content_block_stop", 18)
        or is_name(event, b"message_stop", 12)
        or is_name(event, b"ping", 4)
    )


cdef inline object _str(Text text):
    if text.at == NULL:
        return None
    return PyUnicode_DecodeUTF8(<const char*>text.at, text.size, NULL)


cdef inline object _name(Text text):
    """Return a text that other messages have too, as an object that they share where it is at hand."""
    cdef uint64_t word, mixed = <uint64_t>text.size
    cdef Py_ssize_t left = text.size
    cdef PyObject** place
    cdef PyObject* known
    if text.at == NULL:
        return None
    if not 0 < left <= _NAME_BYTES:
        return _str(text)
    while left >= 8:
        memcpy(&word, text.at + text.size - left, 8)
        mixed = (mixed ^ word) * <uint64_t>0x9E3779B97F4A7C15u
        mixed ^= mixed >> 29
        left -= 8
    word = 0
    memcpy(&word, text.at + text.size - left, left)
    mixed = (mixed ^ word) * <uint64_t>0x9E3779B97F4A7C15u
    place = _names + (mixed >> 40) % _NAMES
    known = place[0]
    if (
        known != NULL
        and PyUnicode_GET_LENGTH(known) == text.size
        and memcmp(PyUnicode_DATA(known), text.at, text.size) == 0
    ):
        return <object>known
    made = _str(text)
    if PyUnicode_IS_COMPACT_ASCII(<PyObject*>made):
        Py_INCREF(made)
        place[0] = <PyObject*>made
        Py_XDECREF(known)
    return made


cdef inline object _int(long long count):
    return None if count < 0 else count


cdef inline int _number(Bytes at, int digits) noexcept nogil:
    """Return a number of so many digits, or a negative one where there are others."""
    cdef int i, number = 0
    for i in range(digits):
        if not c'0' <= at[i] <= c'9':
            return -10_000
        number = number * 10 + at[i] - c'0'
    return number


cdef inline object _moment(Text text):
    """Return what a timestamp `YYYY-MM-DDTHH:MM:SS.mmmZ` says in milliseconds since 1970; any other's text."""
    cdef Bytes at = text.at
    cdef int year, month, day, hour, minute, second, ms
    cdef long long days
    if at == NULL:
        return None
    if (
        text.size != 24 or at[4] != c'-' or at[7] != c'-' or at[10] != c'T' or at[13] != c':'
        or at[16] != c':' or at[19] != c'.' or at[23] != c'Z'
    ):
        return _str(text)
    year, month, day = _number(at, 4), _number(at + 5, 2), _number(at + 8, 2)
    hour, minute, second = _number(at + 11, 2), _number(at + 14, 2), _number(at + 17, 2)
    ms = _number(at + 20, 3)
    # Days that not every month has are left to the full reading.
    if not (
        1970 <= year and 1 <= month <= 12 and 1 <= day <= 28 + 2 * (month != 2)
        and 0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59 and ms >= 0
    ):
        return _str(text)
    # Years that begin in March, so that a leap day is the last of its year.
    if month <= 2:
        year -= 1
        month += 12
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day - 719469
    return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000 + ms


cdef inline void _put(object values, Py_ssize_t place, object value):
    Py_INCREF(value)
    PyTuple_SET_ITEM(values, place, value)


cdef inline object _new(object cls, Py_ssize_t fields):
    """Return an instance of a NamedTuple, for `_put` to fill."""
    made = <object>(<PyTypeObject*>cls).tp_alloc(<PyTypeObject*>cls, fields)
    Py_DECREF(made)  # the allocation's own
    return made


cdef object _said(Kind kind, Frame* frame, Response* response):
    said = _new(UsualMessage, 21)
    cdef Text key = frame.request if response.id.at == NULL else response.id
    _put(said, 0, <int>kind)
    _put(said, 1, _name(frame.process if frame.session.at == NULL else frame.session))
    _put(said, 2, _str(frame.uuid))
    _put(said, 3, _moment(frame.timestamp))
    _put(said, 4, _name(frame.parent))
    _put(said, 5, _name(frame.agent))
    _put(said, 6, _name(frame.subagent))
    _put(said, 7, frame.is_transcript)
    _put(said, 8, frame.is_side)
    _put(said, 9, _name(frame.version))
    _put(said, 10, _name(frame.folder))
    _put(said, 11, _str(key) if kind == RESPONSE else None)
    _put(said, 12, _name(response.model))
    _put(said, 13, _int(response.counts.input))
    _put(said, 14, _int(response.counts.creation))
    _put(said, 15, _int(response.counts.read))
    _put(said, 16, _int(response.counts.output))
    _put(said, 17, _int(response.counts.creation_1h))
    _put(said, 18, _str(frame.request) if kind == RESPONSE else None)
    _put(said, 19, _name(response.counts.tier))
    _put(said, 20, _name(response.counts.speed))
    return said


def read(value, /):
    """Return what a message says, or None where it is not usual."""
    if not PyBytes_CheckExact(value):
        return None
    return _read(<Bytes>PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value), False)


def read_record(records not None, Py_ssize_t index, Py_ssize_t limit_bytes, /):
    """Return what a fetched record's message says, with what the record adds; None where it is not usual.

    A message without a `uuid` is not usual here, nor one of more than so many bytes.
    """
    if type(records) is not FetchedRecords:
        return None
    cdef Place* place = (<FetchedRecords>records).place(index)
    cdef unsigned char* end
    cdef unsigned char after
    cdef Source source
    if place.value == NULL or place.value_size > limit_bytes or not _is_usual_source(place, &source):
        return None
    # What reads relies on a zero behind the value. There the number of headers begins, which is put
    # back: nothing else looks at these bytes meanwhile.
    end = <unsigned char*>place.value + place.value_size
    after, end[0] = end[0], 0
    try:
        message = _read(place.value, place.value_size, True)
    finally:
        end[0] = after
    if message is None:
        return None
    record = _new(UsualRecord, 7)
    _put(record, 0, message)
    _put(record, 1, _name(source.key))
    _put(record, 2, source.timestamp_ms if source.is_live and source.timestamp_ms >= 0 else None)
    _put(record, 3, _name(source.task))
    _put(record, 4, _name(source.agent))
    _put(record, 5, source.offset)
    _put(record, 6, source.timestamp_ms)
    return record


cdef bint _is_usual_source(Place* place, Source* source) noexcept nogil:
    """Read a record's key and headers; False where one is seldom, or has text that is not ASCII."""
    cdef Bytes at = place.headers
    cdef Text name, value
    cdef long long size
    cdef Py_ssize_t left
    memset(source, 0, sizeof(Source))
    source.offset, source.timestamp_ms = place.offset, place.timestamp_ms
    if place.key_size:
        source.key.at, source.key.size = place.key, place.key_size
    for left in range(place.header_count):
        # Whether all of it is there was looked at when the batch was split.
        read_varint(&at, at + VARINT_BYTES, &size)
        name.at, name.size = at, size
        at += size
        read_varint(&at, at + VARINT_BYTES, &size)
        value.at, value.size = (at if size > 0 else NULL), max(size, 0)
        at += value.size
        if is_name(name, b"observed", 8):
            source.is_live = place.created and is_name(value, b"live", 4)
        elif is_name(name, b"task_id", 7):
            source.task = value
        elif is_name(name, b"agent_id", 8):
            source.agent = value
        elif is_name(name, b"thread_id", 9) or is_name(name, b"inherited", 9):
            return False
        elif is_name(name, b"compaction_settings", 19):
            return False
    return _is_ascii(source.key) and _is_ascii(source.task) and _is_ascii(source.agent)


cdef bint _is_ascii(Text text) noexcept nogil:
    cdef Py_ssize_t i
    cdef unsigned char bits = 0
    for i in range(text.size):
        bits |= text.at[i]
    return bits < 0x80


cdef object _read(Bytes begin, Py_ssize_t size, bint is_in_place):
    cdef Reader r
    cdef Frame frame
    cdef Response response
    cdef Text name, event
    cdef bint has_message = False, has_event = False
    cdef int more
    r.at = begin
    r.end = begin + size
    r.bits = 0
    memset(&frame, 0, sizeof(frame))
    memset(&response, 0, sizeof(response))
    event.at, event.size = NULL, 0
    response.counts.input = response.counts.creation = -1
    response.counts.read = response.counts.output = response.counts.creation_1h = -1
    more = enter(&r, c'{', c'}')
    while more > 0:
        if not read_name(&r, &name):
            return None
        if is_name(name, b"message", 7):
            if has_message or not _message(&r, &response):
                return None
            has_message = True
        elif is_name(name, b"event", 5):
            if has_event or not _event(&r, &event, &response):
                return None
            has_event = True
        elif not _field(&r, &frame, name):
            return None
        more = next_one(&r, c'}')
    skip_blank(&r)
    if more < 0 or r.at != r.end or frame.type.at == NULL:
        return None
    if frame.is_transcript and frame.version.at != NULL and not (
        response.seen & 1 if has_message else frame.seen & 1024
    ):
        return None  # whether Claude Code wrote it shows in other fields
    if r.bits and not is_utf8(begin, r.end):
        return None
    if frame.is_side and frame.agent.at != NULL and _name(frame.agent).startswith(_own_calls):
        return None  # a compaction's own call
    if is_in_place and frame.uuid.at == NULL and not (has_event and _says_nothing(event)):
        return None  # its bytes are needed to identify it
    if has_message == has_event:
        if has_event or not is_name(frame.type, b"progress", 8):
            return None
        return _said(LINE, &frame, &response) if frame.is_transcript else None
    if is_name(frame.type, b"user", 4):
        return None if has_event or response.is_marked else _said(USER, &frame, &response)
    if is_name(frame.type, b"assistant", 9):
        if has_event:
            return None
    elif is_name(frame.type, b"stream_event", 12):
        if has_message or frame.is_transcript:
            return None
        if is_name(event, b"message_delta", 13):
            if not response.has_counts or response.seen or response.counts.output < 0:
                return None
            return _said(RESPONSE_END, &frame, &response)
        if _says_nothing(event):
            return NOTHING
        if not is_name(event, b"message_start", 13):
            return None
        if not response.seen:
            return None
    else:
        return None
    if response.counts.input < 0 and response.counts.creation < 0 and response.counts.read < 0:
        return None
    return _said(RESPONSE, &frame, &response)
