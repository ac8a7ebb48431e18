/* load/load_h2.h - HTTP/2 on a connection of a load: as many streams under way as the plan and the server
 * allow. */
#ifndef LOAD_LOAD_H2_H
#define LOAD_LOAD_H2_H

#include "load/load_protocol.h"

struct load_thread;

extern const struct load_protocol LOAD_H2;

/* What streams the thread has made goes; its connections have left. */
void load_h2_free_streams(struct load_thread *thread);

#endif
