#include "data/sqlite_seat.h"

#include <stdlib.h>

#include "data/sqlite_impl.h"

void sqlite_seat_init(struct seat *seat, struct sqlite_db *db, bool writes)
{
    *seat = (struct seat){ .db = db, .writes = writes };
    list_init(&seat->link);
    list_init(&seat->all);
}

void sqlite_seat_put_back(struct seat *seat)
{
    if (!seat->writes && !seat->lease)
        list_prepend(&seat->db->free_readers, &seat->link);
}

/* A call may go into the lane twice: its job is idle again by then. */
static bool submit(struct sqlite_call *call)
{
    call->ran = false;
    return sqlite_submit(call->db->sqlite, &call->job, call->home);
}

bool sqlite_seat_take(struct seat *seat, struct sqlite_call *call)
{
    call->waiting = false;
    call->seat    = seat;
    seat->running = call;
    if (submit(call))
        return true;
    call->seat    = NULL;
    seat->running = NULL;
    return false;
}

struct sqlite_call *sqlite_seat_take_waiting(struct sqlite_db *db, struct list *queue)
{
    struct list *node = list_take_first(queue);

    if (!node)
        return NULL;
    db->waiting--;
    return container_of(node, struct sqlite_call, link);
}

static struct list *queue_of(struct sqlite_db *db, const struct sqlite_call *call)
{
    if (call->lease)
        return &call->lease->queue;
    return call->writes ? &db->write_queue : &db->read_queue;
}

static struct seat *new_reader(struct sqlite_db *db)
{
    struct seat *seat = db->reader_count < db->readers_max ? malloc(sizeof(*seat)) : NULL;

    if (!seat)
        return NULL;
    sqlite_seat_init(seat, db, false);
    list_append(&db->readers, &seat->all);
    db->reader_count++;
    return seat;
}

struct seat *sqlite_seat_find(struct sqlite_db *db, const struct sqlite_call *call)
{
    struct list *node;
    struct seat *seat = &db->writer;

    if (call->lease)
        seat = call->lease->seat;
    else if (!call->writes)
        return (node = list_take_first(&db->free_readers)) ? container_of(node, struct seat, link)
                                                           : new_reader(db);
    else if (seat->lease)
        return NULL;
    return seat->running ? NULL : seat;
}

void sqlite_seat_start_waiting(struct sqlite_db *db, struct sqlite_call *call)
{
    list_append(queue_of(db, call), &call->link);
    call->waiting = true;
    db->waiting++;
}

void sqlite_seat_stop_waiting(struct sqlite_db *db, struct sqlite_call *call)
{
    list_remove(&call->link);
    call->waiting = false;
    db->waiting--;
}
