# cython: language_level=3, boundscheck=False, wraparound=False, embedsignature=True
"""Kafka's record batches, format 2, in place: records are made of them only where they are looked at.

A backlog is read in batches of some thirty messages of 2 KB, of which most are read in place
(`fast_path.pyx`). Here are only the positions of their keys, values and headers; the bytes stay where
they were decompressed, for as long as any of the records is in use.

    FetchedRecords   a sequence of records: `LogRecord`s, made when they are asked for
    headers_of       what fetched batches say of themselves
    encode           the records of a batch, to be written
    crc32c           a batch's checksum, where this machine has an instruction for it
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from cpython.bytes cimport (
    PyBytes_AS_STRING,
    PyBytes_CheckExact,
    PyBytes_FromStringAndSize,
    PyBytes_GET_SIZE,
)
from cpython.unicode cimport PyUnicode_DecodeUTF8

from contextgauge.ports import NewRecord
from streams.ports import LogRecord

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    static int has_crc32c(void) { return __builtin_cpu_supports("sse4.2"); }
    __attribute__((target("sse4.2")))
    static uint32_t machine_crc32c(const unsigned char* p, size_t size) {
        uint64_t crc = 0xffffffffu, word;
        for (; size >= 8; p += 8, size -= 8) {
            memcpy(&word, p, 8);
            crc = _mm_crc32_u64(crc, word);
        }
        for (; size; p++, size--)
            crc = _mm_crc32_u8((uint32_t)crc, *p);
        return ~(uint32_t)crc;
    }
    #else
    static int has_crc32c(void) { return 0; }
    static uint32_t machine_crc32c(const unsigned char* p, size_t size) { return 0; }
    #endif
    """
    int has_crc32c()
    uint32_t machine_crc32c(Bytes p, size_t size) nogil

cdef enum:
    HEADER_BYTES = 61
    LENGTH_ENDS = 12  # a batch's length counts what comes behind it
    CHECKED_AT = 21  # what the checksum covers: from the attributes on
    RECORD_BYTES = 7  # the fewest that a record has
    CODEC = 7
    APPEND_TIME = 8
    TRANSACTIONAL = 16
    CONTROL = 32
    FORMAT = 2


cdef inline long long _big_endian(Bytes at, int size) noexcept nogil:
    """Return a signed number."""
    cdef long long number = <signed char>at[0]
    cdef int i
    for i in range(1, size):
        number = number * 256 + at[i]
    return number


cdef class Block:
    """The positions of records, and the buffers that they are in."""

    def __cinit__(self):
        self.places = NULL
        self.count = self.room = 0
        self.buffers = []

    def __dealloc__(self):
        free(self.places)

    cdef int grow(self, Py_ssize_t more) except -1:
        cdef Place* places
        cdef Py_ssize_t room
        if self.count + more > self.room:
            room = max(self.count + more, 2 * self.room)
            places = <Place*>realloc(self.places, room * sizeof(Place))
            if places == NULL:
                raise MemoryError
            self.places, self.room = places, room
        return 0


