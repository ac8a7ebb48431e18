/* load/load_protocol.h - what the connections of a load speak, as load_conn sees it. */
#ifndef LOAD_LOAD_PROTOCOL_H
#define LOAD_LOAD_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "load/load_count.h"

struct load_conn;

/* Steps give LOAD_WELL, or the fault that the connection has come to, which counts for what is under way on
 * it. */
struct load_protocol {
    /* Bytes can go both ways. The connection is up as soon as is_ready() says so. */
    enum load_fault (*begin)(struct load_conn *conn);
    bool (*is_ready)(const struct load_conn *conn);
    /* Before that: what the server did not understand; NULL (also of the function): nothing. */
    const char *(*why)(const struct load_conn *conn);
    void (*leave)(struct load_conn *conn); /* also of one that was not begun */

    unsigned (*room)(const struct load_conn *conn); /* requests that may go out besides */
    /* Sends MOST requests at once, or as many as may be. */
    enum load_fault (*fill)(struct load_conn *conn, uint64_t now_ns, unsigned most);
    enum load_fault (*take)(struct load_conn *conn, const char *bytes, size_t len, uint64_t now_ns);
    /* The server has ended its direction in order. */
    void (*end)(struct load_conn *conn, uint64_t now_ns);
    enum load_fault (*resume)(struct load_conn *conn); /* the socket can take more */
    /* Gives up what is under way since before LATE_NS. */
    enum load_fault (*check)(struct load_conn *conn, uint64_t late_ns);
};

#endif
