/* What the work asks for by exchange_...(): these functions append to the connection's output,
 * change states and wake it. They call nobody, so nothing moves under a caller's feet. */
#include "http/h1_wire.h"

#include <unistd.h>

#include "base/iov.h"
#include "http/conn.h"
#include "http/h1_channel.h"
#include "http/message.h"
#include "http/respond.h"

void h1_break_body(struct exchange *ex, unsigned short status, const char *reason)
{
    struct h1_fault *fault = &h1_of(ex)->body.gate.fault;

    *fault            = (struct h1_fault){ status, reason };
    ex->request_state = REQUEST_BROKEN;
    ex->request_fault = status;
    ex->close_after   = true;
}

bool h1_is_too_large(const struct exchange *ex)
{
    return h1_body_announced(&h1_of(ex)->body, &ex->request) > ex->body_limit;
}

/* --- heads -------------------------------------------------------------------------------------- */

/* A body that was not read is drained if it is small; else the connection ends, and the head says
 * so. One that the client still holds back may come or not, so nothing can be read behind it. */
static bool leaves_body_unread(const struct exchange *ex)
{
    const struct h1_exchange *h1 = h1_of(ex);

    if (ex->request_state != REQUEST_BODY)
        return ex->request_state == REQUEST_BROKEN;
    if (!h1->continued && !ex->body_bytes)
        return true;
    return !ex->request.chunked &&
           ex->request.content_length - ex->body_bytes > H1_DRAIN_BYTES_MAX && !ex->body_wanted;
}

static enum respond_framing choose_framing(struct exchange *ex, unsigned status, uint64_t length)
{
    bool is_head         = str_is(ex->request.method, STR("HEAD"));
    bool has_no_body     = status == 204 || status == 304;
    ex->answer_head_only = is_head || has_no_body;
    if (has_no_body)
        return RESPOND_NO_BODY;
    if (length != ANSWER_LENGTH_UNKNOWN)
        return RESPOND_LENGTH;
    if (is_head)
        return RESPOND_NO_BODY;
    return ex->request.version_minor > 0 ? RESPOND_CHUNKED : RESPOND_UNTIL_CLOSE;
}

static enum respond_persistence choose_persistence(struct conn *conn, struct exchange *ex)
{
    ex->close_after |= conn->server->draining || h1_of(ex)->framing == RESPOND_UNTIL_CLOSE ||
                       leaves_body_unread(ex);
    if (ex->close_after)
        return RESPOND_SAYS_CLOSE;
    return ex->request.version_minor == 0 ? RESPOND_SAYS_KEEP_ALIVE : RESPOND_SAYS_NOTHING;
}

static bool begin_answer(struct exchange *ex, const struct answer *answer, uint64_t length)
{
    struct h1_exchange *h1   = h1_of(ex);
    struct conn        *conn = h1->conn;

    if (!respond_is_sound(answer))
        return false;
    h1->framing = choose_framing(ex, answer->status, length);
    h1->left    = h1->framing == RESPOND_LENGTH ? length : 0;
    respond_head(&conn_output(conn)->bytes, answer, h1->framing, length,
                 choose_persistence(conn, ex), &conn->server->date);
    ex->answer_status = (unsigned short)answer->status;
    ex->answer_state  = ANSWER_BODY;
    conn_wake(conn);
    return true;
}

static int wire_head(struct exchange *ex, const struct answer *answer, uint64_t length)
{
    return begin_answer(ex, answer, length) ? 0 : EXCHANGE_INVALID;
}

static int wire_answer(struct exchange *ex, const struct answer *answer, struct str body)
{
    struct iovec piece = { (void *)body.at, body.len };

    if (!begin_answer(ex, answer, body.len))
        return EXCHANGE_INVALID;
    ex->sent_bytes = body.len;
    if (body.len && !ex->answer_head_only)
        conn_write(h1_of(ex)->conn, &piece, 1);
    ex->answer_state = ANSWER_ENDED;
    return 0;
}

/* --- bodies ------------------------------------------------------------------------------------- */

enum { PIECES_MAX = 17 }; /* of one write; what is in more is taken by the next */

/* A body that is not sent never fills the client's window. So that its writer does not go on for ever
 * in one turn, it waits as if it did. */
static ssize_t count_unseen(struct exchange *ex, size_t len)
{
    struct h1_exchange *h1 = h1_of(ex);

    if (len && h1->unseen >= CONN_HIGH_BYTES) {
        h1->unseen     = 0;
        h1->wants_room = true;
        conn_put_off(h1->conn);
        return EXCHANGE_WAIT;
    }
    h1->unseen += len;
    h1->left -= h1->framing == RESPOND_LENGTH ? len : 0;
    ex->sent_bytes += len;
    return (ssize_t)len;
}

