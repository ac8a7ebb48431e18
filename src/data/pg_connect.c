#include "data/pg_connect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/pg_fault.h"
#include "data/pg_lib.h"
#include "data/pg_url.h"
#include "net/dns.h"

enum { SETUP_BYTES = 512 };

static void report(struct pg_connect *connect)
{
    io_stop(&connect->io);
    timer_stop(&connect->limit, connect->loop);
    connect->done(connect);
}

static void drop(struct pg_connect *connect)
{
    io_stop(&connect->io);
    if (connect->pq)
        connect->lib->finish(connect->pq);
    connect->pq = NULL;
}

static void fail(struct pg_connect *connect)
{
    pg_fault_from_conn(&connect->fault, connect->lib, connect->pq, "cannot connect to PostgreSQL");
    drop(connect);
    report(connect);
}

/* --- the session ----------------------------------------------------------------------------- */

/* statement_timeout belongs to the session and not to each call: the server ends a statement by
 * itself then, whoever has stopped listening, and a call costs nothing for it. */
static void write_setup(const struct pg_connect *connect, char text[SETUP_BYTES])
{
    snprintf(text, SETUP_BYTES,
             "set statement_timeout = %" PRIu64 "; set timezone = 'UTC'; set datestyle = 'ISO'; "
             "set intervalstyle = 'postgres'; set bytea_output = 'hex'; "
             "set extra_float_digits = 3; set client_min_messages = 'warning'; "
             "select pg_backend_pid()",
             connect->statement_ms);
}

static bool set_up(struct pg_connect *connect)
{
    const struct pg_lib *lib = connect->lib;
    char                 text[SETUP_BYTES];

    connect->setting_up = true;
    write_setup(connect, text);
    return lib->setnonblocking(connect->pq, 1) == 0 && lib->sendQuery(connect->pq, text) &&
           lib->flush(connect->pq) >= 0;
}

/* False: an error, which is set. */
static bool look_at(struct pg_connect *connect, PGresult *result)
{
    const struct pg_lib *lib    = connect->lib;
    ExecStatusType       status = lib->resultStatus(result);

    if (status == PGRES_TUPLES_OK && lib->ntuples(result) == 1)
        connect->pid = (unsigned)strtoul(lib->getvalue(result, 0, 0), NULL, 10);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return true;
    pg_fault_from_result(&connect->fault, lib, result, STR(""), false);
    return false;
}

static void go_on_setting_up(struct pg_connect *connect)
{
    const struct pg_lib *lib = connect->lib;
    PGresult            *result;

    if (lib->flush(connect->pq) < 0 || !lib->consumeInput(connect->pq)) {
        fail(connect);
        return;
    }
    while (!lib->isBusy(connect->pq)) {
        result = lib->getResult(connect->pq);
        if (!result) {
            report(connect);
            return;
        }
        if (!look_at(connect, result)) {
            lib->clear(result);
            drop(connect);
            report(connect);
            return;
        }
        lib->clear(result);
    }
}

/* --- libpq's own way ------------------------------------------------------------------------- */

static void on_io(int fd, short what, void *arg);

/* libpq may close its socket and open another, of the same number even: so it is registered anew
 * each time, and what is ready already is told anew. */
static void watch(struct pg_connect *connect)
{
    if (io_start_edge(&connect->io, connect->loop, connect->lib->socket(connect->pq), on_io,
                      connect) != 0)
        fail(connect);
}

static void poll_libpq(struct pg_connect *connect)
{
    io_stop(&connect->io);
    switch (connect->lib->connectPoll(connect->pq)) {
    case PGRES_POLLING_READING: connect->wanted = IO_READ | IO_CLOSED; break;
    case PGRES_POLLING_WRITING: connect->wanted = IO_WRITE | IO_CLOSED; break;
    case PGRES_POLLING_OK:
        if (!set_up(connect)) {
            fail(connect);
            return;
        }
        connect->wanted = IO_READ | IO_WRITE | IO_CLOSED;
        break;
    default: fail(connect); return;
    }
    watch(connect);
}

static void on_io(int fd, short what, void *arg)
{
    struct pg_connect *connect = arg;

    if (!(what & connect->wanted))
        return;
    if (connect->setting_up)
        go_on_setting_up(connect);
    else
        poll_libpq(connect);
}

void pg_connect_note(struct pg_connect *connect, const PGresult *error)
{
    const struct pg_lib *lib      = connect->lib;
    const char          *severity = lib->resultErrorField(error, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char          *message  = lib->resultErrorField(error, PG_DIAG_MESSAGE_PRIMARY);

    if (message && severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0))
        fault_set(&connect->fault, "unavailable", "PostgreSQL closed the connection: %s", message);
}

/* While nothing is asked, libpq takes errors for notices. */
static void on_notice(void *arg, const PGresult *notice)
{
    pg_connect_note(arg, notice);
}

static void connect_to(struct pg_connect *connect)
{
    connect->pq = pg_url_connect(connect->url, connect->query.addrs, connect->query.count);
    if (!connect->pq || connect->lib->status(connect->pq) == CONNECTION_BAD) {
        fail(connect);
        return;
    }
    connect->lib->setNoticeReceiver(connect->pq, on_notice, connect);
    /* The manual: act as if connectPoll() had last answered WRITING. */
    connect->wanted = IO_WRITE | IO_CLOSED;
    watch(connect);
}

/* --- the name -------------------------------------------------------------------------------- */

static void on_name(struct dns_query *query)
{
    struct pg_connect *connect = container_of(query, struct pg_connect, query);

    if (query->rc == 0) {
        connect_to(connect);
        return;
    }
    fault_set(&connect->fault, "unavailable", "cannot connect to PostgreSQL: %s", query->err.text);
    report(connect);
}

static void on_begin(struct later *later)
{
    struct pg_connect *connect = container_of(later, struct pg_connect, begin);

    if (connect->url->host)
        on_name(&connect->query);
    else
        connect_to(connect);
}

static void on_limit(struct timer *timer)
{
    struct pg_connect *connect = container_of(timer, struct pg_connect, limit);

    dns_cancel(&connect->query);
    connect->timed_out = true;
    fault_set(&connect->fault, "unavailable",
              "PostgreSQL does not answer: no connection within %d ms", PG_CONNECT_MS);
    drop(connect);
    report(connect);
}

void pg_connect_start(struct pg_connect *connect, const struct pg_lib *lib,
                      const struct pg_url *url, struct dns *dns, struct loop *loop,
                      uint64_t statement_ms)
{
    connect->lib          = lib;
    connect->url          = url;
    connect->loop         = loop;
    connect->statement_ms = statement_ms;
    connect->query.done   = on_name;
    list_init(&connect->query.link);
    later_init(&connect->begin, on_begin);
    timer_init(&connect->limit, on_limit);
    timer_start(&connect->limit, loop, PG_CONNECT_MS);
    if (!url->host || dns_resolve(dns, &connect->query, str_of(url->host), url->port))
        loop_later(loop, &connect->begin);
}

void pg_connect_cancel(struct pg_connect *connect)
{
    if (!connect->loop)
        return;
    dns_cancel(&connect->query);
    later_cancel(&connect->begin);
    timer_stop(&connect->limit, connect->loop);
    drop(connect);
}
