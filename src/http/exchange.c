/* The bookkeeping between the two holders. The exchange lies at the beginning of its own arena, so
 * a warm server gets one chunk from the pool for it and for all that hangs on it. */
#include "http/exchange.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "net/addr.h"
#include "net/tls.h"

enum { BODY_BYTES_KEPT_MAX = 1 << 20 }; /* far above any wire's high mark */

struct exchange *exchange_new(struct loop *loop, struct arena_pool *pool,
                              const struct exchange_wire *wire, void *wire_data)
{
    struct arena     arena;
    struct exchange *ex;

    arena_init(&arena, pool);
    ex             = arena_zalloc(&arena, sizeof(*ex));
    ex->arena      = arena;
    ex->wire       = wire;
    ex->wire_data  = wire_data;
    ex->loop       = loop;
    ex->body_limit = UINT64_MAX;
    buf_init(&ex->body, BODY_BYTES_KEPT_MAX);
    return ex;
}

/* The arena's bookkeeping leaves the memory that is given back. */
static void free_exchange(struct exchange *ex)
{
    struct arena arena = ex->arena;

    assert(!ex->wire && !ex->work);
    buf_fini(&ex->body);
    arena_reset(&arena);
}

/* --- the wire's side ---------------------------------------------------------------------------- */

bool exchange_put_body(struct exchange *ex, struct str data)
{
    if (ex->body_taken) {
        buf_consume(&ex->body, ex->body_taken);
        ex->body_taken = 0;
    }
    buf_add_str(&ex->body, data);
    ex->body_bytes += data.len;
    return !ex->body.failed;
}

size_t exchange_untaken(const struct exchange *ex)
{
    return ex->body.len - ex->body_taken;
}

static void keep_text(struct exchange *ex, const char **text)
{
    *text = arena_copy(&ex->arena, str_make(*text, strlen(*text) + 1)).at;
}

static void keep_tls(struct exchange *ex)
{
    struct tls_info *tls = arena_alloc(&ex->arena, sizeof(*tls));

    *tls = *ex->tls;
    keep_text(ex, &tls->version);
    keep_text(ex, &tls->cipher);
    keep_text(ex, &tls->sni);
    keep_text(ex, &tls->alpn);
    keep_text(ex, &tls->peer_subject);
    keep_text(ex, &tls->peer_serial);
    keep_text(ex, &tls->peer_fingerprint);
    ex->tls = tls;
}

/* Who the peer is belongs to the connection, and that may go before the work. */
static void keep_peer(struct exchange *ex)
{
    if (ex->peer) {
        struct addr *peer = arena_alloc(&ex->arena, sizeof(*peer));

        *peer    = *ex->peer;
        ex->peer = peer;
    }
    if (ex->tls)
        keep_tls(ex);
}

void exchange_wire_let_go(struct exchange *ex)
{
    ex->wire = NULL;
    if (ex->work)
        keep_peer(ex);
    else
        free_exchange(ex);
}

void exchange_wire_lost(struct exchange *ex, enum gone_why why)
{
    const struct exchange_work *work = ex->work;

    ex->wire         = NULL;
    ex->answer_state = ANSWER_ABORTED; /* also one that had ended, for its bytes were still here */
    if (!work) {
        free_exchange(ex);
        return;
    }
    keep_peer(ex);
    if (work->on_gone)
        work->on_gone(ex, why);
}

/* --- the work's side ----------------------------------------------------------------------------- */

int exchange_head(struct exchange *ex, const struct answer *answer, uint64_t length)
{
    if (!ex->wire || ex->answer_state != ANSWER_OPEN)
        return EXCHANGE_GONE;
    return ex->wire->head(ex, answer, length);
}

int exchange_answer(struct exchange *ex, const struct answer *answer, struct str body)
{
    if (!ex->wire || ex->answer_state != ANSWER_OPEN)
        return EXCHANGE_GONE;
    return ex->wire->answer(ex, answer, body);
}

int exchange_interim(struct exchange *ex, const struct answer *answer)
{
    if (!ex->wire || ex->answer_state != ANSWER_OPEN)
        return EXCHANGE_GONE;
    return ex->wire->interim(ex, answer);
}

struct channel *exchange_upgrade(struct exchange *ex, struct str protocol,
                                 const struct answer *answer)
{
    if (!ex->wire || ex->answer_state != ANSWER_OPEN || ex->request_state != REQUEST_ENDED ||
        !ex->request.upgrade.len || !ex->wire->upgrade)
        return NULL;
    return ex->wire->upgrade(ex, protocol, answer);
}

ssize_t exchange_body(struct exchange *ex, const struct iovec *iov, int count)
{
    if (!ex->wire || ex->answer_state != ANSWER_BODY)
        return EXCHANGE_GONE;
    return ex->wire->body(ex, iov, count);
}

int exchange_file(struct exchange *ex, int fd, off_t offset, uint64_t len)
{
    if (!ex->wire || ex->answer_state != ANSWER_BODY) {
        close(fd);
        return EXCHANGE_GONE;
    }
    return ex->wire->file(ex, fd, offset, len);
}

int exchange_end(struct exchange *ex, const struct field *trailers, unsigned trailer_count)
{
    if (!ex->wire || ex->answer_state != ANSWER_BODY)
        return EXCHANGE_GONE;
    return ex->wire->end(ex, trailers, trailer_count);
}

void exchange_abort(struct exchange *ex, enum gone_why why)
{
    if (!ex->wire || ex->answer_state == ANSWER_ENDED || ex->answer_state == ANSWER_ABORTED)
        return;
    ex->wire->abort(ex, why);
}

void exchange_want(struct exchange *ex)
{
    bool asks = ex->request.expects_continue && ex->request_state == REQUEST_ENDED;

    ex->body_wanted = true;
    if (ex->wire && (ex->request_state == REQUEST_BODY || asks))
        ex->wire->want(ex);
}

/* What was taken stays where it is until more comes, so the span is good for the caller. */
struct str exchange_take_body(struct exchange *ex, size_t bytes_max)
{
    size_t     untaken = exchange_untaken(ex);
    struct str taken;

    if (!untaken)
        return STR_NONE;
    taken = str_make(ex->body.at + ex->body_taken, untaken < bytes_max ? untaken : bytes_max);
    ex->body_taken += taken.len;
    if (ex->body_wanted)
        exchange_want(ex);
    return taken;
}

void exchange_work_let_go(struct exchange *ex)
{
    ex->work = NULL;
    if (ex->wire)
        ex->wire->work_gone(ex);
    else
        free_exchange(ex);
}
