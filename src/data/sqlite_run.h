/* data/sqlite_run.h - a call on the pool. For data/sqlite.c. */
#ifndef DATA_SQLITE_RUN_H
#define DATA_SQLITE_RUN_H

struct sqlite_call;

/* On a thread of the pool, unlocked: does what CALL asks for, on its seat's connection. */
void sqlite_run(struct sqlite_call *call);

#endif
