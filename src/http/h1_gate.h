/* http/h1_gate.h - the strict reading of HTTP/1.1's bytes, requests and responses, before any
 * parser sees them.
 *
 * Debian's http-parser takes 24 kinds of malformed input, and what two programs read differently
 * is how requests are smuggled. So the raw bytes are held against RFC 9112 first, as they arrive:
 * lines end in CRLF and in nothing else, no control characters, no folded lines, no blank before a
 * colon, one space between the parts of the request line, and every limit is counted on the way.
 *
 * A gate looks at each byte once, however the bytes are cut into packets: it keeps its place, and
 * the caller offers the same bytes again with more behind them. */
#ifndef HTTP_H1_GATE_H
#define HTTP_H1_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h1_limits {
    uint32_t line_bytes; /* of the request or status line, its CRLF not counted */
    uint32_t head_bytes; /* of that line and the fields together, as sent */
    uint32_t fields;
};

enum h1_reading {
    H1_MORE,    /* good so far, but not all of it */
    H1_DONE,    /* complete */
    H1_REFUSED, /* see `fault`; nothing behind it may be read as HTTP */
};

/* Why something was refused. */
struct h1_fault {
    unsigned short status;
    const char    *reason; /* a fixed phrase, safe to show to the client */
};

/* --- the head -------------------------------------------------------------------------------- */

struct h1_head_gate {
    uint32_t        start;   /* where the request line begins: 0, or 2 after one empty line */
    uint32_t        scanned; /* bytes that need no second look; DONE: end of the head */
    uint32_t        line_at; /* where the line being read begins */
    uint32_t        fields;  /* complete field lines */
    bool            in_fields;
    bool            of_response; /* a status line comes first; faults are 502 */
    struct h1_fault fault;
};

/* Zeroed memory is a gate that expects a request line. */
void h1_gate_init(struct h1_head_gate *gate);
/* One that expects a status line; no empty line may stand before it. */
void h1_gate_init_response(struct h1_head_gate *gate);
/* BYTES: everything since the head began. */
enum h1_reading h1_gate_head(struct h1_head_gate *gate, const struct h1_limits *limits,
                             const char *bytes, size_t len);

/* A trailer section is a head without its request line: the same gate, set up by this. */
void h1_gate_init_trailers(struct h1_head_gate *gate);

/* --- chunks ----------------------------------------------------------------------------------- */

enum h1_chunk_state {
    H1_CHUNK_LINE, /* size and extensions, up to CRLF */
    H1_CHUNK_DATA,
    H1_CHUNK_END, /* the CRLF behind the data */
    H1_CHUNK_TRAILERS,
    H1_CHUNK_DONE,
};

enum { H1_EXTENSION_BYTES_MAX = 16 * 1024 }; /* of one body; a chunk's line is at most as long */

struct h1_chunk_gate {
    enum h1_chunk_state state;
    uint32_t            scanned;   /* of the line being read */
    uint32_t            extension; /* bytes of extensions so far, in all chunks */
    uint64_t            left;      /* data of this chunk still to come */
    uint64_t            announced; /* data of all chunks so far, also what is still to come */
    struct h1_head_gate trailers;
    struct h1_fault     fault;
};

void h1_chunk_init(struct h1_chunk_gate *gate);

/* Looks at the next element: a chunk's line, a piece of data, the CRLF behind it or the whole
 * trailer section. MORE and *USED = 0: it is not complete, offer these bytes again with more.
 * MORE and *USED > 0: so many bytes are good, offer what follows. DONE: the body ends behind
 * *USED. */
enum h1_reading h1_chunk_read(struct h1_chunk_gate *gate, const struct h1_limits *limits,
                              const char *bytes, size_t len, size_t *used);

#endif
