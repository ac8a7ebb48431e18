/* A storm of handshakes must not keep those waiting who are connected: TLS_STEPS_PER_TURN of them, then
 * the loop looks at all its sockets again. */
#include "net/tls_worker.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "net/tls.h"
#include "net/tls_lib.h"
#include "net/tls_pages.h"

enum { STAGED_BYTES_KEPT = 128 * 1024 };

/* --- the queue -------------------------------------------------------------------------------------- */

void tls_work_init(struct tls_work *work, void (*run)(struct tls_work *work))
{
    list_init(&work->link);
    work->run = run;
}

/* While the next turn's timer runs, this turn's share is used up. */
void tls_work_ask(struct tls *tls, struct tls_work *work)
{
    if (list_is_linked(&work->link))
        return;
    list_append(&tls->queue, &work->link);
    if (!timer_is_running(&tls->next_turn))
        loop_later(tls->loop, &tls->now);
}

void tls_work_cancel(struct tls_work *work)
{
    list_remove(&work->link);
}

static void run_some(struct tls *tls)
{
    struct list *node;

    for (unsigned steps = 0; steps < TLS_STEPS_PER_TURN; steps++) {
        struct tls_work *work;

        node = list_take_first(&tls->queue);
        if (!node)
            return;
        work = container_of(node, struct tls_work, link);
        work->run(work);
    }
    buf_shrink(&tls->staged, STAGED_BYTES_KEPT);
    if (!list_is_empty(&tls->queue)) {
        later_cancel(&tls->now);
        timer_start_ns(&tls->next_turn, tls->loop, 0);
    }
}

static void on_now(struct later *later)
{
    run_some(container_of(later, struct tls, now));
}

static void on_next_turn(struct timer *timer)
{
    run_some(container_of(timer, struct tls, next_turn));
}

/* --- life ------------------------------------------------------------------------------------------- */

int tls_open(struct tls **out, struct loop *loop, struct err *err)
{
    struct tls *tls;

    if (tls_lib_start() != 0)
        return err_set(err, ERR_SYSTEM, "mbedTLS does not start: its cryptography has failed");
    tls = malloc(sizeof(*tls));
    if (!tls)
        return err_set(err, ERR_MEMORY, "no memory for TLS");
    tls->loop      = loop;
    tls->has_roots = false;
    tls->running   = NULL;
    tls->raw_at = tls->raw_len = 0;
    list_init(&tls->queue);
    later_init(&tls->now, on_now);
    timer_init(&tls->next_turn, on_next_turn);
    limit_queue_init(&tls->idles, loop, TLS_DROP_MS, tls_pages_on_idle);
    mbedtls_x509_crt_init(&tls->roots);
    buf_init(&tls->staged, TLS_OUT_BYTES_MAX);
    *out = tls;
    return 0;
}

void tls_close(struct tls *tls)
{
    if (!tls)
        return;
    assert(list_is_empty(&tls->queue));
    later_cancel(&tls->now);
    timer_stop(&tls->next_turn, tls->loop);
    limit_queue_fini(&tls->idles);
    mbedtls_x509_crt_free(&tls->roots);
    buf_fini(&tls->staged);
    free(tls);
}