cdef class FetchedRecords:
    """A sequence of `LogRecord`s, in the order of their offsets. Slices share what is in memory."""

    def __cinit__(self):
        self.block = None
        self.first = self.count = 0

    def __init__(self):
        self.block = Block()

    def __len__(self):
        return self.count

    cdef Place* place(self, Py_ssize_t index) except NULL:
        if not 0 <= index < self.count:
            raise IndexError(index)
        return self.block.places + self.first + index

    def __getitem__(self, index):
        if isinstance(index, slice):
            begin, end, step = index.indices(self.count)
            if step != 1:
                return [self[at] for at in range(begin, end, step)]
            return self._part(begin, max(end - begin, 0))
        cdef Py_ssize_t at = index
        return _record(self.place(at + self.count if at < 0 else at))

    def __iter__(self):
        cdef Py_ssize_t index
        for index in range(self.count):
            yield _record(self.place(index))

    def __eq__(self, other):
        if not isinstance(other, (FetchedRecords, list, tuple)):
            return NotImplemented
        return len(other) == self.count and all(own == its for own, its in zip(self, other))

    __hash__ = None

    cdef FetchedRecords _part(self, Py_ssize_t first, Py_ssize_t count):
        cdef FetchedRecords part = FetchedRecords.__new__(FetchedRecords)
        part.block, part.first, part.count = self.block, self.first + first, count
        return part

    def cut_off(self, Py_ssize_t count):
        """Leave so many records here and return the others, which are all of the last batch."""
        cdef FetchedRecords rest = FetchedRecords()
        cdef Py_ssize_t left = self.count - count
        if not 0 <= count <= self.count or self.first + self.count != self.block.count:
            raise ValueError(f"cannot cut {self.count} records after {count}")
        rest.block.grow(left)
        memcpy(rest.block.places, self.block.places + self.first + count, left * sizeof(Place))
        rest.block.buffers.append(self.block.buffers[len(self.block.buffers) - 1])
        rest.block.count = rest.count = left
        self.block.count -= left
        self.count = count
        return rest

    def split(self, bytes buffer not None, BatchHeader header not None, long long first_offset):
        """Add the records of a batch from an offset on; `buffer` is what comes behind its header, decompressed.

        Nothing else may hold the buffer. A record that is not behind the one before is left out, as
        aiokafka does. Raises ValueError for what is no batch's.
        """
        cdef Bytes at = <Bytes>PyBytes_AS_STRING(buffer)
        cdef Bytes end = at + PyBytes_GET_SIZE(buffer)
        cdef Block block = self.block
        cdef Py_ssize_t count = block.count
        cdef long long left = header.count
        if self.first + self.count != count:
            raise ValueError("a part of records takes no more")
        if not 0 <= left <= (end - at) // RECORD_BYTES:
            raise ValueError(f"a batch of {end - at} bytes cannot have {left} records")
        block.grow(left)
        for left in range(left, 0, -1):
            at = _split_one(at, end, header, block.places + count)
            if at == NULL:
                raise ValueError("a record is malformed")
            if block.places[count].offset >= first_offset:
                first_offset = block.places[count].offset + 1
                count += 1
        if at != end:
            raise ValueError(f"{end - at} bytes follow a batch's last record")
        block.buffers.append(buffer)
        block.count = count
        self.count = count - self.first


cdef Bytes _split_one(Bytes at, Bytes end, BatchHeader header, Place* place) noexcept nogil:
    """Find where the parts of a record are; return its end, or NULL where it is malformed."""
    cdef long long size, number
    cdef Py_ssize_t left
    cdef Bytes record_end
    if not read_varint(&at, end, &size) or not 0 < size <= end - at:
        return NULL
    record_end = at + size
    if at[0] & 0x80:
        return NULL  # attributes, of which there are none; aiokafka takes them for a number
    at += 1
    if not read_varint(&at, record_end, &number):
        return NULL
    place.created = not header.attributes & APPEND_TIME
    place.timestamp_ms = header.first_timestamp_ms + number if place.created else header.last_timestamp_ms
    if not read_varint(&at, record_end, &number):
        return NULL
    place.offset = header.base_offset + number
    if not _key_or_value(&at, record_end, &place.key, &place.key_size):
        return NULL
    if not _key_or_value(&at, record_end, &place.value, &place.value_size):
        return NULL
    if not read_varint(&at, record_end, &number) or not 0 <= number <= record_end - at:
        return NULL
    place.header_count, place.headers = number, at
    for left in range(number):
        if not read_varint(&at, record_end, &size) or not 0 <= size <= record_end - at:
            return NULL
        at += size
        if not read_varint(&at, record_end, &size) or size > record_end - at:
            return NULL
        if size > 0:
            at += size
    return at if at == record_end else NULL


cdef inline bint _key_or_value(Bytes* at, Bytes end, Bytes* part, Py_ssize_t* part_size) noexcept nogil:
    """Read a key or a value, which may be null."""
    cdef long long size
    if not read_varint(at, end, &size) or size > end - at[0]:
        return False
    part[0] = at[0]
    if size < 0:
        part[0] = NULL
    part_size[0] = max(size, 0)
    at[0] += part_size[0]
    return True


