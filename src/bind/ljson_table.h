/* bind/ljson_table.h - what a Lua table is in JSON: by its mark and by its keys. And null. */
#ifndef BIND_LJSON_TABLE_H
#define BIND_LJSON_TABLE_H

#include <stdbool.h>

#include <lua.h>

enum {
    LJSON_DEPTH     = 64,  /* of what is decoded, unless the caller says otherwise */
    LJSON_DEPTH_MAX = 256, /* of what is encoded, and the most a caller may allow */
};

void ljson_push_null(lua_State *L);
bool ljson_is_null(lua_State *L, int index);

enum ljson_mark {
    LJSON_MARK_NONE,
    LJSON_MARK_OBJECT,
    LJSON_MARK_ORDERED, /* an object with an order of its members */
    LJSON_MARK_ARRAY,
    LJSON_MARK_CALLS, /* has a __tojson */
};

/* Pushes the VM's metatable of LJSON_MARK_OBJECT or _ARRAY. */
void ljson_push_mark(lua_State *L, enum ljson_mark mark);
/* Pushes a metatable of LJSON_MARK_ORDERED whose order is the list at INDEX. */
void ljson_push_order(lua_State *L, int index);

/* Marks the table at INDEX: what srv hands out is encoded as what it was, empty or not. */
void ljson_mark_object(lua_State *L, int index);
void ljson_mark_array(lua_State *L, int index);

/* Of the metatable on top of the stack; with LJSON_MARK_ORDERED the order is pushed. */
enum ljson_mark ljson_table_mark(lua_State *L);

struct ljson_shape {
    unsigned count;  /* of keys that are whole numbers from 1 on */
    unsigned last;   /* the largest of them */
    unsigned others; /* of all other keys */
};

/* Walks all keys of the table at INDEX. It is a sequence when others is 0 and last is count. */
struct ljson_shape ljson_table_shape(lua_State *L, int index);

#endif
