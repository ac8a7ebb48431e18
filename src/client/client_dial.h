/* client/client_dial.h - one more connection for who wants it: dialled, set up (client/client_setup.h), counted. */
#ifndef CLIENT_CLIENT_DIAL_H
#define CLIENT_CLIENT_DIAL_H

#include "client/client_conn.h"

/* WANT hears by done(); until then it is `dialling`. 0, or -1: there is no memory, see `fault`. */
int client_dial_start(struct client_want *want);
/* It is not wanted any more. */
void client_dial_cancel(struct client_want *want);

/* WANT comes to nothing: -1, for who returns it. */
int client_dial_fail(struct client_want *want, const char *fault, int rc, const char *text);

#endif
