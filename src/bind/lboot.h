/* bind/lboot.h - an app from its file to a site that can serve: app.lua runs, then lua/srv/boot.lua
 * makes the databases ready and builds the site. */
#ifndef BIND_LBOOT_H
#define BIND_LBOOT_H

#include "bind/script.h"
#include "ev/loop.h"

struct lboot;
struct lsite;

/* SITE stands ready; or it is NULL, and WHY has message, file, line and traceback (borrowed for the
 * call). Comes once, from the loop's turn, unless the load was called off. */
typedef void (*lboot_fn)(struct lsite *site, const char *why, void *arg);

/* Embedded in whoever loads; belongs to the loop's thread. */
struct lboot {
    struct vm   *vm;
    const char  *app_file; /* absolute; "": no app.lua, the folder is served as it is */
    lboot_fn     on_done;  /* NULL once it was called, or called off */
    void        *arg;
    struct later begin;
};

/* Begins in the loop's next round, so that the caller has first returned. VM was opened by
 * script_open() with an env that names LOOP. */
void lboot_start(struct lboot *boot, struct loop *loop, struct vm *vm, const char *app_file,
                 lboot_fn on_done, void *arg);
/* on_done does not come any more. The tasks of the VM are the caller's to cancel. Idempotent. */
void lboot_call_off(struct lboot *boot);

#endif
