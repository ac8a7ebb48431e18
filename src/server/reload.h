/* server/reload.h - which generation loads, which one serves (CORE, decision 13): a state machine
 * without threads or files, so that every order of events can be tested.
 *
 * An edit asks worker after worker to load the new version beside the one that serves. When all
 * have it, all switch; if one cannot load it, all drop it and the old one goes on. An edit that
 * comes while a version loads calls that one off. Belongs to the control loop's thread. */
#ifndef SERVER_RELOAD_H
#define SERVER_RELOAD_H

#include <stdbool.h>

struct reload_ops {
    void (*load)(unsigned worker, unsigned version, void *arg);    /* answers by loaded or failed */
    void (*discard)(unsigned worker, unsigned version, void *arg); /* loading or loaded: drop it */
    void (*commit)(unsigned version, void *arg);                   /* every worker has it: switch */
    void (*refused)(unsigned version, const char *why, void *arg); /* the old one goes on */
};

struct reload {
    const struct reload_ops *ops;
    void                    *arg;
    unsigned                 worker_count;
    unsigned                 current; /* version that serves; 0: none yet */
    unsigned                 latest;  /* last version number given out */
    unsigned                 loading; /* version under way; 0: none */
    unsigned                 asked;   /* workers that were asked for it so far */
};

void reload_init(struct reload *reload, unsigned worker_count, const struct reload_ops *ops,
                 void *arg);

/* The first load, an edit, or SIGHUP. */
void reload_begin(struct reload *reload);

/* A worker's answers. Those for a version that was called off are ignored. */
void reload_loaded(struct reload *reload, unsigned worker, unsigned version);
void reload_failed(struct reload *reload, unsigned worker, unsigned version, const char *why);

static inline bool reload_is_under_way(const struct reload *reload)
{
    return reload->loading != 0;
}

#endif
