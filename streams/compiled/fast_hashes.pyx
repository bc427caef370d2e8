# cython: language_level=3, boundscheck=False, wraparound=False, embedsignature=True
"""The hashes of the derivation, without an object for each of their steps.

A message is hashed two to four times, over less than a block or two: making, feeding and asking a `hashlib`
object takes several times what the hash itself does. What is long or not ASCII is left to `plain_hashes`.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeASCII

from streams.compiled import plain_hashes as plain

cdef extern from "Python.h":
    int PyUnicode_IS_COMPACT_ASCII(object text)
    const void* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static const uint64_t BLAKE_IV[8] = {
        0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
        0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u,
    };
    static const unsigned char BLAKE_ORDER[12][16] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
        {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
        {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
        {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
        {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
        {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
        {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
        {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
        {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
        {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
        {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    };
    static inline uint64_t turn64(uint64_t x, int n) { return x >> n | x << (64 - n); }

    /* BLAKE2b (RFC 7693) of one block at most, unkeyed, digest of 8 bytes. The block is padded with zeros;
       words are little-endian, as this code requires the machine to be. */
    static uint64_t blake2b_8(const unsigned char block[128], size_t size) {
        uint64_t m[16], v[16];
        const uint64_t h0 = BLAKE_IV[0] ^ 0x01010000u ^ 8u;
        int i;
        memcpy(m, block, 128);
        for (i = 0; i < 8; i++) { v[i] = BLAKE_IV[i]; v[i + 8] = BLAKE_IV[i]; }
        v[0] = h0; v[12] ^= size; v[14] = ~v[14];
    #define MIX(a, b, c, d, x, y) \\
        a += b + (x); d = turn64(d ^ a, 32); c += d; b = turn64(b ^ c, 24); \\
        a += b + (y); d = turn64(d ^ a, 16); c += d; b = turn64(b ^ c, 63);
        for (i = 0; i < 12; i++) {
            const unsigned char* s = BLAKE_ORDER[i];
            MIX(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]])
            MIX(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]])
            MIX(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]])
            MIX(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]])
            MIX(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]])
            MIX(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]])
            MIX(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]])
            MIX(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]])
        }
    #undef MIX
        return h0 ^ v[0] ^ v[8];
    }

    static inline uint32_t turn32(uint32_t x, int n) { return x << n | x >> (32 - n); }

    /* One block of SHA-1 (FIPS 180-4). */
    static void sha1_block(uint32_t h[5], const unsigned char* p) {
        uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], t;
        int i;
        for (i = 0; i < 16; i++, p += 4)
            w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
        for (; i < 80; i++) w[i] = turn32(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    #define ROUND(f, k) t = turn32(a, 5) + (f) + e + (k) + w[i]; e = d; d = c; c = turn32(b, 30); b = a; a = t;
        for (i = 0; i < 20; i++) { ROUND((b & c) | (~b & d), 0x5a827999u) }
        for (; i < 40; i++) { ROUND(b ^ c ^ d, 0x6ed9eba1u) }
        for (; i < 60; i++) { ROUND((b & c) | (b & d) | (c & d), 0x8f1bbcdcu) }
        for (; i < 80; i++) { ROUND(b ^ c ^ d, 0xca62c1d6u) }
    #undef ROUND
        h[0] += a; h[1] += b; h[2] += c; h[3] += d; h[4] += e;
    }

    static int is_little_endian(void) { const uint16_t one = 1; return *(const unsigned char*)&one; }
    """
    uint64_t blake2b_8(const unsigned char* block, size_t size) nogil
    void sha1_block(uint32_t* state, const unsigned char* block) nogil
    int is_little_endian()

if not is_little_endian():
    raise ImportError("words are little-endian here, and not on this machine", name=__name__)

cdef enum:
    BLOCK = 128
    HASH_BYTES = 8
    NAME_BYTES = 512  # of a record's name in JSON; longer ones are left


def text_hash(bytes prefix not None, str text not None, /):
    """Return the hash of a text behind a prefix."""
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(text)
    if not PyUnicode_IS_COMPACT_ASCII(text) or size + PyBytes_GET_SIZE(prefix) > BLOCK:
        return plain.text_hash(prefix, text)
    return _hash(
        <const unsigned char*>PyUnicode_DATA(text), size, PyBytes_AS_STRING(prefix), PyBytes_GET_SIZE(prefix)
    )


def counts_hash(unsigned long long input, unsigned long long creation, unsigned long long read, /):
    """Return the hash of three counts."""
    cdef uint64_t counts[3]
    counts[0], counts[1], counts[2] = input, creation, read
    return _hash(<const unsigned char*>counts, sizeof(counts), b"", 0)


