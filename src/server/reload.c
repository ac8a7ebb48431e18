#include "server/reload.h"

void reload_init(struct reload *reload, unsigned worker_count, const struct reload_ops *ops,
                 void *arg)
{
    *reload = (struct reload){ .ops = ops, .arg = arg, .worker_count = worker_count };
}

/* The workers load one after the other: the first is the trial, and a stall is never common. */
static void ask_next(struct reload *reload)
{
    reload->ops->load(reload->asked++, reload->loading, reload->arg);
}

static void call_off(struct reload *reload)
{
    unsigned version = reload->loading;

    reload->loading = 0;
    for (unsigned worker = 0; worker < reload->asked; worker++)
        reload->ops->discard(worker, version, reload->arg);
}

void reload_begin(struct reload *reload)
{
    if (reload->loading)
        call_off(reload);
    reload->loading = ++reload->latest;
    reload->asked   = 0;
    ask_next(reload);
}

void reload_loaded(struct reload *reload, unsigned worker, unsigned version)
{
    if (version != reload->loading || worker + 1 != reload->asked)
        return;
    if (reload->asked < reload->worker_count) {
        ask_next(reload);
        return;
    }
    reload->current = version;
    reload->loading = 0;
    reload->ops->commit(version, reload->arg);
}

void reload_failed(struct reload *reload, unsigned worker, unsigned version, const char *why)
{
    if (version != reload->loading || worker + 1 != reload->asked)
        return;
    call_off(reload);
    reload->ops->refused(version, why, reload->arg);
}
