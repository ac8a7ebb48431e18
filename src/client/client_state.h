/* client/client_state.h - what is known of a call (client/client_call.h), and how it comes to its end. */
#ifndef CLIENT_CLIENT_STATE_H
#define CLIENT_CLIENT_STATE_H

#include "base/arena.h"
#include "client/client.h"
#include "client/h2_client_stream.h"
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

/* What client_read_body() returns besides a number of bytes. */
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
    CALL_FOR_H1, /* the same, but in HTTP/1.1 */
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
    bool                 decodes;      /* content codings are undone */
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
    size_t turn_bytes; /* of the body, taken from the socket in this turn of the loop */
    struct h1_head_gate gate;
    struct h1_body      parse;
    struct str          data; /* of the body, in conn->input or `in`, not handed out yet */
    struct coding      *coding;

    /* On a connection that is shared (client/client_stream.h). */
    struct h2_client_stream stream;
    struct buf              in;    /* of the body */
    size_t                  given; /* of `in`: what `data` was at first */
    uint64_t                heard; /* on the connection, before the request */
    bool                    stream_ended, stream_failed;
    enum h2_client_fault    stream_fault; /* with stream_failed */
};

/* Whole, to the kernel. */
bool client_state_is_sent(const struct client_call *call);
/* The server has taken bytes of the request (WROTE), or there may be nothing that it could take: a limit for
 * each step begins anew, or stops. */
void client_state_pace(struct client_call *call, bool wrote);
/* Bytes of CONN's input that are not parsed yet. */
struct str client_state_unread(const struct client_conn *conn);

/* Its connection is closed, or its place in the queue given up. Nothing after the end or a first fault. */
void client_state_fail(struct client_call *call, const char *fault, const char *text);
/* "timeout". A shared connection on which nothing has come since may be dead: others get another. */
void client_state_fail_late(struct client_call *call, const char *text);
/* For CONN is lost. A server's alert says more than FAULT and TEXT: in TLS 1.3 it looks at our certificate
 * when we are through with the handshake. */
void client_state_fail_lost(struct client_call *call, const char *fault, const char *text);
/* The body was read to its end: the connection goes back before anyone asks for more. */
void client_state_end(struct client_call *call);
void client_state_stop_timers(struct client_call *call);

#endif
