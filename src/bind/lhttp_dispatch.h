/* bind/lhttp_dispatch.h - a request's way through Lua: its call, its tasks, its answer. */
#ifndef BIND_LHTTP_DISPATCH_H
#define BIND_LHTTP_DISPATCH_H

struct exchange;
struct lhttp;
struct lsite;

/* The exchange_fn; ARG is the struct lhttp. */
void lhttp_dispatch(struct exchange *ex, void *arg);

/* Dispatches to SITE whichever serves: for srv.test. */
void lhttp_dispatch_to(struct lhttp *http, struct lsite *site, struct exchange *ex);

#endif
