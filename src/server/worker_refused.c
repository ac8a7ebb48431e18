#include "server/worker_refused.h"

#include "base/clock.h"
#include "base/log.h"
#include "http/options.h"
#include "net/addr.h"
#include "server/worker_state.h"

enum { TELL_INTERVAL_NS = 1000000000 };

/* A proxy that is not set up for it, or one that should not be in the list: somebody has to mend
 * that, but each of its connections is the same news. */
static void tell_no_header(struct worker *w, const struct http_refusal *refusal)
{
    uint64_t now = loop_now_ns(w->loop);
    char     peer[ADDR_TEXT_BYTES];

    if (w->told_refusal_ns && now - w->told_refusal_ns < TELL_INTERVAL_NS) {
        w->untold_refusals++;
        return;
    }
    log_warn("PROXY header refused", "reason=%s peer=%s untold=%u", refusal->reason,
             addr_format(refusal->peer, peer), w->untold_refusals);
    w->told_refusal_ns = now;
    w->untold_refusals = 0;
}

void worker_refused(const struct http_refusal *refusal, void *arg)
{
    struct worker *w = arg;
    char           peer[ADDR_TEXT_BYTES];

    worker_metrics_refused(&w->metrics, refusal->status);
    if (refusal->status == 0)
        tell_no_header(w, refusal);
    else
        log_info("request refused", "status=%u reason=%s peer=%s", refusal->status, refusal->reason,
                 addr_format(refusal->peer, peer));
}
