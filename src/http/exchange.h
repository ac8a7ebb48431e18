/* http/exchange.h - one request and its answer, the same for HTTP/1, HTTP/2 and tests.
 *
 * Two sides hold an exchange: the WIRE (the protocol's connection; srv.test implements one in
 * memory) and the WORK (the dispatcher: Lua or native). Each lets go once; the second to do so
 * frees it. Memory is the exchange's arena. All of it belongs to one worker's thread.
 *
 *     request:  HEAD -> BODY -> ENDED | BROKEN      answer: OPEN -> HEAD -> BODY -> ENDED | ABORTED
 *
 * Calls go down (work -> wire) through exchange_...(), which set state and return; events go up
 * (wire -> work) through `struct exchange_work`, and only from the loop's turn: never from inside
 * a call that went down. At most one on_gone() comes, and nothing after it. */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "http/message.h"

struct addr;
struct channel;
struct exchange;
struct loop;
struct tls_info;

enum request_state {
    REQUEST_HEAD,   /* not yet dispatched */
    REQUEST_BODY,   /* bytes are still to come */
    REQUEST_ENDED,  /* all of it has arrived */
    REQUEST_BROKEN, /* malformed, too slow, too large, or the peer left in the middle */
};

enum answer_state {
    ANSWER_OPEN, /* no final status was given yet */
    ANSWER_HEAD, /* unused between calls: head() moves on to BODY or ENDED */
    ANSWER_BODY, /* the head has been written; body bytes may follow */
    ANSWER_ENDED,
    ANSWER_ABORTED, /* cut: the connection closes and the client can tell */
};

/* Why the wire has gone, or why work aborts. */
enum gone_why {
    GONE_CLIENT,   /* the client closed or reset */
    GONE_TIMEOUT,  /* no progress within a limit of the connection */
    GONE_BROKEN,   /* the request's body turned out malformed (answer the 4xx in request_fault) */
    GONE_SHUTDOWN, /* the drain deadline has passed */
    GONE_ERROR,    /* the work failed after its head was out */
};

/* What down-calls return besides 0 or a number of bytes. Nothing was done then. */
enum {
    EXCHANGE_WAIT    = -1, /* not now: on_room() tells when */
    EXCHANGE_GONE    = -2, /* finished, cut or the client has left */
    EXCHANGE_INVALID = -3, /* a status, a name or a value that may not go on the wire */
};

/* --- what the work is told ----------------------------------------------------------------- */

/* NULL for what does not interest. */
struct exchange_work {
    /* Request body bytes have come: take them with exchange_take_body(). */
    void (*on_body)(struct exchange *ex);
    /* The body is complete (trailers are in ex->request.trailers), or broken: see
     * ex->request_state and ex->request_fault. Comes only if the body was wanted before its end
     * was known: after exchange_want() look at request_state first. */
    void (*on_body_end)(struct exchange *ex);
    /* An answer body that met WAIT may go on. */
    void (*on_room)(struct exchange *ex);
    /* The answer is out of our hands: its last byte went to the kernel (ABORTED: the cut is made).
     * The hook `sent` and the access log hang here. Comes before on_gone at the latest. */
    void (*on_sent)(struct exchange *ex);
    /* The client has gone or the wire gives up. The work cancels itself and lets go. */
    void (*on_gone)(struct exchange *ex, enum gone_why why);
};

/* --- what a wire must be able to do --------------------------------------------------------- */

struct exchange_wire {
    /* Writes status line and fields. LENGTH: bytes of body that will follow, or
     * ANSWER_LENGTH_UNKNOWN (the wire frames it). Framing and Connection are the wire's own: fields
     * of these names are left out. So is Date, unless the answer has one. */
    int (*head)(struct exchange *ex, const struct answer *answer, uint64_t length);
    /* Head, the whole body and the end in one. */
    int (*answer)(struct exchange *ex, const struct answer *answer, struct str body);
    /* Takes up to the high mark (64 KiB): returns bytes taken, EXCHANGE_WAIT or _GONE. */
    ssize_t (*body)(struct exchange *ex, const struct iovec *iov, int count);
    /* Sends LEN bytes of FD from OFFSET as the body's rest, then ends. Owns FD from the call on. */
    int (*file)(struct exchange *ex, int fd, off_t offset, uint64_t len);
    int (*end)(struct exchange *ex, const struct field *trailers, unsigned trailer_count);
    void (*abort)(struct exchange *ex, enum gone_why why);
    /* More request body is wanted; opens the window, sends 100 Continue when the client waits. */
    void (*want)(struct exchange *ex);
    int (*interim)(struct exchange *ex, const struct answer *answer);
    struct channel *(*upgrade)(struct exchange *ex, struct str protocol,
                               const struct answer *answer);
    /* The work has let go: the wire may reuse or free what it kept for it. */
    void (*work_gone)(struct exchange *ex);
};

