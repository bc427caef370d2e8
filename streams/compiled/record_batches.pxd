"""Where the records of fetched batches are, for the reader of usual messages."""

from libc.stdint cimport uint32_t

ctypedef const unsigned char* Bytes

cdef struct Place:
    long long offset
    long long timestamp_ms
    Bytes key  # NULL: null
    Bytes value  # NULL: null; one byte at least follows what it has
    Bytes headers  # behind their number
    Py_ssize_t key_size
    Py_ssize_t value_size
    Py_ssize_t header_count
    bint created


cdef inline bint read_varint(Bytes* at, Bytes end, long long* value) noexcept nogil:
    """Read a zigzag-encoded number; False where there is none."""
    cdef unsigned long long bits = 0
    cdef int shift = 0
    cdef unsigned char byte
    while at[0] < end and shift < 64:
        byte = at[0][0]
        at[0] += 1
        bits |= <unsigned long long>(byte & 0x7f) << shift
        if byte < 0x80:
            value[0] = <long long>(bits >> 1) ^ -<long long>(bits & 1)
            return True
        shift += 7
    return False


cdef class Block:
    cdef Place* places
    cdef Py_ssize_t count
    cdef Py_ssize_t room
    cdef list buffers

    cdef int grow(self, Py_ssize_t more) except -1


cdef class FetchedRecords:
    cdef Block block
    cdef Py_ssize_t first
    cdef Py_ssize_t count

    cdef Place* place(self, Py_ssize_t index) except NULL
    cdef FetchedRecords _part(self, Py_ssize_t first, Py_ssize_t count)


cdef class BatchHeader:
    cdef readonly Py_ssize_t begin
    cdef readonly Py_ssize_t end
    cdef readonly long long base_offset
    cdef readonly long long next_offset
    cdef readonly uint32_t checksum
    cdef readonly long long first_timestamp_ms
    cdef readonly long long last_timestamp_ms
    cdef readonly long long producer_id
    cdef readonly long long count
    cdef readonly int attributes
