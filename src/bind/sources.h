/* bind/sources.h - files and folders that the app is made of besides its code and views: folders of
 * migrations that have another name, what it names by srv.watch(). Whoever looks for edits asks.
 *
 * One for the process, and a path once named stays. Any thread. */
#ifndef BIND_SOURCES_H
#define BIND_SOURCES_H

#include <stdbool.h>

struct err;
struct sources;

enum { SOURCES_MAX = 256 }; /* paths */

int sources_open(struct sources **out, struct err *err);
/* NULL is fine. */
void sources_close(struct sources *sources);

/* PATH is absolute. False: there are too many, or no memory. SOURCES NULL: nobody looks. */
bool sources_add(struct sources *sources, const char *path);

/* Whether PATH is one of them, lies in one, or is a folder above one. */
bool sources_touch(struct sources *sources, const char *path);

#endif
