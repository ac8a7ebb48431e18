/* ws/ws_reader.h - frames in, by wslay: bytes to messages and control frames, held against RFC 6455,
 * 5. What is compressed stays so. Knows no channel and sends nothing.
 *
 * A reader carries wslay's buffer of 4 KiB, so it is lent to a socket while a frame or a message is
 * under way (ws/ws_shared.h). */
#ifndef WS_WS_READER_H
#define WS_WS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/str.h"
#include "ws/ws_code.h"
#include "ws/ws_due.h"
#include "ws/ws_encode.h"
#include "ws/ws_utf8.h"

struct ws;
struct wslay_frame_context;

enum ws_step {
    WS_STEP_WANT,    /* all bytes are used up: come back with more */
    WS_STEP_PART,    /* part of a message: nothing to do yet */
    WS_STEP_MESSAGE, /* `kind`, `data`, `deflated` */
    WS_STEP_CONTROL, /* `opcode`, `data` */
    WS_STEP_BROKEN,  /* close with `code`; nothing can be read any more */
};

/* What a socket takes. */
struct ws_rules {
    uint64_t limit;   /* bytes of a message; compressed ones are measured again when inflated */
    bool     masked;  /* the peer is a client */
    bool     deflate; /* messages may be compressed */
};

struct ws_reader {
    struct list                 link; /* among those at rest */
    struct wslay_frame_context *frames;
    struct str                 *in;    /* during a step */
    uint64_t                    given; /* bytes, to wslay */
    uint64_t                    used;  /* of them, by frames that were told of */

    /* The socket's, whose peer has to go on. */
    struct ws    *owner;
    struct ws_due pace;
    uint64_t      paced; /* `given` when that was started */

    /* The frame at hand. */
    bool           in_frame;
    enum ws_opcode opcode;
    uint64_t       left; /* bytes of its payload to come */

    /* The message at hand; control frames may come between its frames. */
    bool           in_message;
    bool           deflated;
    enum ws_kind   kind;
    struct ws_utf8 utf8;
    struct buf     message; /* what has come of it, unless one piece is all */

    char     control[WS_CONTROL_BYTES_MAX];
    unsigned control_len;

    size_t      piece_len; /* bytes of payload that the step has taken */
    struct str  data;      /* of MESSAGE and CONTROL, valid until the next step */
    unsigned    code;      /* of BROKEN */
    const char *reason;    /* and a sentence for the peer */
};

struct ws_reader *ws_reader_new(void); /* NULL: no memory */
void              ws_reader_free(struct ws_reader *reader);

/* Takes bytes off the front of *IN: a piece of one frame, at most. DISCARD: messages are passed over
 * unseen, for the socket closes. Not after BROKEN. */
enum ws_step ws_reader_step(struct ws_reader *reader, struct str *in, const struct ws_rules *rules,
                            bool discard);

/* The message was seen: its memory is given back. */
void ws_reader_drop(struct ws_reader *reader);

/* It stands between two messages and holds no byte: another socket may have it. */
bool ws_reader_is_at_rest(const struct ws_reader *reader);

#endif
