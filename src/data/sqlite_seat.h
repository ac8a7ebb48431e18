/* data/sqlite_seat.h - who sits where, and who waits for a seat. For data/sqlite*.c; all locked. */
#ifndef DATA_SQLITE_SEAT_H
#define DATA_SQLITE_SEAT_H

#include <stdbool.h>

struct list;
struct seat;
struct sqlite_call;
struct sqlite_db;

void sqlite_seat_init(struct seat *seat, struct sqlite_db *db, bool writes);
/* The seat that CALL may take now; NULL: it has to wait. */
struct seat *sqlite_seat_find(struct sqlite_db *db, const struct sqlite_call *call);
/* False: the lane is full; the seat is still nobody's, and to be put back. */
bool sqlite_seat_take(struct seat *seat, struct sqlite_call *call);
/* For the next one who looks for one. */
void sqlite_seat_put_back(struct seat *seat);
void sqlite_seat_start_waiting(struct sqlite_db *db, struct sqlite_call *call);
/* The first of a queue, which waits no more; NULL: it is empty. */
struct sqlite_call *sqlite_seat_take_waiting(struct sqlite_db *db, struct list *queue);
void                sqlite_seat_stop_waiting(struct sqlite_db *db, struct sqlite_call *call);

#endif
