#include "server/worker_refused.h"

#include "base/clock.h"
#include "base/log.h"
#include "http/options.h"
#include "net/addr.h"
#include "server/worker_state.h"

enum { TELL_INTERVAL_NS = 1000000000 };

/* What many connections may have in common is told once a second. True: now; *UNTOLD says how many
 * there were since. */
static bool is_time_to_tell(struct worker *w, struct refusals *refusals, unsigned *untold)
{
    uint64_t now = loop_now_ns(w->loop);

    if (refusals->told_ns && now - refusals->told_ns < TELL_INTERVAL_NS) {
        refusals->untold++;
        return false;
    }
    *untold   = refusals->untold;
    *refusals = (struct refusals){ now, 0 };
    return true;
}

/* A proxy that is not set up for it, or one that should not be in the list: somebody has to mend
 * that, but each of its connections is the same news. */
static void tell_no_header(struct worker *w, const struct http_refusal *refusal)
{
    char     peer[ADDR_TEXT_BYTES];
    unsigned untold;

    if (is_time_to_tell(w, &w->refused_headers, &untold))
        log_warn("PROXY header refused", "reason=%s peer=%s untold=%u", refusal->reason,
                 addr_format(refusal->peer, peer), untold);
}

/* Whoever looks for ports on the Internet makes some of these. */
static void tell_no_handshake(struct worker *w, const struct http_refusal *refusal)
{
    char     peer[ADDR_TEXT_BYTES];
    unsigned untold;

    if (is_time_to_tell(w, &w->refused_handshakes, &untold))
        log_info("TLS handshake failed", "reason=%s peer=%s untold=%u", refusal->reason,
                 addr_format(refusal->peer, peer), untold);
}

/* An attack has thousands of such connections. */
static void tell_no_frames(struct worker *w, const struct http_refusal *refusal)
{
    char     peer[ADDR_TEXT_BYTES];
    unsigned untold;

    if (is_time_to_tell(w, &w->refused_frames, &untold))
        log_info("HTTP/2 connection broken off", "reason=%s peer=%s untold=%u", refusal->reason,
                 addr_format(refusal->peer, peer), untold);
}

/* Somebody has typed https://, and his browser says no more than that it did not work. */
static void tell_no_tls(struct worker *w, const struct http_refusal *refusal)
{
    char peer[ADDR_TEXT_BYTES];

    if (w->told_of_hello)
        return;
    addr_format(refusal->peer, peer);
    if (w->redirect) /* what is plain here is its port alone */
        log_warn("TLS on a port of plain HTTP", "peer=%s way_out=%s port=%u", peer,
                 "https:// goes to the other port", w->shared->port);
    else
        log_warn("TLS on a port of plain HTTP", "peer=%s way_out=%s", peer,
                 "give it a certificate by --cert and --key; srv cert --dev makes one");
    w->told_of_hello = true;
}

void worker_refused(const struct http_refusal *refusal, void *arg)
{
    struct worker *w = arg;
    char           peer[ADDR_TEXT_BYTES];

    if (refusal->kind == REFUSED_HANDSHAKE)
        worker_metrics_handshake(&w->metrics, "failed");
    else
        worker_metrics_refused(&w->metrics, refusal->status);
    switch (refusal->kind) {
    case REFUSED_PROXY: tell_no_header(w, refusal); return;
    case REFUSED_HANDSHAKE: tell_no_handshake(w, refusal); return;
    case REFUSED_HELLO: tell_no_tls(w, refusal); return;
    case REFUSED_FRAMES: tell_no_frames(w, refusal); return;
    case REFUSED_REQUEST: break;
    }
    log_info("request refused", "status=%u reason=%s peer=%s", refusal->status, refusal->reason,
             addr_format(refusal->peer, peer));
}
