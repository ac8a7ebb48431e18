/* server/worker_tls.h - a worker's TLS server: made of the process's certificates, and made anew when they
 * have changed. Connections keep the one that they began with. */
#ifndef SERVER_WORKER_TLS_H
#define SERVER_WORKER_TLS_H

struct err;
struct tls_files;
struct worker;

/* Before the worker's thread runs. Nothing is done in a server of plain HTTP. */
int  worker_tls_open(struct worker *worker, struct err *err);
void worker_tls_close(struct worker *worker); /* its thread has ended, its connections are closed */

/* The control thread: FILES from the next connection on. */
void worker_tls_send(struct worker *worker, struct tls_files *files);

#endif
