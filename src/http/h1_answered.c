#include "http/h1_answered.h"

void h1_answered_sent(struct h1_exchange *h1)
{
    struct exchange *ex = h1->ex;

    if (h1->told_sent)
        return;
    h1->told_sent = true;
    if (ex->work && ex->work->on_sent)
        ex->work->on_sent(ex);
}

static void let_go(struct conn *conn, struct h1_exchange *h1)
{
    spare_give_body(conn->server, h1->ex);
    exchange_wire_let_go(h1->ex);
}

static void queue_answered(struct conn *conn, struct h1_exchange *h1)
{
    struct output *output = conn->output;

    h1->mark               = output->written + conn_pending(conn);
    h1->next               = NULL;
    *output->answered_last = h1;
    output->answered_last  = &h1->next;
}

void h1_answered(struct conn *conn, struct exchange *ex)
{
    if (conn_pending(conn)) {
        queue_answered(conn, h1_of(ex));
        return;
    }
    h1_answered_sent(h1_of(ex));
    let_go(conn, h1_of(ex));
}

/* Answers whose last byte has gone to the kernel. */
static void tell_answered(struct conn *conn)
{
    struct output *output = conn->output;

    while (output->answered && output->answered->mark <= output->written) {
        struct h1_exchange *h1 = output->answered;

        output->answered = h1->next;
        if (!output->answered)
            output->answered_last = &output->answered;
        h1_answered_sent(h1);
        let_go(conn, h1);
    }
}

bool h1_answered_flush(struct conn *conn)
{
    bool all_gone;

    if (!conn->output)
        return true;
    all_gone = conn_flush(conn);
    tell_answered(conn);
    conn_release_output(conn);
    return all_gone;
}

/* The end of the connection would look like the end of its body. */
static bool would_look_whole(const struct h1_exchange *h1)
{
    return h1->framing == RESPOND_UNTIL_CLOSE && !h1->told_sent;
}

void h1_answered_lost(struct conn *conn, enum gone_why why)
{
    struct h1_exchange *h1 = conn->output ? conn->output->answered : NULL;

    if (conn->output)
        conn->output->answered = NULL;
    while (h1) {
        struct h1_exchange *next = h1->next;

        conn->must_reset |= would_look_whole(h1);
        exchange_wire_lost(h1->ex, why);
        h1 = next;
    }
}

void h1_answered_lose(struct conn *conn, struct exchange *ex, enum gone_why why)
{
    conn->must_reset |= would_look_whole(h1_of(ex));
    if (h1_of(ex)->told_sent)
        let_go(conn, h1_of(ex));
    else
        exchange_wire_lost(ex, why);
}
