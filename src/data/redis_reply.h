/* data/redis_reply.h - a reply of Redis as one run of bytes: nodes in the order in which they came,
 * an array before its elements. Made by data/redis_reader, read by bind/. */
#ifndef DATA_REDIS_REPLY_H
#define DATA_REDIS_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct buf;

enum reply_kind {
    REPLY_TEXT,    /* any bytes */
    REPLY_STATUS,  /* "OK" */
    REPLY_FAULT,   /* "WRONGTYPE Operation against a key ..." */
    REPLY_INTEGER, /* 64 bits */
    REPLY_NIL,
    REPLY_ARRAY, /* `number` nodes follow, each with all that is inside it */
};

struct reply_node {
    enum reply_kind kind;
    int64_t         number; /* INTEGER: its value; ARRAY: elements */
    struct str      text;   /* TEXT, STATUS, FAULT: bytes of the reply's buffer */
};

/* For REPLY_ARRAY TEXT stands for nothing. A buffer that is full sets `failed`. */
void reply_add(struct buf *to, enum reply_kind kind, int64_t number, struct str text);

/* Takes the first node off *REST. False: it is empty. */
bool reply_next(struct str *rest, struct reply_node *node);
/* The same, and all that is inside of it. */
bool reply_skip(struct str *rest);

/* The first word of a fault: "WRONGTYPE". */
struct str reply_fault_word(struct str fault);

#endif