def headers_of(bytes fetched not None):
    """Return the headers of all batches; None where one is of another format than 2, or is malformed.

    A fetch may end within a batch: that one is left out.
    """
    cdef Bytes at = <Bytes>PyBytes_AS_STRING(fetched)
    cdef Py_ssize_t begin = 0, size = PyBytes_GET_SIZE(fetched)
    cdef long long length
    cdef list headers = []
    while size - begin >= LENGTH_ENDS:
        length = _big_endian(at + begin + 8, 4)
        if length > size - begin - LENGTH_ENDS:
            break
        if length < HEADER_BYTES - LENGTH_ENDS or at[begin + 16] != FORMAT:
            return None
        headers.append(_header(at + begin, begin, begin + LENGTH_ENDS + length))
        begin += LENGTH_ENDS + length
    return headers


cdef BatchHeader _header(Bytes at, Py_ssize_t begin, Py_ssize_t end):
    cdef BatchHeader self = BatchHeader.__new__(BatchHeader)
    self.begin, self.end = begin, end
    self.base_offset = _big_endian(at, 8)
    self.checksum = <uint32_t>_big_endian(at + 17, 4)
    self.attributes = _big_endian(at + CHECKED_AT, 2)
    self.next_offset = self.base_offset + _big_endian(at + 23, 4) + 1
    self.first_timestamp_ms = _big_endian(at + 27, 8)
    self.last_timestamp_ms = _big_endian(at + 35, 8)
    self.producer_id = _big_endian(at + 43, 8)
    self.count = _big_endian(at + 57, 4)
    return self


cdef class BatchHeader:
    """What a batch says of itself; see `headers_of`."""

    @property
    def codec(self):
        """Which codec it is compressed with, 0: none."""
        return self.attributes & CODEC

    @property
    def is_transactional(self):
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self):
        return bool(self.attributes & CONTROL)

    def checked(self, fetched):
        """Return the bytes that its checksum covers."""
        return memoryview(fetched)[self.begin + CHECKED_AT : self.end]

    def body(self, fetched):
        """Return the bytes of its records, as they are compressed."""
        return memoryview(fetched)[self.begin + HEADER_BYTES : self.end]


def _crc32c(const unsigned char[::1] content):
    return machine_crc32c(&content[0], content.shape[0])


crc32c = _crc32c if has_crc32c() else None
"""Computes CRC-32C; None where this machine has no instruction for it."""


cdef object _record(Place* place):
    """Return a record as an object."""
    cdef Bytes at = place.headers
    cdef long long size = 0
    cdef Py_ssize_t left
    cdef list headers = []
    for left in range(place.header_count):
        # Whether all of it is there was looked at when the batch was split.
        read_varint(&at, at + 10, &size)
        name = PyUnicode_DecodeUTF8(<const char*>at, size, "replace")
        at += size
        read_varint(&at, at + 10, &size)
        if size < 0:
            headers.append((name, None))
        else:
            headers.append((name, PyBytes_FromStringAndSize(<const char*>at, size)))
            at += size
    return LogRecord(
        place.offset,
        place.timestamp_ms,
        _bytes(place.key, place.key_size),
        _bytes(place.value, place.value_size),
        tuple(headers),
        place.created,
    )


cdef inline object _bytes(Bytes at, Py_ssize_t size):
    return None if at == NULL else PyBytes_FromStringAndSize(<const char*>at, size)


cdef inline int _varint_bytes(long long number) noexcept nogil:
    cdef unsigned long long bits = (<unsigned long long>number << 1) ^ <unsigned long long>(number >> 63)
    cdef int size = 1
    while bits >= 0x80:
        bits >>= 7
        size += 1
    return size


cdef inline unsigned char* _put_varint(unsigned char* at, long long number) noexcept nogil:
    cdef unsigned long long bits = (<unsigned long long>number << 1) ^ <unsigned long long>(number >> 63)
    while bits >= 0x80:
        at[0] = <unsigned char>(bits | 0x80)
        bits >>= 7
        at += 1
    at[0] = <unsigned char>bits
    return at + 1


