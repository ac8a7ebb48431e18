/* http/h1_answered.h - answers that have ended, but are not written to their last byte yet: they wait
 * in the connection's output, and hear when they have gone. */
#ifndef HTTP_H1_ANSWERED_H
#define HTTP_H1_ANSWERED_H

#include "http/conn.h"
#include "http/h1_exchange.h"

/* The answer of EX has ended; once it is written, ex->work hears so and the wire lets go of it. */
void h1_answered(struct conn *conn, struct exchange *ex);
/* The last byte has gone. Once, however often it is said. */
void h1_answered_sent(struct h1_exchange *h1);

/* Writes what is pending, and tells whose last byte went. True: all of it has gone. */
bool h1_answered_flush(struct conn *conn);
/* The connection dies: who waits hears WHY. */
void h1_answered_lost(struct conn *conn, enum gone_why why);
/* EX too, which is open: its answer may have gone already. */
void h1_answered_lose(struct conn *conn, struct exchange *ex, enum gone_why why);

#endif