cdef bytes _hash(const unsigned char* content, Py_ssize_t size, const char* prefix, Py_ssize_t prefix_size):
    cdef unsigned char block[BLOCK]
    cdef Py_ssize_t i
    cdef uint64_t digest
    for i in range(BLOCK // 8):
        (<uint64_t*>block)[i] = 0
    memcpy(block, prefix, prefix_size)
    memcpy(block + prefix_size, content, size)
    digest = blake2b_8(block, prefix_size + size)
    return PyBytes_FromStringAndSize(<const char*>&digest, HASH_BYTES)


cdef inline bint _has(bytes hashes, uint64_t cause) noexcept:
    """Return whether a hash is among others, each at a multiple of its size."""
    cdef const char* at = PyBytes_AS_STRING(hashes)
    cdef Py_ssize_t i, count = PyBytes_GET_SIZE(hashes) // HASH_BYTES
    cdef uint64_t word, alike = 0
    for i in range(count):
        memcpy(&word, at + i * HASH_BYTES, HASH_BYTES)
        alike |= word == cause
    return alike != 0


def is_absent(bytes tail not None, tuple segments not None, bytes cause not None, /):
    """Return whether a cause is in none of the parts of `KnownCauses`."""
    cdef uint64_t wanted
    cdef unsigned int number
    cdef const unsigned char* end
    cdef bytes marks
    if PyBytes_GET_SIZE(cause) != HASH_BYTES:
        return plain.is_absent(tail, segments, cause)
    memcpy(&wanted, PyBytes_AS_STRING(cause), HASH_BYTES)
    if _has(tail, wanted):
        return False
    end = <const unsigned char*>PyBytes_AS_STRING(cause) + HASH_BYTES - 2
    number = end[1] << 8 | end[0]
    for segment in segments:
        marks = (<tuple>segment)[1]
        if PyBytes_GET_SIZE(marks):
            at = <const unsigned char*>PyBytes_AS_STRING(marks) + (number >> 3 & (PyBytes_GET_SIZE(marks) - 1))
            if not at[0] & 1 << (number & 7):
                continue
        if _has((<tuple>segment)[0], wanted):
            return False
    return True


def last_place(bytes entries not None, Py_ssize_t entry_bytes, bytes key not None, /):
    """Return where the last entry begins that begins with a key; -1 where there is none."""
    cdef Py_ssize_t at = (PyBytes_GET_SIZE(entries) // entry_bytes - 1) * entry_bytes
    cdef Py_ssize_t size = PyBytes_GET_SIZE(key)
    while at >= 0:
        if memcmp(PyBytes_AS_STRING(entries) + at, PyBytes_AS_STRING(key), size) == 0:
            return at
        at -= entry_bytes
    return -1


cdef inline Py_ssize_t _put_json(char* target, Py_ssize_t at, str text) noexcept:
    """Write a text with its quotes behind what is there; -1 where it does not fit, or is not plain."""
    cdef const unsigned char* content
    cdef Py_ssize_t i, size
    if at < 0 or not PyUnicode_IS_COMPACT_ASCII(text):
        return -1
    content, size = <const unsigned char*>PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text)
    if at + size + 3 > NAME_BYTES:
        return -1
    target[at] = c'"'
    for i in range(size):
        if content[i] < 32 or content[i] == 127 or content[i] == c'"' or content[i] == c'\\':
            return -1
        target[at + 1 + i] = content[i]
    target[at + size + 1] = c'"'
    target[at + size + 2] = c','
    return at + size + 3


cdef bytes NAMESPACE = plain.NAMESPACE


def record_id(str session_id not None, str chain not None, str kind not None, str cause not None, tuple extra=(), /):
    """Return a record's id, a UUIDv5 of its name in the namespace."""
    cdef char name[16 + NAME_BYTES + 80]
    cdef unsigned char digest[20]
    cdef char text[36]
    cdef uint32_t state[5]
    cdef Py_ssize_t size, whole, i, at
    memcpy(name, PyBytes_AS_STRING(NAMESPACE), 16)
    name[16] = c'['
    size = _put_json(name + 16, 1, session_id)
    size = _put_json(name + 16, size, chain)
    size = _put_json(name + 16, size, kind)
    size = _put_json(name + 16, size, cause)
    if size < 0 or extra:
        return plain.record_id(session_id, chain, kind, cause, extra)
    size += 16
    name[size - 1] = c']'  # in place of the last comma
    # SHA-1's padding: a one bit, zeros, and the length in bits.
    whole = (size + 8) // 64 * 64 + 64
    name[size] = <char>0x80
    for i in range(size + 1, whole - 8):
        name[i] = 0
    for i in range(8):
        name[whole - 1 - i] = <char>((<uint64_t>size * 8) >> (8 * i))
    state[0], state[1], state[2], state[3], state[4] = 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0
    for i in range(0, whole, 64):
        sha1_block(state, <const unsigned char*>name + i)
    for i in range(16):
        digest[i] = <unsigned char>(state[i // 4] >> (24 - 8 * (i % 4)))
    digest[6] = digest[6] & 0x0f | 0x50  # the version
    digest[8] = digest[8] & 0x3f | 0x80  # the variant
    at = 0
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            text[at] = c'-'
            at += 1
        text[at] = b"0123456789abcdef"[digest[i] >> 4]
        text[at + 1] = b"0123456789abcdef"[digest[i] & 15]
        at += 2
    return PyUnicode_DecodeASCII(text, 36, NULL)