cdef inline Py_ssize_t _bytes_size(object content) except -2:
    """Return how many bytes there are, -1 for None."""
    if content is None:
        return -1
    if not PyBytes_CheckExact(content):
        raise TypeError(f"bytes are written, not {type(content).__name__}")
    return PyBytes_GET_SIZE(content)


cdef inline unsigned char* _put_bytes(unsigned char* at, object content, Py_ssize_t size) noexcept:
    at = _put_varint(at, size)
    if size > 0:
        memcpy(at, PyBytes_AS_STRING(content), size)
        at += size
    return at


cdef inline tuple _as_tuple(object record):
    """Return a `NewRecord` as what it is: Cython takes only tuples themselves for such."""
    if not isinstance(record, NewRecord):
        raise TypeError(f"records are written, not {type(record).__name__}")
    return <tuple>record


cdef Py_ssize_t _body_bytes(tuple record) except -1:
    """Return how many bytes a record has from its key on."""
    cdef Py_ssize_t total, size, name_size
    cdef tuple header, headers = record[4]
    size = _bytes_size(record[2])
    total = _varint_bytes(size) + max(size, 0)
    size = _bytes_size(record[3])
    total += _varint_bytes(size) + max(size, 0) + _varint_bytes(len(headers))
    for header in headers:
        if len(header) != 2:
            raise ValueError("a header has a name and a value")
        PyUnicode_AsUTF8AndSize(header[0], &name_size)
        size = _bytes_size(header[1])
        total += _varint_bytes(name_size) + name_size + _varint_bytes(size) + max(size, 0)
    return total


def value_bytes(records):
    """Return how many bytes the values of records have."""
    cdef Py_ssize_t index, total = 0
    cdef FetchedRecords fetched
    if type(records) is not FetchedRecords:
        return sum([len(record.value or b"") for record in records])
    fetched = records
    for index in range(fetched.first, fetched.first + fetched.count):
        total += fetched.block.places[index].value_size
    return total


def encode(list records not None, Py_ssize_t first, Py_ssize_t limit_bytes, long long now_ms):
    """Encode records from a place on, as many as fit, and at least one: each is a `NewRecord`.

    Those without a time have `now_ms`. Returns their bytes, the place behind the last, and the first and the
    greatest timestamp.
    """
    cdef Py_ssize_t place = first, count = len(records), size = 0, body, at_place
    cdef long long first_ms = 0, last_ms = 0, moment, length
    cdef list bodies = []
    cdef tuple record, header
    cdef unsigned char* at
    cdef const char* name
    cdef Py_ssize_t name_size
    if not 0 <= first < count:
        raise IndexError(first)
    while place < count:
        record = _as_tuple(records[place])
        moment = now_ms if record[5] is None else record[5]
        if place == first:
            first_ms = last_ms = moment
        body = _body_bytes(record)
        length = 1 + _varint_bytes(moment - first_ms) + _varint_bytes(place - first) + body
        length += _varint_bytes(length)
        if place > first and size + length > limit_bytes:
            break
        size += length
        bodies.append(body)
        last_ms = max(last_ms, moment)
        place += 1
    encoded = PyBytes_FromStringAndSize(NULL, size)
    at = <unsigned char*>PyBytes_AS_STRING(encoded)
    for at_place in range(place - first):
        record = _as_tuple(records[first + at_place])
        moment = now_ms if record[5] is None else record[5]
        body = bodies[at_place]
        at = _put_varint(at, 1 + _varint_bytes(moment - first_ms) + _varint_bytes(at_place) + body)
        at[0] = 0  # attributes, of which there are none
        at = _put_varint(at + 1, moment - first_ms)
        at = _put_varint(at, at_place)
        at = _put_bytes(at, record[2], _bytes_size(record[2]))
        at = _put_bytes(at, record[3], _bytes_size(record[3]))
        at = _put_varint(at, len(record[4]))
        for header in record[4]:
            name = PyUnicode_AsUTF8AndSize(header[0], &name_size)
            at = _put_varint(at, name_size)
            memcpy(at, name, name_size)
            at = _put_bytes(at + name_size, header[1], _bytes_size(header[1]))
    return encoded, place, first_ms, last_ms
