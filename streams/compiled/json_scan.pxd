"""Goes through JSON in place, and says where it is not what was expected: nothing is made of it.

What is passed over is looked at as closely as what is read: it is valid JSON, and strings are UTF-8 once
`is_utf8` checked the whole. What is valid and not expected (an escape where text is read, a number
of many digits, deep nesting) is refused too; the caller reads it another way.

Nothing is read past the end: a `bytes` object ends in a zero that is not its own, a zero is part of
no JSON, and every byte is looked at before the next. Each function begins at what it reads, and ends
behind it.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy

ctypedef const unsigned char* Bytes

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif

    /* Pass over bytes of a string, many at a time, while none is a quote, a backslash or a control
       character. `bits` is not 0 where one was not ASCII. The last few are left. */
    static inline const unsigned char* pass_plain(
        const unsigned char* p, const unsigned char* end, uint64_t* bits
    ) {
    #if defined(__SSE2__)
        const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8(0x5c);
        const __m128i last_control = _mm_set1_epi8(0x1f);
        for (; end - p >= 16; p += 16) {
            const __m128i bytes = _mm_loadu_si128((const __m128i*)p);
            const __m128i is_control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes);
            const __m128i is_mark =
                _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, slash));
            const unsigned stops = (unsigned)_mm_movemask_epi8(_mm_or_si128(is_control, is_mark));
            const unsigned high = (unsigned)_mm_movemask_epi8(bytes);
            if (stops) {
                const unsigned first = (unsigned)__builtin_ctz(stops);
                *bits |= high & ((1u << first) - 1);
                return p + first;
            }
            *bits |= high;
        }
    #else
        const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
        for (; end - p >= 8; p += 8) {
            uint64_t word, quote, slash;
            memcpy(&word, p, 8);
            quote = word ^ (ones * '"');
            slash = word ^ (ones * 0x5c);
            if ((((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((word - ones * 32) & ~word))
                & tops)
                break;
            *bits |= word & tops;
        }
    #endif
        return p;
    }
    """
    Bytes pass_plain(Bytes p, Bytes end, uint64_t* bits) noexcept nogil

cdef enum:
    NAME_BYTES = 1024  # longer may be longer than any name is
    NUMBER_BYTES = 15  # longer may be more than a number of the machine holds exactly
    DEPTH = 64

cdef struct Text:
    Bytes at  # NULL: null, or not there
    Py_ssize_t size

cdef struct Reader:
    Bytes at
    Bytes end
    uint64_t bits  # not 0: strings so far have bytes that are not ASCII
    bint escaped  # the string just read has an escape


cdef inline bint is_name(Text text, const char* name, Py_ssize_t size) noexcept nogil:
    return text.size == size and memcmp(text.at, name, size) == 0


cdef inline void skip_blank(Reader* r) noexcept nogil:
    while r.at[0] == c' ' or r.at[0] == c'\n' or r.at[0] == c'\r' or r.at[0] == c'\t':
        r.at += 1


cdef inline bint is_hex(unsigned char c) noexcept nogil:
    return c'0' <= c <= c'9' or c'a' <= (c | 0x20) <= c'f'


cdef inline bint skip_string(Reader* r) noexcept nogil:
    """Pass over a string, from behind its first quote to behind its last."""
    cdef Bytes p = r.at
    cdef uint64_t bits = r.bits
    cdef unsigned char c
    cdef int digit
    r.escaped = False
    while True:
        p = pass_plain(p, r.end, &bits)
        c = p[0]
        while c >= 32 and c != c'"' and c != c'\\':
            bits |= c & 0x80
            p += 1
            c = p[0]
        if c == c'"':
            r.at, r.bits = p + 1, bits
            return True
        if c != c'\\':
            return False
        r.escaped = True
        c = p[1]
        if c == c'u':
            for digit in range(2, 6):
                if not is_hex(p[digit]):
                    return False
            p += 6
        elif (
            c == c'n' or c == c'"' or c == c'\\' or c == c't' or c == c'/' or c == c'r'
            or c == c'b' or c == c'f'
        ):
            p += 2
        else:
            return False


cdef inline bint skip_number(Reader* r) noexcept nogil:
    """Pass over a number."""
    cdef Bytes begin = r.at, p = r.at
    if p[0] == c'-':
        p += 1
    if p[0] == c'0':
        p += 1
    elif c'1' <= p[0] <= c'9':
        while c'0' <= p[0] <= c'9':
            p += 1
    else:
        return False
    if p[0] == c'.':
        p += 1
        if not c'0' <= p[0] <= c'9':
            return False
        while c'0' <= p[0] <= c'9':
            p += 1
    if p[0] == c'e' or p[0] == c'E':
        p += 1
        if p[0] == c'+' or p[0] == c'-':
            p += 1
        if not c'0' <= p[0] <= c'9':
            return False
        while c'0' <= p[0] <= c'9':
            p += 1
    r.at = p
    return p - begin <= NUMBER_BYTES


cdef inline bint skip_word(Reader* r, const char* word, Py_ssize_t size) noexcept nogil:
    if r.end - r.at < size or memcmp(r.at, word, size) != 0:
        return False
    r.at += size
    return True


cdef inline bint read_name(Reader* r, Text* name) noexcept nogil:
    """Read a name, and pass over its colon. One with an escape is unusual."""
    if r.at[0] != c'"':
        return False
    r.at += 1
    name.at = r.at
    if not skip_string(r) or r.escaped:
        return False
    name.size = r.at - name.at - 1
    skip_blank(r)
    if r.at[0] != c':':
        return False
    r.at += 1
    skip_blank(r)
    return True


