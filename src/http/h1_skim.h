/* http/h1_skim.h - reads a stream of responses for nothing but where each of them ends, and how.
 *
 * For a load generator, which must be faster than what it loads: no field is kept, nothing is
 * copied, and bytes may come in any pieces. It is lenient where the parser is (http-parser, not the
 * gate): nobody builds on what it reads. Interim responses (1xx) are passed over. */
#ifndef HTTP_H1_SKIM_H
#define HTTP_H1_SKIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum h1_skimming {
    H1_SKIM_MORE,  /* all bytes are used, and the response has not ended */
    H1_SKIM_DONE,  /* one response has ended; the rest of the bytes is another's */
    H1_SKIM_WRONG, /* no HTTP response, or one that cannot be told from what follows */
};

enum { H1_SKIM_MEMO_BYTES = 1024 };

/* The last head that was read whole, and what it meant: a server's answers are much the same, and
 * bytes that come again need no parser. Zeroed memory is an empty one; for all skims of a thread. */
struct h1_skim_memo {
    size_t   head_len, body_len;
    unsigned status;
    char     head[H1_SKIM_MEMO_BYTES];
};

struct h1_skim {
    uint64_t parser[4]; /* http-parser's state */
    unsigned status;    /* of the response that is read, or was read last */
    bool     begun;     /* its first byte has come */
    bool     answers_head;
    bool     keep_alive; /* DONE: the connection goes on */
    uint64_t body_len;   /* UINT64_MAX: the head does not say */

    /* Set by the caller, may be NULL: a piece of the body. */
    void (*on_body)(struct h1_skim *skim, struct str piece);
    struct h1_skim_memo *memo; /* the same; borrowed */
};

void h1_skim_init(struct h1_skim *skim);
/* The next response answers a HEAD, or something else: it decides whether a body follows. To be said
 * before its first byte is read. */
void h1_skim_expect(struct h1_skim *skim, bool answers_head);
/* *USED: of LEN bytes. */
enum h1_skimming h1_skim_read(struct h1_skim *skim, const char *bytes, size_t len, size_t *used);
/* The peer has ended its direction. DONE: that was the end of the response; MORE: none had begun. */
enum h1_skimming h1_skim_close(struct h1_skim *skim);

#endif
