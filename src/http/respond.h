/* http/respond.h - the bytes of an HTTP/1 answer around its body: heads, chunks, interim answers.
 *
 * Heads are joined from ready-made pieces. What an application hands over is looked at first: a
 * line end in a field is how answers are split, so such an answer is refused as a fault and never
 * written. There is no Server field. */
#ifndef HTTP_RESPOND_H
#define HTTP_RESPOND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct answer;
struct buf;
struct clock_date;
struct field;

enum respond_framing {
    RESPOND_LENGTH,      /* Content-Length */
    RESPOND_CHUNKED,     /* Transfer-Encoding: chunked */
    RESPOND_UNTIL_CLOSE, /* the end of the connection ends the body: HTTP/1.0 */
    RESPOND_NO_BODY,     /* 204 and 304; HEAD when the length is not known: nothing is said */
};

enum respond_persistence {
    RESPOND_SAYS_NOTHING,    /* HTTP/1.1, stays open */
    RESPOND_SAYS_CLOSE,      /* the connection ends with this answer */
    RESPOND_SAYS_KEEP_ALIVE, /* to an HTTP/1.0 client that asked for it */
};

/* Whether a final answer may go on the wire: a status of 200 to 599, names that are tokens, values
 * without control characters. */
bool respond_is_sound(const struct answer *answer);
/* The same for an interim one: 100 to 199, but not 101, which belongs to upgrades. */
bool respond_is_sound_interim(const struct answer *answer);
/* The switch to PROTOCOL. ANSWER's status is not looked at. */
bool respond_is_sound_upgrade(struct str protocol, const struct answer *answer);
bool respond_are_sound_trailers(const struct field *fields, unsigned count);

/* Appends the head of a sound answer. LENGTH counts with RESPOND_LENGTH alone. Fields that are
 * the wire's own (Connection, Keep-Alive, Content-Length, Transfer-Encoding) are left out; DATE is
 * used unless the answer has a Date of its own. */
void respond_head(struct buf *out, const struct answer *answer, enum respond_framing framing,
                  uint64_t length, enum respond_persistence persistence, struct clock_date *date);

/* The head of a 101: the switch to PROTOCOL, and the answer's fields but the wire's own. */
void respond_upgrade(struct buf *out, struct str protocol, const struct answer *answer);

/* Status line and fields of an interim answer, as they are. */
void respond_interim(struct buf *out, const struct answer *answer);

/* The line before a chunk of SIZE > 0 bytes; RESPOND_CHUNK_END follows the data. */
void respond_chunk_line(struct buf *out, uint64_t size);
#define RESPOND_CHUNK_END STR("\r\n")
/* The last chunk and the trailer section. */
void respond_last_chunk(struct buf *out, const struct field *trailers, unsigned count);

/* The whole answer that the wire gives by itself: a problem of RFC 9457 with REASON as its detail,
 * without framing of a body for HEAD_ONLY. It always says close. */
void respond_problem(struct buf *out, unsigned status, const char *reason, bool head_only,
                     struct clock_date *date);

/* Of that, what any protocol can use: its type and its body. */
#define RESPOND_PROBLEM_TYPE STR("application/problem+json")
enum { RESPOND_PROBLEM_BYTES_MAX = 1024 };
void respond_problem_body(struct buf *out, unsigned status, const char *reason);

#endif