/* --- the exchange ---------------------------------------------------------------------------- */

struct exchange {
    struct request     request; /* http/message.h: method, target, fields, ... */
    enum request_state request_state;
    enum answer_state  answer_state;
    unsigned short     request_fault; /* 400, 408, 413, 431 when BROKEN */
    unsigned short     answer_status; /* set with the head; for the log */

    struct arena                arena;
    const struct exchange_wire *wire; /* NULL once the wire let go */
    void                       *wire_data;
    const struct exchange_work *work; /* NULL once the work let go */
    void                       *work_data;
    struct loop                *loop;
    const struct addr          *peer; /* borrowed from the connection; copied if it goes */
    const struct tls_info      *tls;  /* the same; NULL: it came over a plain connection */

    struct buf body;       /* request body that has come */
    size_t     body_taken; /* of it, from the front: read by the work */
    uint64_t   body_bytes; /* received in all */
    uint64_t   body_limit; /* over this: BROKEN with 413. The server's default, until the work
                            * sets its own before it wants the body */
    uint64_t   sent_bytes; /* answer body */
    uint64_t   started_ns; /* loop time at which the head was complete */
    bool       body_wanted;
    bool       close_after;      /* the connection ends with this answer */
    bool       answer_head_only; /* HEAD, 204, 304: body bytes are counted, not sent */
};

/* The dispatcher's entry, called by the wire for each complete request head. It must set
 * ex->work before it returns, or have let go; it may have answered by then. What came of the body
 * together with the head lies in ex->body already: request_state says whether that is all. */
typedef void (*exchange_fn)(struct exchange *ex, void *arg);

/* --- for the wire -------------------------------------------------------------------------------- */

/* An exchange in its own arena's first chunk: REQUEST_HEAD and ANSWER_OPEN, no work yet. */
struct exchange *exchange_new(struct loop *loop, struct arena_pool *pool,
                              const struct exchange_wire *wire, void *wire_data);
/* Body bytes that have come: the work is told by the wire. False: no memory. */
bool exchange_put_body(struct exchange *ex, struct str data);
/* Of these, what the work has not taken: the wire stops reading at its high mark. */
size_t exchange_untaken(const struct exchange *ex);
/* All is done and said. Frees it if the work has let go. */
void exchange_wire_let_go(struct exchange *ex);
/* The wire dies before the end: later down-calls return GONE, the work hears on_gone(WHY). */
void exchange_wire_lost(struct exchange *ex, enum gone_why why);

/* --- down-calls, for the work ---------------------------------------------------------------- */

/* Head alone, then body()/end(); or all at once with exchange_answer(). 0 or EXCHANGE_GONE. */
int     exchange_head(struct exchange *ex, const struct answer *answer, uint64_t length);
ssize_t exchange_body(struct exchange *ex, const struct iovec *iov, int count);
int     exchange_file(struct exchange *ex, int fd, off_t offset, uint64_t len);
int     exchange_end(struct exchange *ex, const struct field *trailers, unsigned trailer_count);
/* Head, body and end in one; the request path's own. BODY is copied or written before it returns,
 * whatever its length: hand what is large over in pieces, by exchange_body(). */
int  exchange_answer(struct exchange *ex, const struct answer *answer, struct str body);
void exchange_abort(struct exchange *ex, enum gone_why why);
int  exchange_interim(struct exchange *ex, const struct answer *answer);
/* Switches to PROTOCOL, which the request asks for (request.upgrade) and all of which has come: 101
 * in HTTP/1.1, 200 in HTTP/2, whatever status ANSWER has; its fields go along, but for those that
 * say the switch itself. The exchange has ENDED by that; what follows is in the channel, which
 * is the caller's to take. NULL: it cannot be, nothing was done. */
struct channel *exchange_upgrade(struct exchange *ex, struct str protocol,
                                 const struct answer *answer);

/* Asks for the request body: on_body() and on_body_end() follow unless request_state is ENDED or
 * BROKEN now (a body announced as too large is BROKEN at once). Nothing is read from the socket
 * before this, and not more than one buffer (64 KiB) beyond what was taken. */
void exchange_want(struct exchange *ex);
/* What has come, at most BYTES_MAX of it, is the caller's: valid until control goes back to the
 * wire. Taking makes room for more. Empty: nothing is there. */
struct str exchange_take_body(struct exchange *ex, size_t bytes_max);

/* The work has finished: it hears no event any more. In OPEN the wire writes 500; in BODY it cuts. */
void exchange_work_let_go(struct exchange *ex);

#endif
