#include "load/load_tls.h"

#include <string.h>

#include "base/err.h"
#include "load/load_state.h"

static bool has_tls(const struct load_plan *plan)
{
    for (unsigned i = 0; i < plan->origin_count; i++)
        if (plan->origins[i].has_tls)
            return true;
    return false;
}

int load_tls_open(struct load_thread *thread, struct err *err)
{
    static const char *const H1[] = { "http/1.1", NULL }, *const H2[] = { "h2", NULL };
    const struct load_plan   *plan    = thread->shared->plan;
    struct tls_client_options options = {
        .trusts_all = plan->tls.trusts_all,
        .ca         = { .path = plan->tls.ca },
        .identity   = { .cert = { .path = plan->tls.cert }, .key = { .path = plan->tls.key } },
        .alpn       = plan->speech == LOAD_SPEAKS_H2 ? H2 : H1,
    };
    int rc;

    if (!has_tls(plan))
        return 0;
    rc = tls_open(&thread->tls, thread->loop, err);
    return rc == 0 ? tls_client_open(&thread->tls_client, thread->tls, &options, err) : rc;
}

void load_tls_close(struct load_thread *thread)
{
    tls_client_close(thread->tls_client);
    tls_close(thread->tls);
    thread->tls_client = NULL;
    thread->tls        = NULL;
}

static const struct load_origin *origin_of(const struct load_conn *conn)
{
    return &load_plan_of(conn)->origins[conn->origin];
}

bool load_tls_is_wanted(const struct load_conn *conn)
{
    return origin_of(conn)->has_tls;
}

int load_tls_begin(struct load_conn *conn, struct err *err)
{
    struct str        name   = origin_of(conn)->name;
    struct tls_target target = {
        .name = name,
        .key  = load_plan_of(conn)->tls.is_always_full ? STR_NONE : name,
    };

    return tls_connect(&conn->stream, conn->thread->tls_client, &target, err);
}

/* Without a word of the server's on it, it is HTTP/1.1. */
static bool is_other_protocol(const struct load_conn *conn)
{
    const struct tls_info *info = tls_info(&conn->stream);

    return info && load_plan_of(conn)->speech == LOAD_SPEAKS_H2 && strcmp(info->alpn, "h2") != 0;
}

bool load_tls_is_hopeless(const struct load_conn *conn, struct err *err)
{
    struct str name = origin_of(conn)->name;

    if (is_other_protocol(conn)) {
        err_set(err, ERR_UNSUPPORTED, "%.*s does not speak HTTP/2 over TLS (ALPN)", STR_ARG(name));
        return true;
    }
    switch (tls_fault_kind(&conn->stream)) {
    case TLS_WELL:
    case TLS_LEFT: return false;
    default:
        err_set(err, ERR_UNSUPPORTED, "no TLS with %.*s: %s", STR_ARG(name),
                tls_fault(&conn->stream));
        return true;
    }
}
