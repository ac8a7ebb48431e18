/* server/handover.h - from root to the setting `user`: what only root can do has been done (the port
 * is bound), what the user will need is made his, then both processes become him.
 *
 * The server goes first and the supervisor follows when it is told, so that there is no moment in
 * which the supervisor could not signal the server. A server that is started again is the user's
 * from its first instruction, with the sockets that the supervisor holds. So nothing that runs the app,
 * and nothing that starts it again, is root. */
#ifndef SERVER_HANDOVER_H
#define SERVER_HANDOVER_H

struct config;
struct err;
struct supervisor_link;

/* After the sockets are open, before any thread runs. Nothing is done where no user is set, or we are
 * he already. */
int handover(const struct config *config, struct supervisor_link *link, struct err *err);

#endif
