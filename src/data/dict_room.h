/* data/dict_room.h - the memory of one shard of a shared dictionary: a region of its own, in which blocks are
 * given out and taken back.
 *
 * What malloc() holds for a dictionary whose values come and go in many sizes, by many threads, grows to
 * several times what is in it. Here nothing lies outside the region; where its free parts are too small
 * for a block, whoever wants it gives others back until neighbours have become one. When all are back, it is
 * one free part again. Pages that were never used take no memory. Guarded by the shard's lock. */
#ifndef DATA_DICT_ROOM_H
#define DATA_DICT_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

enum {
    DICT_ROOM_ALIGN = 16,
    /* What a region takes besides its blocks. */
    DICT_ROOM_EDGES = 16,

    DICT_ROOM_EXACT = 64, /* lists of one size each: 16 bytes, 32, ... */
    DICT_ROOM_LISTS = DICT_ROOM_EXACT + 4 * 32,
};

struct dict_room {
    char       *at;    /* owned: a mapping */
    size_t      bytes; /* for blocks, from at + 8 on */
    size_t      top;   /* of these, what was given out so far; what lies beyond is free */
    uint64_t    has[DICT_ROOM_LISTS / 64]; /* lists that are not empty */
    struct list free[DICT_ROOM_LISTS];     /* by size */
};

/* BYTES is a multiple of DICT_ROOM_ALIGN. False: no memory. */
bool dict_room_init(struct dict_room *room, size_t bytes);
void dict_room_fini(struct dict_room *room); /* with all that is in it */

/* What a block of BYTES takes of the region. */
size_t dict_room_cost(size_t bytes);
/* NULL: no free part is large enough. At most a cost of room->bytes can ever be had. */
void *dict_room_take(struct dict_room *room, size_t bytes);
void  dict_room_give_back(struct dict_room *room, void *block);

#endif
