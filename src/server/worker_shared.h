/* server/worker_shared.h - what the process lends to each worker, and what workers report to it. */
#ifndef SERVER_WORKER_SHARED_H
#define SERVER_WORKER_SHARED_H

#include "ev/inbox.h"

struct chunks;
struct config;
struct lend;
struct log;
struct tls_certs;
struct worker;

enum worker_report_kind {
    REPORT_LOADED,  /* `version` stands ready beside the current one */
    REPORT_FAILED,  /* it does not load: `text` has file, line and traceback */
    REPORT_DRAINED, /* no connection and no generation is left */
};

struct worker_report {
    enum worker_report_kind kind;
    unsigned                worker;
    unsigned                version;
    const char             *text; /* FAILED only; borrowed for the call */
};

/* What the process lends to each of its workers; outlives them. */
struct worker_shared {
    const struct config *config;
    struct log          *log;
    const struct lend   *lend;
    struct chunks       *chunks;
    struct tls_certs    *certs;   /* NULL: plain HTTP */
    struct inbox        *control; /* where reports go */
    struct worker      **workers; /* all of them: connections are passed on */
    unsigned             worker_count;
    unsigned             port; /* the one that was taken; 0: a Unix path */
    /* On the control thread. */
    void (*on_report)(const struct worker_report *report, void *arg);
    void *arg;
};

enum { WORKER_LABEL_BYTES = 256 }; /* of what a worker runs: "GET /users/:id" */

#endif
