#include "client/client_setup.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "net/stream.h"
#include "net/tls.h"

enum { READ_BYTES = 2048 };

static const struct h1_limits LIMITS = {
    .line_bytes = 8 * 1024,
    .head_bytes = CLIENT_SETUP_HEAD_MAX,
    .fields     = 128,
};

bool client_setup_is_needed(struct str tunnel, const struct client_tls *tls)
{
    return tunnel.len || tls;
}

/* --- the end ------------------------------------------------------------------------------------------ */

void client_setup_stop(struct client_setup *setup)
{
    if (!setup->loop)
        return;
    setup->is_over = true;
    timer_stop(&setup->limit, setup->loop);
    later_cancel(&setup->report);
    buf_fini(&setup->answer);
}

/* Told from the turn, also of what went wrong at once. */
static void end(struct client_setup *setup)
{
    setup->is_over = true;
    timer_stop(&setup->limit, setup->loop);
    loop_later(setup->loop, &setup->report);
}

static void fail(struct client_setup *setup, const char *fault, int rc, const char *text)
{
    setup->fault = fault;
    err_set(&setup->err, rc, "%s", text);
    end(setup);
}

static void on_report(struct later *later)
{
    struct client_setup *setup = container_of(later, struct client_setup, report);

    client_setup_stop(setup);
    setup->done(setup);
}

static void on_limit(struct timer *timer)
{
    struct client_setup *setup = container_of(timer, struct client_setup, limit);

    fail(setup, "timeout", ERR_TIMEOUT,
         setup->is_shaking ? "the TLS handshake did not end in time"
                           : "the proxy did not open the tunnel in time");
}

/* --- TLS ---------------------------------------------------------------------------------------------- */

static void begin_tls(struct client_setup *setup)
{
    struct err err;
    int        rc;

    setup->is_shaking = true;
    rc = client_tls_begin(setup->clients, setup->tls, setup->key, setup->stream, &err);
    if (rc != 0)
        fail(setup, "tls", rc, err.text);
}

/* An event comes when it is over, one way or the other. */
static void end_tls(struct client_setup *setup)
{
    const struct tls_info *info = tls_info(setup->stream);

    if (!info) {
        fail(setup, "tls", ERR_CLOSED,
             tls_fault_kind(setup->stream) == TLS_WELL ? "the connection broke in the TLS handshake"
                                                       : tls_fault(setup->stream));
        return;
    }
    setup->is_h2 = strcmp(info->alpn, "h2") == 0;
    end(setup);
}

/* --- a tunnel ----------------------------------------------------------------------------------------- */

/* False: the rest has to wait, or it has failed. */
static bool send_request(struct client_setup *setup)
{
    while (setup->sent < setup->tunnel.len) {
        struct str   rest  = str_from(setup->tunnel, setup->sent);
        struct iovec piece = { (void *)rest.at, rest.len };
        ssize_t      n     = stream_writev(setup->stream, &piece, 1);

        if (n == STREAM_FAIL)
            fail(setup, "closed", ERR_CLOSED, "the proxy broke the connection");
        if (n < 0)
            return false;
        setup->sent += (size_t)n;
    }
    return true;
}

/* "HTTP/1.1 200 Connection established": the gate has looked at it. */
static void judge_answer(struct client_setup *setup)
{
    const char *status = setup->answer.at + sizeof("HTTP/1.1 ") - 1;
    char        text[128];

    if (setup->gate.scanned < setup->answer.len) {
        fail(setup, "bad_response", ERR_INVALID,
             "the proxy says more than that the tunnel is open");
    } else if (status[0] != '2') {
        snprintf(text, sizeof(text), "the proxy refused the tunnel with status %.3s", status);
        fail(setup, "refused", ERR_CLOSED, text);
    } else if (setup->tls) {
        begin_tls(setup);
    } else {
        end(setup);
    }
}

/* False: nothing more is there, or it has failed. */
static bool read_some(struct client_setup *setup)
{
    char   *to = buf_reserve(&setup->answer, READ_BYTES);
    ssize_t n  = to ? stream_read(setup->stream, to, READ_BYTES) : STREAM_FAIL;

    if (n > 0)
        setup->answer.len += (size_t)n;
    else if (n != STREAM_WAIT)
        fail(setup, "closed", ERR_CLOSED, "the proxy ended the connection instead of an answer");
    return n > 0;
}

static void read_answer(struct client_setup *setup)
{
    while (read_some(setup)) {
        enum h1_reading reading =
            h1_gate_head(&setup->gate, &LIMITS, setup->answer.at, setup->answer.len);

        if (reading == H1_MORE)
            continue;
        if (reading == H1_DONE)
            judge_answer(setup);
        else
            fail(setup, "bad_response", ERR_INVALID, "the proxy's answer is no HTTP");
        return;
    }
}

/* --- steps -------------------------------------------------------------------------------------------- */

void client_setup_on_event(struct client_setup *setup)
{
    if (setup->is_over)
        return;
    if (setup->is_shaking)
        end_tls(setup);
    else if (send_request(setup))
        read_answer(setup);
}

void client_setup_start(struct client_setup *setup)
{
    timer_init(&setup->limit, on_limit);
    later_init(&setup->report, on_report);
    h1_gate_init_response(&setup->gate);
    buf_init(&setup->answer, CLIENT_SETUP_HEAD_MAX + READ_BYTES);
    if (setup->limit_ms)
        timer_start(&setup->limit, setup->loop, setup->limit_ms);
    if (setup->tunnel.len)
        send_request(setup);
    else
        begin_tls(setup);
}
