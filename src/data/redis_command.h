/* data/redis_command.h - commands as the wire has them, and which of them may go where. */
#ifndef DATA_REDIS_COMMAND_H
#define DATA_REDIS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct buf;

enum redis_kind {
    REDIS_PLAIN,    /* may stand in a pipeline that others share */
    REDIS_BLOCKING, /* may wait at the server: needs a connection of its own */
    REDIS_REFUSED,  /* changes what the connection is, for all who share it */
};

/* WORD is the command in any case, ARGUMENT the word behind it or empty; BLOCKS tells whether any
 * argument is the word BLOCK (XREAD). For REFUSED *WHY (NULL is fine) becomes a constant: what to do
 * instead. */
enum redis_kind redis_command_kind(struct str word, struct str argument, bool blocks,
                                   const char **why);
/* MULTI, EXEC, WATCH and UNWATCH: refused alone, for r:multi says them. */
bool redis_command_is_multi(struct str word);
/* XREAD and XREADGROUP wait only when they are told BLOCK. */
bool redis_command_may_block(struct str word);

/* One command is its head and COUNT words; a bound that was hit sets `failed`. */
void redis_add_head(struct buf *to, size_t count);
void redis_add_word(struct buf *to, struct str word);

#endif
