/* bind/ldict_object.h - a shared dictionary as Lua holds it: arguments of its methods, values in and
 * out. For ldict.c and ldict_lease.c. */
#ifndef BIND_LDICT_OBJECT_H
#define BIND_LDICT_OBJECT_H

#include <stdint.h>

#include <lua.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/str.h"
#include "data/dict_value.h"

struct dict;

#define LDICT_METATABLE "srv.Shared"

enum { LDICT_READERS = 4 }; /* calls inside each other */

/* One for each VM: upvalue 1 of every method. */
struct ldict_own {
    struct buf written[2]; /* values on their way into a dictionary; old and new */
    /* Values on their way into Lua. While one is being made there, a finalizer may read another. */
    struct buf  read[LDICT_READERS];
    unsigned    readers;
    uint64_t    slice;  /* in which `readers` counts: an error does not count down */
    struct list leases; /* struct llease that are held (bind/ldict_lease.c) */
};

void              ldict_push_own(lua_State *L);
struct ldict_own *ldict_own(lua_State *L);

struct ldict {
    struct dict *dict; /* the process's */
};

/* All of these raise, and blame the caller's line. WHERE begins the message: "shared:get". */
struct ldict *ldict_check(lua_State *L);
struct str    ldict_check_key(lua_State *L, const char *where); /* at 2 */
/* Milliseconds of a number of seconds or a text like "5m"; 0 when there is none. */
uint64_t ldict_check_ttl(lua_State *L, int index, const char *where);
/* The same of how long to wait: UINT64_MAX when there is none, and 0 is a time. */
uint64_t ldict_check_timeout(lua_State *L, int index, const char *where);
/* The value at INDEX, not nil; its bytes are valid until the next call with the same TO. It is only
 * begun, and to->failed is set, where it is larger than what DICT could keep. */
struct dict_value ldict_check_value(lua_State *L, int index, const struct dict *dict,
                                    const char *where, struct buf *to);

/* The one place where the time of dictionaries is read. */
uint64_t ldict_now_ms(lua_State *L);

/* Pushes the value under KEY, or nil; 1. */
int ldict_push_value(lua_State *L, struct ldict_own *own, struct dict *dict, struct str key);

#endif
