/* load/load_tls.h - TLS on the connections of a load: what a thread has for it, and how a handshake ends. */
#ifndef LOAD_LOAD_TLS_H
#define LOAD_LOAD_TLS_H

#include <stdbool.h>

#include "net/tls.h"

struct err;
struct load_conn;
struct load_thread;

/* Nothing, if no origin has it. 0, or an error that names a file. */
int  load_tls_open(struct load_thread *thread, struct err *err);
void load_tls_close(struct load_thread *thread); /* its streams are gone; idempotent */

bool load_tls_is_wanted(const struct load_conn *conn);
/* Of a connected stream. */
int load_tls_begin(struct load_conn *conn, struct err *err);

/* The server's side of the handshake is wrong in a way that will not go away by trying again: ERR says
 * how. */
bool load_tls_is_hopeless(const struct load_conn *conn, struct err *err);

#endif
