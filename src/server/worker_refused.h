/* server/worker_refused.h - what a worker's wire refused by itself: counted, and told in the log. */
#ifndef SERVER_WORKER_REFUSED_H
#define SERVER_WORKER_REFUSED_H

struct http_refusal;

/* As on_refused() of http/options.h; ARG is the worker. */
void worker_refused(const struct http_refusal *refusal, void *arg);

#endif
