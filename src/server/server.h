/* server/server.h - the process that serves: opens what is shared, starts the workers, loads the
 * app, then sits on the control loop: signals, reloads, the watchdog's findings, the end. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

struct config;
struct supervisor_link;

/* Serves until a signal ends it; the exit status. Errors at start are said on standard error. */
int server_run(struct config *config, struct supervisor_link *link);

#endif
