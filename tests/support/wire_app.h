/* tests/support/wire_app.h - a process that serves the bare wire on a port of this machine: what http1_app and
 * ws_app have in common. Prints "listening on http://127.0.0.1:PORT". SIGTERM drains it, a second one
 * ends it. */
#ifndef TESTS_SUPPORT_WIRE_APP_H
#define TESTS_SUPPORT_WIRE_APP_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "ev/loop.h"
#include "http/serve.h"
#include "net/addr.h"
#include "net/listener.h"

struct wire_app {
    const char           *name;
    struct loop          *loop;
    struct arena_pool     arenas;
    struct http_server   *server;
    struct listener      *listener;
    struct listener_watch watch;
    struct io             signals;
    unsigned              signal_count;
    void (*on_drain)(struct wire_app *app); /* besides; NULL: nothing */
};

/* --- arguments ------------------------------------------------------------------------------------- */

struct wire_app_number {
    const char *name; /* "--port" */
    uint64_t   *value;
};

/* argv[0] is the name of one of NUMBERS, argv[1] its value; else the process ends. */
static inline void wire_app_take(const struct wire_app *app, const struct wire_app_number *numbers,
                                 size_t count, char **argv)
{
    size_t i = 0;

    while (i < count && strcmp(numbers[i].name, argv[0]) != 0)
        i++;
    if (i < count && str_to_u64(str_of(argv[1]), 1 << 30, numbers[i].value))
        return;
    fprintf(stderr, "%s: %s %s is no option\n", app->name, argv[0], argv[1]);
    exit(2);
}

/* --- signals --------------------------------------------------------------------------------------- */

static int wire_app_signal_fd;

static inline void wire_app_on_signal(int number)
{
    uint64_t one = 1;

    if (write(wire_app_signal_fd, &one, sizeof(one)) < 0)
        _exit(1);
}

static inline void wire_app_on_signal_told(int fd, short what, void *arg)
{
    struct wire_app *app = arg;
    uint64_t         count;

    if (read(fd, &count, sizeof(count)) < 0)
        return;
    listener_watch_stop(&app->watch);
    if (app->signal_count++) {
        loop_break(app->loop);
        return;
    }
    if (app->on_drain)
        app->on_drain(app);
    http_server_drain(app->server);
}

static inline void wire_app_watch_signals(struct wire_app *app)
{
    signal(SIGPIPE, SIG_IGN);
    wire_app_signal_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    io_start_level(&app->signals, app->loop, wire_app_signal_fd, wire_app_on_signal_told, app);
    signal(SIGTERM, wire_app_on_signal);
    signal(SIGINT, wire_app_on_signal);
}

/* --- life ------------------------------------------------------------------------------------------- */

static inline void wire_app_open(struct wire_app *app)
{
    if (loop_open(&app->loop, NULL) < 0)
        exit(1);
    arena_pool_init(&app->arenas, 256);
}

static inline void wire_app_on_accept(int fd, const struct addr *peer, void *arg)
{
    http_server_accept(((struct wire_app *)arg)->server, fd, peer);
}

static inline void wire_app_listen(struct wire_app *app, uint64_t port)
{
    struct addr at;
    struct err  err;
    char        text[ADDR_TEXT_BYTES];

    if (addr_parse_host(&at, "127.0.0.1", (uint16_t)port, &err) < 0 ||
        listener_open(&app->listener, &at, 1, &err) < 0) {
        fprintf(stderr, "%s: %s\n", app->name, err.text);
        exit(1);
    }
    listener_watch_init(&app->watch, app->loop, wire_app_on_accept, NULL, app);
    if (listener_watch_start(&app->watch, listener_fd(app->listener, 0)) < 0)
        exit(1);
    printf("listening on http://%s\n", addr_format(listener_addr(app->listener), text));
    fflush(stdout);
}

/* Until it is over. OPTIONS without loop, arenas and arg, which are APP's and APP. */
static inline void wire_app_run(struct wire_app *app, struct http_server_options options,
                                uint64_t port)
{
    options.loop   = app->loop;
    options.arenas = &app->arenas;
    options.arg    = app;
    app->server    = http_server_open(&options);
    wire_app_watch_signals(app);
    wire_app_listen(app, port);
    loop_run(app->loop);
}

/* What the work has is to go before wire_app_close(), and after this. */
static inline void wire_app_stop(struct wire_app *app)
{
    listener_watch_stop(&app->watch);
    http_server_close(app->server);
    listener_close(app->listener);
    io_stop(&app->signals);
    close(wire_app_signal_fd);
}

static inline void wire_app_close(struct wire_app *app)
{
    arena_pool_fini(&app->arenas);
    loop_close(app->loop);
}

#endif
