/* data/sqlite_db.h - the databases that the process has open; any thread. */
#ifndef DATA_SQLITE_DB_H
#define DATA_SQLITE_DB_H

struct err;
struct inbox;
struct lane;
struct sqlite;
struct sqlite_db;

/* What the process has open. LANE is borrowed: its bound should leave room for the connections of
 * all databases together. */
int sqlite_open(struct sqlite **out, struct lane *lane, struct err *err);
/* Before the loops are closed; on either side of pool_close(). Later calls are refused; what is open
 * closes with its last call or user. */
void sqlite_close(struct sqlite *sqlite);

struct sqlite_options {
    const char *path;            /* absolute, or ":memory:" with a name or without */
    unsigned    connections_max; /* readers and writer; at least 2 */
    unsigned    waiting_max;     /* calls that wait for a connection; beyond it: ERR_BUSY */
};

/* The database of that path, opened before or new: the last one to open it sets the bounds. Does
 * not touch the file: what is wrong with it shows in the first call. */
int sqlite_db_open(struct sqlite_db **out, struct sqlite *sqlite,
                   const struct sqlite_options *options, struct err *err);
/* Lets go. The last one's connections close on the lane, once no call and no lease is left; a
 * database in memory is gone then. HOME outlives that (ev/pool.h). */
void sqlite_db_close(struct sqlite_db *db, struct inbox *home);

/* For data/sqlite*.c. A call and a lease each hold a reference of their own. */
void sqlite_db_ref(struct sqlite_db *db);
/* The last one closes the connections on the lane. Not under the lock, unless another one is left. */
void sqlite_db_unref(struct sqlite_db *db, struct inbox *home);

#endif
