/* http/multipart.h - multipart/form-data bodies (RFC 7578, RFC 2046 5.1), read as they come.
 *
 * Input may be cut at any byte; nothing but one part's head is ever kept. Line ends are CRLF, a line
 * that begins with the boundary is a delimiter or a fault, and what stands before the first and
 * behind the last one is skipped. The number of parts and their bytes are for the caller to bound. */
#ifndef HTTP_MULTIPART_H
#define HTTP_MULTIPART_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"
#include "http/multipart_head.h"

enum { MULTIPART_BOUNDARY_BYTES_MAX = 70 }; /* RFC 2046, 5.1.1 */

enum multipart_step {
    MULTIPART_MORE,   /* all input is taken */
    MULTIPART_PART,   /* a part begins: `part` */
    MULTIPART_DATA,   /* a piece of it, never empty */
    MULTIPART_END,    /* it is whole */
    MULTIPART_BROKEN, /* for good: `fault`, `why` */
};

struct multipart {
    struct multipart_part part; /* of the last MULTIPART_PART, until the next call behind its END */
    unsigned              fault; /* the status to answer with: 400, 413, 415 */
    const char           *why;   /* for people; constant */

    /* private */
    int        state;
    struct buf head;
    struct buf texts;
    size_t     matched; /* bytes of the delimiter that the input so far ended with */
    size_t     lent;    /* of these: a line end that belongs to what came before, no content */
    size_t     delimiter_len;
    char       delimiter[4 + MULTIPART_BOUNDARY_BYTES_MAX]; /* CR LF - - boundary */
};

/* CONTENT_TYPE is that of the message. False: it names no boundary that could be one; `fault` and
 * `why` tell, and multipart_fini() is fine but not needed. */
bool multipart_init(struct multipart *m, struct str content_type);
void multipart_fini(struct multipart *m);

/* Goes on to what comes next and takes what it used off *IN. *DATA lies in the input, or in M until
 * the next call. */
enum multipart_step multipart_next(struct multipart *m, struct str *in, struct str *data);

/* There is no more input. False: it ended before the last delimiter; `fault`, `why`. */
bool multipart_finish(struct multipart *m);

#endif
