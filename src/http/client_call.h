/* http/client_call.h - one request to another server and its response, over a connection of
 * http/client.h.
 *
 *     client_call_start()   a connection is taken or opened, and the request is written
 *     on_event()            from the loop's turn: look again (connected, head, bytes, room, fault)
 *     client_call_read()    the body is pulled: nothing is read that nobody asked for
 *     client_call_close()   at any time. The connection is kept if it is at rest, else closed
 *
 * The request goes on while the response comes in, so both may stream at once. A call in its owner's
 * memory; belongs to the loop's thread. */
#ifndef HTTP_CLIENT_CALL_H
#define HTTP_CLIENT_CALL_H

#include <sys/types.h>

#include "base/arena.h"
#include "http/client.h"
#include "http/h1_parse.h"
#include "http/h1_response.h"

struct coding;

enum {
    CALL_HEAD_BYTES_MAX = 64 * 1024, /* of a response's head, and of its trailers */
    CALL_LINE_BYTES_MAX = 8 * 1024,
    CALL_FIELDS_MAX     = 256,
    CALL_INTERIM_MAX    = 16,        /* 1xx responses before the one that counts */
    CALL_OUT_BYTES_MAX  = 64 * 1024, /* of a streamed body, written and not yet sent */
};

/* What client_call_read() returns besides a number of bytes. */
enum {
    CALL_WAIT = -1, /* on_event() tells when */
    CALL_END  = 0,
    CALL_FAIL = -2, /* see `fault` */
};

enum call_body {
    CALL_BODY_WHOLE,   /* `body`, maybe none */
    CALL_BODY_LENGTH,  /* client_call_write(), `body_left` bytes in all */
    CALL_BODY_CHUNKED, /* client_call_write(), then client_call_end_body() */
};

/* How much of a request that failed the server may have seen. */
enum call_sent {
    CALL_UNSENT, /* nothing: any request may be sent again */
    CALL_STALE,  /* a kept connection ended before any answer: maybe read, most likely not */
    CALL_SENT,
};

struct client_call {
    /* Set before the start. */
    struct client_target target;
    struct str           head; /* request line and fields, with the empty line */
    struct str           body; /* stays until the call is closed or has ended */
    enum call_body       body_kind;
    uint64_t             body_left;
    bool                 answers_head; /* the method is HEAD */
    bool                 decodes;      /* gzip, deflate and br are undone */
    uint64_t             total_ms;     /* 0: no limit. Until the end, or client_call_limit() */
    bool     paces; /* total_ms is for each step of a streamed request, and for what follows it */
    uint64_t first_byte_ms; /* from when the request is out; 0: no limit */
    void (*on_event)(struct client_call *call);

    /* What is known. */
    bool            connected;
    bool            has_head; /* `response` and its fields, in the call's arena */
    bool            decoded;  /* the body is another than Content-Encoding says */
    bool            ended;    /* the body was read to its end; trailers are there */
    struct response response;
    /* Why it failed: a code of API, section 5, and a sentence. NULL: it has not. */
    const char    *fault;
    char           fault_text[256];
    enum call_sent sent; /* with a fault */

    /* Private. */
    struct arena        arena;
    struct http_client *client;
    struct loop        *loop;
    struct client_want  want;
    struct client_conn *conn;
    struct later        report;
    struct timer        limit, first_byte;
    size_t              sent_bytes; /* of head and body */
    struct buf          out;
    bool                started, body_ended, send_failed, body_done;
    bool                coding_begun, coding_full, coding_done;
    unsigned            interims;
    struct h1_head_gate gate;
    struct h1_body      parse;
    struct str          data; /* of the body, in conn->input, not handed out yet */
    struct coding      *coding;
};

/* Zeroed memory with the fields above set. TARGET's texts and HEAD may go after the call. */
void client_call_start(struct client_call *call, struct http_client *client, struct loop *loop,
                       struct arena_pool *arenas);

/* Bytes of the request's body that were taken, 0: on_event() tells when there is room. After a fault,
 * or when the response has ended, all of it, to nowhere. */
size_t client_call_write(struct client_call *call, struct str data);
/* False: the body is shorter than was announced, and the call has failed. */
bool client_call_end_body(struct client_call *call);

/* After has_head: at most ROOM bytes, CALL_WAIT, CALL_END or CALL_FAIL. */
ssize_t client_call_read(struct client_call *call, char *to, size_t room);

/* The rest may take MS; 0: as long as it likes. */
void client_call_limit(struct client_call *call, uint64_t ms);
/* Makes it fail, from above: no on_event() comes of it. */
void client_call_fail(struct client_call *call, const char *fault, const char *text);

/* Idempotent; fine for zeroed memory. What the arena held is gone. */
void client_call_close(struct client_call *call);

#endif