cdef inline bint skip_any(Reader* r) noexcept nogil:
    """Pass over a value, whatever it is."""
    cdef unsigned char closing[DEPTH]
    cdef int depth = 0
    cdef unsigned char c
    while True:
        c = r.at[0]
        if c == c'"':
            r.at += 1
            if not skip_string(r):
                return False
        elif c == c'{' or c == c'[':
            if depth == DEPTH:
                return False
            closing[depth] = c'}' if c == c'{' else c']'
            r.at += 1
            skip_blank(r)
            if r.at[0] == closing[depth]:
                r.at += 1
            else:
                if c == c'{' and not skip_name(r):
                    return False
                depth += 1
                continue
        elif c == c't':
            if not skip_word(r, b"true", 4):
                return False
        elif c == c'f':
            if not skip_word(r, b"false", 5):
                return False
        elif c == c'n':
            if not skip_word(r, b"null", 4):
                return False
        elif not skip_number(r):
            return False
        while True:
            if depth == 0:
                return True
            skip_blank(r)
            c = r.at[0]
            if c == c',':
                r.at += 1
                skip_blank(r)
                if closing[depth - 1] == c'}' and not skip_name(r):
                    return False
                break
            if c != closing[depth - 1]:
                return False
            r.at += 1
            depth -= 1


cdef inline bint skip_name(Reader* r) noexcept nogil:
    """Pass over a name and its colon."""
    if r.at[0] != c'"':
        return False
    r.at += 1
    if not skip_string(r):
        return False
    skip_blank(r)
    if r.at[0] != c':':
        return False
    r.at += 1
    skip_blank(r)
    return True


cdef inline int enter(Reader* r, unsigned char opening, unsigned char closing) noexcept nogil:
    """Enter an object or a list: 1 to what comes first, 0 where it is empty, -1 where it is none."""
    if r.at[0] != opening:
        return -1
    r.at += 1
    skip_blank(r)
    if r.at[0] != closing:
        return 1
    r.at += 1
    return 0


cdef inline int next_one(Reader* r, unsigned char closing) noexcept nogil:
    """Go on in an object or a list: 1 to what comes next, 0 where it ends, -1 where neither is."""
    skip_blank(r)
    if r.at[0] == c',':
        r.at += 1
        skip_blank(r)
        return 1
    if r.at[0] == closing:
        r.at += 1
        return 0
    return -1


cdef inline bint read_text(Reader* r, Text* text) noexcept nogil:
    """Read a short string as it stands, or null."""
    if r.at[0] == c'n':
        text.at = NULL
        return skip_word(r, b"null", 4)
    if r.at[0] != c'"':
        return False
    r.at += 1
    text.at = r.at
    if not skip_string(r) or r.escaped:
        return False
    text.size = r.at - text.at - 1
    return 0 < text.size <= NAME_BYTES


cdef inline bint read_count(Reader* r, long long* count) noexcept nogil:
    """Read a whole number, or null."""
    cdef Bytes begin
    if r.at[0] == c'n':
        return skip_word(r, b"null", 4)
    if r.at[0] == c'-':
        return False
    begin = r.at
    if not skip_number(r):
        return False
    count[0] = 0
    while begin < r.at:
        if not c'0' <= begin[0] <= c'9':
            return False
        count[0] = count[0] * 10 + (begin[0] - c'0')
        begin += 1
    return True


cdef inline bint once(unsigned int* seen, unsigned int bit) noexcept nogil:
    """Note that a field was seen; of two with one name only the last would count."""
    if seen[0] & bit:
        return False
    seen[0] |= bit
    return True


cdef inline bint read_empty_list(Reader* r) noexcept nogil:
    if r.at[0] == c'n':
        return skip_word(r, b"null", 4)
    if r.at[0] != c'[':
        return False
    r.at += 1
    skip_blank(r)
    if r.at[0] != c']':
        return False
    r.at += 1
    return True


cdef inline bint is_utf8(Bytes p, Bytes end) noexcept nogil:
    """Return whether bytes are UTF-8: no overlong form, no surrogate, nothing past U+10FFFF."""
    cdef uint64_t word
    cdef unsigned char c, low, high
    cdef int more
    while p < end:
        while end - p >= 8:
            memcpy(&word, p, 8)
            if word & <uint64_t>0x8080808080808080:
                break
            p += 8
        while p < end and p[0] < 0x80:
            p += 1
        if p == end:
            return True
        c = p[0]
        low, high = 0x80, 0xBF  # of the byte that comes next
        if 0xC2 <= c <= 0xDF:
            more = 1
        elif 0xE0 <= c <= 0xEF:
            more = 2
            if c == 0xE0:
                low = 0xA0
            elif c == 0xED:
                high = 0x9F
        elif 0xF0 <= c <= 0xF4:
            more = 3
            if c == 0xF0:
                low = 0x90
            elif c == 0xF4:
                high = 0x8F
        else:
            return False
        if end - p <= more or not low <= p[1] <= high:
            return False
        if more > 1 and not 0x80 <= p[2] <= 0xBF:
            return False
        if more > 2 and not 0x80 <= p[3] <= 0xBF:
            return False
        p += more + 1
    return True


cdef inline bint read_truth(Reader* r, bint* truth) noexcept nogil:
    """Read a boolean."""
    truth[0] = r.at[0] == c't'
    return skip_word(r, b"true", 4) if truth[0] else skip_word(r, b"false", 5)
