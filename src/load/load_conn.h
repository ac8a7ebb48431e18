/* load/load_conn.h - one connection of a load: keeps as many requests under way as it may, and counts
 * what becomes of each. When it breaks it comes up again: at once if it had got an answer, else after
 * a pause. */
#ifndef LOAD_LOAD_CONN_H
#define LOAD_LOAD_CONN_H

#include <stdint.h>

struct load_conn;
struct load_slot;
struct load_thread;

/* NUMBER among all connections of the load: it decides origin and first request. */
void load_conn_init(struct load_conn *conn, struct load_thread *thread, unsigned number,
                    struct load_slot *slots);
void load_conn_open(struct load_conn *conn);
void load_conn_close(struct load_conn *conn); /* what is under way stays uncounted */

/* An open loop's: sends one request that is due by NOW_NS, then stands in line for another. */
void load_conn_fill_one(struct load_conn *conn, uint64_t now_ns);
/* Fails what has taken too long. */
void load_conn_check(struct load_conn *conn, uint64_t now_ns);

#endif
