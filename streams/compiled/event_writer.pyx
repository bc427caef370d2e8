# cython: language_level=3, boundscheck=False, wraparound=False, embedsignature=True
"""Writes derived records as binary-mode CloudEvents, as `cloudevents.to_binary` does, in one pass.

A record of plain text and numbers, as nearly all are, is written field by field; what is not is left to
`to_binary`, so this decides nothing. The two are compared in `tests/codec/test_event_writer.py`.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* (*tp_alloc)(PyTypeObject*, Py_ssize_t) except NULL
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    int PyUnicode_IS_ASCII(object text)
    char* PyOS_double_to_string(double value, char format_code, int precision, int flags, int* type)
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1
    int Py_DTSF_ADD_DOT_0

cdef enum:
    ROOM = 16384  # most records have 500 bytes; longer ones are left
    DIGITS = 20  # of a number of 64 bits
    DEPTH = 8  # of lists and objects; deeper ones are left

cdef double _LEAST = 0.001, _MOST = 1e15
"""Between them, and their negatives, Python and the JSON library write a number alike."""

cdef struct Output:
    char* at
    char* end


cdef inline bint _put(Output* output, const char* content, Py_ssize_t size) noexcept:
    if size > output.end - output.at:
        return False
    memcpy(output.at, content, size)
    output.at += size
    return True


cdef inline bint _put_count(Output* output, int64_t number) noexcept:
    cdef char digits[DIGITS]
    cdef int first = DIGITS
    cdef unsigned long long left = -<unsigned long long>number if number < 0 else number
    while True:
        first -= 1
        digits[first] = c'0' + left % 10
        left //= 10
        if left == 0:
            break
    if number < 0 and not _put(output, b"-", 1):
        return False
    return _put(output, digits + first, DIGITS - first)


cdef bint _put_text(Output* output, str text) except -1:
    """Write a string, unless a character of it has to be escaped."""
    cdef Py_ssize_t size, i
    cdef const char* content
    cdef unsigned char c
    if not PyUnicode_IS_ASCII(text):
        return False
    content = PyUnicode_AsUTF8AndSize(text, &size)
    if size + 2 > output.end - output.at:
        return False
    output.at[0] = c'"'
    for i in range(size):
        c = content[i]
        if c < 32 or c == c'"' or c == c'\\':
            return False
        output.at[i + 1] = c
    output.at[size + 1] = c'"'
    output.at += size + 2
    return True


cdef bint _put_float(Output* output, double number) except -1:
    cdef char* text
    cdef Py_ssize_t size = 0
    cdef double absolute = -number if number < 0 else number
    cdef bint is_put
    if not (_LEAST <= absolute < _MOST or number == 0):
        return False
    text = PyOS_double_to_string(number, c'r', 0, Py_DTSF_ADD_DOT_0, NULL)
    if text == NULL:
        raise MemoryError
    while text[size]:
        size += 1
    is_put = _put(output, text, size)
    PyMem_Free(text)
    return is_put


cdef inline bint _put_two_digits(Output* output, int number) noexcept:
    output.at[0] = c'0' + number // 10
    output.at[1] = c'0' + number % 10
    output.at += 2
    return True


cdef bytes _time(long long time_ms):
    """Return RFC 3339 in UTC with milliseconds, for times from 1970 to 9999; None for others."""
    cdef char text[24]
    cdef Output output
    cdef long long days, era_day, year
    cdef int ms, seconds, month, day, century_day
    if not 0 <= time_ms < 253402300800000:
        return None
    days, ms = time_ms // 86400000, time_ms % 1000
    seconds = (time_ms // 1000) % 86400
    # Years that begin in March, in cycles of 400 of them.
    days += 719468
    era_day = days % 146097
    year = (era_day - era_day // 1460 + era_day // 36524 - era_day // 146096) // 365
    century_day = era_day - (365 * year + year // 4 - year // 100)
    month = (5 * century_day + 2) // 153
    day = century_day - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year += days // 146097 * 400 + (1 if month <= 2 else 0)
    output.at, output.end = text, text + 24
    _put_two_digits(&output, year // 100)
    _put_two_digits(&output, year % 100)
    _put(&output, b"-", 1)
    _put_two_digits(&output, month)
    _put(&output, b"-", 1)
    _put_two_digits(&output, day)
    _put(&output, b"T", 1)
    _put_two_digits(&output, seconds // 3600)
    _put(&output, b":", 1)
    _put_two_digits(&output, seconds // 60 % 60)
    _put(&output, b":", 1)
    _put_two_digits(&output, seconds % 60)
    _put(&output, b".", 1)
    _put_two_digits(&output, ms // 10)
    output.at[0] = c'0' + ms % 10
    output.at[1] = c'Z'
    return PyBytes_FromStringAndSize(text, 24)


cdef bytes _decimal(long long number):
    cdef char text[DIGITS + 1]
    cdef Output output
    output.at, output.end = text, text + DIGITS + 1
    _put_count(&output, number)
    return PyBytes_FromStringAndSize(text, output.at - text)


cdef inline void _set(object record, Py_ssize_t place, object value):
    Py_INCREF(value)
    PyTuple_SET_ITEM(record, place, value)


cdef class EventWriter:
    """Writes records for a partition of the events' topic.

    `general` writes those that are not plain. `new_record` is the class of the results, `origin` are the
    headers of the input's partition, which its offset and timestamp follow. `fields` gives a data class's fields as pairs: the name,
    and whether null is left out; `first` are headers of all records, `types` those of the kinds, `last`
    those behind the others; `source_of` and `rules_of` give the headers of a session and of rules.
    """

    cdef object general, new_record, topic, partition, fields, source_of, rules_of
    cdef dict types, plans, subjects
    cdef tuple origin, first, last

    def __init__(
        self, general, new_record, topic, partition, origin, fields, first, types, last, source_of, rules_of
    ):
        if not issubclass(new_record, tuple) or len(new_record._fields) != 6:
            raise TypeError("a record has a topic, partition, key, value, headers and a time")
        self.general, self.origin = general, origin
        self.new_record, self.topic, self.partition = new_record, topic, partition
        self.fields, self.source_of, self.rules_of = fields, source_of, rules_of
        self.first, self.types, self.last = first, types, last
        self.plans = {}
        self.subjects = {}

    def write(self, record, bytes key, long long offset, long long timestamp_ms, /):
        """Return the record for its topic."""
        written = self._write(record, key, offset, timestamp_ms)
        return self.general(record, key, offset, timestamp_ms) if written is None else written

    cdef object _write(self, record, bytes key, long long offset, long long timestamp_ms):
        """Return the record for its topic; None for one that is not plain."""
        cdef char content[ROOM]
        cdef Output output
        cdef PyObject* result
        cdef bytes time = None
        data, subject, moment = record.data, record.subject, record.time_ms
        if moment is not None:
            if not 0 <= moment < 253402300800000:
                return None
            time = _time(moment)
        if type(subject) is not str or not PyUnicode_IS_ASCII(subject):
            return None
        output.at, output.end = content, content + ROOM
        if not self._put_fields(&output, data, 0):
            return None
        headers = self._headers(record, data, subject, time, offset, timestamp_ms)
        value = PyBytes_FromStringAndSize(content, output.at - content)
        result = (<PyTypeObject*>self.new_record).tp_alloc(<PyTypeObject*>self.new_record, 6)
        made = <object>result
        Py_DECREF(made)  # the allocation's own
        _set(made, 0, self.topic)
        _set(made, 1, self.partition)
        _set(made, 2, key)
        _set(made, 3, value)
        _set(made, 4, headers)
        _set(made, 5, None)
        return made

    cdef bint _put_value(self, Output* output, object value, int depth) except -1:
        """Write a value; False for one that is not plain."""
        cdef int overflow = 0
        cdef long long number
        if value is None:
            return _put(output, b"null", 4)
        if type(value) is str:
            return _put_text(output, value)
        if type(value) is int:
            number = PyLong_AsLongLongAndOverflow(value, &overflow)
            return not overflow and _put_count(output, number)
        if type(value) is float:
            return _put_float(output, value)
        if value is True:
            return _put(output, b"true", 4)
        if value is False:
            return _put(output, b"false", 5)
        if depth == DEPTH:
            return False
        if type(value) is tuple or type(value) is list:
            return self._put_items(output, value, depth + 1)
        if type(value) is dict:
            return self._put_entries(output, value, depth + 1)
        if hasattr(type(value), "__dataclass_fields__"):
            return self._put_fields(output, value, depth + 1)
        return False

    cdef bint _put_items(self, Output* output, object items, int depth) except -1:
        cdef bint is_first = True
        if not _put(output, b"[", 1):
            return False
        for item in items:
            if not is_first and not _put(output, b",", 1):
                return False
            is_first = False
            if not self._put_value(output, item, depth):
                return False
        return _put(output, b"]", 1)

    cdef bint _put_entries(self, Output* output, dict entries, int depth) except -1:
        cdef bint is_first = True
        if not _put(output, b"{", 1):
            return False
        for name, item in entries.items():
            if type(name) is not str or (not is_first and not _put(output, b",", 1)):
                return False
            is_first = False
            if not _put_text(output, name) or not _put(output, b":", 1):
                return False
            if not self._put_value(output, item, depth):
                return False
        return _put(output, b"}", 1)

    cdef bint _put_fields(self, Output* output, object data, int depth) except -1:
        """Write a dataclass; only of a record's own data are optional fields left out."""
        cdef list plan
        cdef tuple step
        cdef bytes begin
        cdef bint is_first = True
        cls = type(data)
        found = self.plans.get(cls)
        plan = self._plan(cls) if found is None else found
        if not _put(output, b"{", 1):
            return False
        for step in plan:
            value = getattr(data, <str>step[0])
            if value is None and step[2] and depth == 0:
                continue
            begin = step[1]
            # Each begins with a comma.
            if not _put(output, PyBytes_AS_STRING(begin) + is_first, len(begin) - is_first):
                return False
            is_first = False
            if not self._put_value(output, value, depth):
                return False
        return _put(output, b"}", 1)

    cdef list _plan(self, cls):
        plan = [(name, f',"{name}":'.encode(), omits) for name, omits in self.fields(cls)]
        self.plans[cls] = plan
        return plan

    cdef tuple _headers(
        self, record, data, str subject, bytes time, long long offset, long long timestamp_ms
    ):
        cdef list headers = [
            *self.first,
            ("ce_id", (<str>record.id).encode()),
            self.source_of(data.session_id),
            self.types[data.kind],
            self._subject(subject),
            ("ce_sequence", _decimal(record.sequence)),
            self.rules_of(record.rules),
            *self.last,
        ]
        if time is not None:
            headers.append(("ce_time", time))
        headers.extend(self.origin)
        headers.append(("src_offset", _decimal(offset)))
        headers.append(("src_timestamp", _decimal(timestamp_ms)))
        return tuple(headers)

    cdef tuple _subject(self, str subject):
        found = self.subjects.get(subject)
        if found is not None:
            return found
        header = ("ce_subject", subject.encode())
        if len(self.subjects) < 64 and len(subject) < 64:
            self.subjects[subject] = header
        return header


def event_writer(write, *layout):
    """Return what writes records as `write` does; the layout is as of `EventWriter`."""
    return EventWriter(write, *layout).write
