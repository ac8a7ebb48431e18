/* bind/ljson_table.h - what a Lua table is in JSON: by its mark and by its keys. */
#ifndef BIND_LJSON_TABLE_H
#define BIND_LJSON_TABLE_H

#include <lua.h>

enum ljson_mark {
    LJSON_MARK_NONE,
    LJSON_MARK_OBJECT,
    LJSON_MARK_ORDERED, /* an object with an order of its members */
    LJSON_MARK_ARRAY,
    LJSON_MARK_CALLS, /* has a __tojson */
};

/* Pushes the VM's metatable of LJSON_MARK_OBJECT or _ARRAY. */
void ljson_push_mark(lua_State *L, enum ljson_mark mark);

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
