#include "server/redirect.h"

#include <stdio.h>
#include <stdlib.h>

#include "http/exchange.h"
#include "http/serve.h"

enum {
    REDIRECT_CONNECTIONS   = 1000, /* at most, of the setting `connections` */
    REDIRECT_KEEP_ALIVE_MS = 5000, /* who was led away has no more to ask */
    HTTPS_PORT             = 443,
    HOST_BYTES_MAX         = 255 + sizeof(":65535"),
};

#define CHALLENGES STR("/.well-known/acme-challenge/")

struct redirect {
    struct http_server *http;
    exchange_fn         app;
    void (*app_refused)(const struct http_refusal *refusal, void *arg);
    void *app_arg;
    char  port[8]; /* ":8443", or empty where browsers take it for granted */
};

/* The Host without its port, which is this one's. */
static struct str name_of(struct str host)
{
    size_t end = host.len;

    while (end > 0 && host.at[end - 1] >= '0' && host.at[end - 1] <= '9')
        end--;
    return end > 0 && host.at[end - 1] == ':' ? str_make(host.at, end - 1) : host;
}

static int give_answer(struct exchange *ex, unsigned status, const struct field *fields,
                       unsigned count, struct str text)
{
    struct answer answer = { .status       = status,
                             .fields       = fields,
                             .field_count  = count,
                             .content_type = STR("text/plain; charset=utf-8") };

    return exchange_answer(ex, &answer, text);
}

/* 308 and not 301, after which clients make a GET of a POST and lose its body. */
static int lead_to_https(struct exchange *ex, const struct redirect *redirect)
{
    struct str name = name_of(ex->request.host);
    size_t room = sizeof("https://") + name.len + sizeof(redirect->port) + ex->request.target.len;
    char  *url  = arena_alloc(&ex->arena, room);
    int    len  = snprintf(url, room, "https://%.*s%s%.*s", STR_ARG(name), redirect->port,
                           STR_ARG(ex->request.target));
    struct field field = { .name = STR("Location"), .value = str_make(url, (size_t)len) };

    return give_answer(ex, 308, &field, 1, STR("This port leads to HTTPS.\n"));
}

static int answer(struct exchange *ex, const struct redirect *redirect)
{
    struct str host = ex->request.host;

    if (host.len == 0 || host.len > HOST_BYTES_MAX)
        return give_answer(ex, 400, NULL, 0, STR("The request names no host to be led to.\n"));
    if (str_is(ex->request.target, STR("*")))
        return give_answer(ex, 400, NULL, 0, STR("This port leads to HTTPS.\n"));
    return lead_to_https(ex, redirect);
}

static void dispatch(struct exchange *ex, void *arg)
{
    const struct redirect *redirect = arg;

    if (str_starts_with(ex->request.path, CHALLENGES)) {
        redirect->app(ex, redirect->app_arg);
        return;
    }
    answer(ex, redirect);
    exchange_work_let_go(ex);
}

/* Who begins with TLS here has the wrong port, and his client does not say so. The rest is scanners. */
static void on_refused(const struct http_refusal *refusal, void *arg)
{
    const struct redirect *redirect = arg;

    if (refusal->kind == REFUSED_HELLO)
        redirect->app_refused(refusal, redirect->app_arg);
}

static void limit(struct http_limits *limits)
{
    if (limits->connections > REDIRECT_CONNECTIONS)
        limits->connections = REDIRECT_CONNECTIONS;
    if (limits->keep_alive_ms > REDIRECT_KEEP_ALIVE_MS)
        limits->keep_alive_ms = REDIRECT_KEEP_ALIVE_MS;
}

struct redirect *redirect_open(const struct http_server_options *options, unsigned port)
{
    struct redirect           *redirect = calloc(1, sizeof(*redirect));
    struct http_server_options own      = *options;
    struct http_limits         limits   = *options->limits;

    if (!redirect)
        return NULL;
    redirect->app         = options->dispatch;
    redirect->app_refused = options->on_refused;
    redirect->app_arg     = options->arg;
    if (port != HTTPS_PORT)
        snprintf(redirect->port, sizeof(redirect->port), ":%u", port);
    limit(&limits);
    own.limits       = &limits;
    own.dispatch     = dispatch;
    own.on_refused   = options->on_refused ? on_refused : NULL;
    own.on_drained   = NULL;
    own.on_handshake = NULL;
    own.tls          = NULL;
    own.arg          = redirect;
    redirect->http   = http_server_open(&own);
    return redirect;
}

void redirect_close(struct redirect *redirect)
{
    if (!redirect)
        return;
    http_server_close(redirect->http);
    free(redirect);
}

struct http_server *redirect_server(const struct redirect *redirect)
{
    return redirect->http;
}
