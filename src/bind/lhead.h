/* bind/lhead.h - status and fields of an answer as Lua sets them: checked when they are set, so that
 * nothing can be injected and the error names the line. */
#ifndef BIND_LHEAD_H
#define BIND_LHEAD_H

#include <stdbool.h>

#include <lua.h>

#include "base/str.h"

struct answer;
struct condition_validators;
struct err;
struct field;
struct lcall;

/* Fills what of the head is the call's: status, fields, Content-Type. */
void lhead_fill(const struct lcall *call, struct answer *answer);

/* VALUE of the first field NAME (any case), or at NULL. */
struct str lhead_get(const struct lcall *call, struct str name);
/* Content-Type, or what the kind that is recorded has by itself. */
struct str lhead_type(const struct lcall *call);
/* Adds those of NAMES (a list) to Vary that are on none of its lines. */
int lhead_add_vary(struct lcall *call, struct str names, struct err *err);
/* In place of all fields of that name. 0, or ERR_INVALID. */
int  lhead_set(struct lcall *call, struct str name, struct str value, struct err *err);
int  lhead_add(struct lcall *call, struct str name, struct str value, struct err *err);
void lhead_remove(struct lcall *call, struct str name);

/* NAME will stand behind the body. */
void lhead_note_trailer(struct lcall *call, struct str name);
/* The field Trailer, with all that were noted (RFC 9110, 6.6.2). */
void lhead_add_trailer(struct lcall *call);

/* The table at INDEX: name to string, number, array (a line each) or false (removes). */
int lhead_set_table(struct lcall *call, lua_State *L, int index, struct err *err);
/* Whether both may go on the wire, and the name is not the server's own. */
bool lhead_is_sound(struct str name, struct str value);
/* A whole number from 200 to 599. */
int lhead_set_status(struct lcall *call, lua_State *L, int index, struct err *err);

/* What the validators on the answer make of it (RFC 9110, 13.2.2): 304, 412, or 0. */
unsigned lhead_condition(const struct lcall *call);
/* Makes that the status. A 412 is about this request alone, so what lets caches keep the answer goes. */
void                        lhead_take_condition(struct lcall *call, unsigned status);
struct condition_validators lhead_validators(const struct lcall *call);

/* For lists of fields (bind/lhead_list): whether one may be listed; room for MORE; puts in one that was
 * looked at, whose texts live as long as the call; whether one of the first COUNT is called NAME. */
int  lhead_check_listed(const struct field *field, struct err *err);
int  lhead_reserve(struct lcall *call, unsigned more, struct err *err);
void lhead_append_checked(struct lcall *call, const struct field *field);
/* All COUNT of FIELDS, which were looked at. */
int  lhead_add_checked(struct lcall *call, const struct field *fields, unsigned count,
                       struct err *err);
bool lhead_has(const struct lcall *call, struct str name, unsigned count);
/* The call of the view at 1; raises when its head is out. */
struct lcall *lhead_check_open(lua_State *L);

/* Adds `status`, `field`, `append`, `vary` and their like to the module on top. */
void lhead_register(lua_State *L);

#endif
