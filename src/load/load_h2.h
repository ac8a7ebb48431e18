/* load/load_h2.h - HTTP/2 on a connection of a load: as many streams under way as the plan and the server
 * allow. */
#ifndef LOAD_LOAD_H2_H
#define LOAD_LOAD_H2_H

#include "load/load_protocol.h"

struct load_thread;

extern const struct load_protocol LOAD_H2;

/* What the connections of a thread share: streams that have ended, memory of sessions. */
void load_h2_open(struct load_thread *thread);
void load_h2_close(struct load_thread *thread); /* its connections have left */

#endif