static ssize_t wire_body(struct exchange *ex, const struct iovec *iov, int count)
{
    struct h1_exchange *h1    = h1_of(ex);
    struct conn        *conn  = h1->conn;
    size_t              total = iov_len(iov, count), pending = conn_pending(conn), len;
    struct iovec        pieces[PIECES_MAX + 1]; /* the last one ends a chunk */
    int                 used;

    if (h1->framing == RESPOND_LENGTH && total > h1->left)
        return EXCHANGE_INVALID;
    if (ex->answer_head_only || !total)
        return count_unseen(ex, total);
    if (pending >= CONN_HIGH_BYTES) {
        h1->wants_room = true;
        return EXCHANGE_WAIT;
    }
    used = iov_cut(pieces, PIECES_MAX, iov, count, CONN_HIGH_BYTES - pending, &len);
    if (h1->framing == RESPOND_CHUNKED) {
        struct str end = RESPOND_CHUNK_END;

        respond_chunk_line(&conn_output(conn)->bytes, len);
        pieces[used++] = (struct iovec){ (void *)end.at, end.len };
    }
    conn_write(conn, pieces, used);
    h1->left -= h1->framing == RESPOND_LENGTH ? len : 0;
    ex->sent_bytes += len;
    conn_wake(conn);
    return (ssize_t)len;
}

static int wire_end(struct exchange *ex, const struct field *trailers, unsigned trailer_count)
{
    struct h1_exchange *h1 = h1_of(ex);

    if (!respond_are_sound_trailers(trailers, trailer_count))
        return EXCHANGE_INVALID;
    if (h1->framing == RESPOND_CHUNKED)
        respond_last_chunk(&conn_output(h1->conn)->bytes, trailers, trailer_count);
    /* Less than was announced: the client must not take it for the whole. */
    ex->answer_state = h1->left && !ex->answer_head_only ? ANSWER_ABORTED : ANSWER_ENDED;
    conn_wake(h1->conn);
    return 0;
}

static int wire_file(struct exchange *ex, int fd, off_t offset, uint64_t len)
{
    struct h1_exchange *h1 = h1_of(ex);

    if (h1->framing == RESPOND_CHUNKED || (h1->framing == RESPOND_LENGTH && len != h1->left)) {
        close(fd);
        return EXCHANGE_INVALID;
    }
    if (ex->answer_head_only || !len)
        close(fd);
    else
        conn_write_file(h1->conn, fd, offset, len);
    ex->sent_bytes += len;
    ex->answer_state = ANSWER_ENDED;
    conn_wake(h1->conn);
    return 0;
}

/* --- the rest ------------------------------------------------------------------------------------ */

static void wire_abort(struct exchange *ex, enum gone_why why)
{
    ex->answer_state = ANSWER_ABORTED;
    conn_wake(h1_of(ex)->conn);
}

/* RFC 9110, 10.1.1: the 100 is sent when the body is first wanted. Also to who did not wait for it: a
 * client that counts its interim answers is not left wondering whether one got lost. */
static void wire_want(struct exchange *ex)
{
    struct h1_exchange *h1 = h1_of(ex);

    if (h1_is_too_large(ex)) {
        h1_break_body(ex, 413, "the body is too large");
        return;
    }
    if (!h1->continued && ex->answer_state == ANSWER_OPEN)
        buf_add_str(&conn_output(h1->conn)->bytes, STR("HTTP/1.1 100 Continue\r\n\r\n"));
    h1->continued = true;
    conn_wake(h1->conn);
}

static int wire_interim(struct exchange *ex, const struct answer *answer)
{
    struct h1_exchange *h1 = h1_of(ex);

    if (!respond_is_sound_interim(answer))
        return EXCHANGE_INVALID;
    if (ex->request.version_minor == 0)
        return 0; /* RFC 9110, 15.2: 1.0 knows no interim answers */
    respond_interim(&conn_output(h1->conn)->bytes, answer);
    conn_wake(h1->conn);
    return 0;
}

/* What stands behind the request in the input is the channel's already. */
static struct channel *wire_upgrade(struct exchange *ex, struct str protocol,
                                    const struct answer *answer)
{
    struct h1_exchange *h1   = h1_of(ex);
    struct conn        *conn = h1->conn;

    if (!respond_is_sound_upgrade(protocol, answer) || conn->server->draining)
        return NULL;
    h1->channel = h1_channel_new(conn);
    if (!h1->channel)
        return NULL;
    respond_upgrade(&conn_output(conn)->bytes, protocol, answer);
    ex->answer_status = 101;
    ex->answer_state  = ANSWER_ENDED;
    ex->close_after   = false;
    conn_wake(conn);
    return h1->channel;
}

static void wire_work_gone(struct exchange *ex)
{
    conn_wake(h1_of(ex)->conn);
}

const struct exchange_wire h1_wire = {
    .head      = wire_head,
    .answer    = wire_answer,
    .body      = wire_body,
    .file      = wire_file,
    .end       = wire_end,
    .abort     = wire_abort,
    .want      = wire_want,
    .interim   = wire_interim,
    .upgrade   = wire_upgrade,
    .work_gone = wire_work_gone,
};
