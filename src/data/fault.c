#include "data/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fault_set(struct fault *fault, const char *code, const char *format, ...)
{
    va_list args;

    fault_clear(fault);
    fault->code = code;
    va_start(args, format);
    vsnprintf(fault->text, sizeof(fault->text), format, args);
    va_end(args);
    for (char *at = fault->text; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
    return -1;
}

enum {
    EXCERPT_BYTES = 200, /* of a statement */
    BEFORE_BYTES  = 100, /* of them before the place in a longer one */
};

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

int fault_set_in(struct fault *fault, const char *code, const char *message, struct str sql,
                 size_t at)
{
    size_t from = 0, to;

    sql = str_trim(sql);
    if (sql.len > EXCERPT_BYTES && at > EXCERPT_BYTES - BEFORE_BYTES && at <= sql.len)
        from = at - BEFORE_BYTES;
    while (from && !begins_character(sql.at[from]))
        from--;
    to = sql.len - from > EXCERPT_BYTES ? from + EXCERPT_BYTES : sql.len;
    while (to < sql.len && to > from && !begins_character(sql.at[to]))
        to--;
    return fault_set(fault, code, "%s, in: %s%.*s%s", message, from ? "..." : "", (int)(to - from),
                     sql.at + from, to < sql.len ? "..." : "");
}

const char *fault_told(const char *code)
{
    static const struct {
        const char *code, *sentence;
    } told[] = {
        { "unique", "this exists already" },
        { "foreign_key", "this refers to what does not exist, or is still referred to" },
        { "check", "a value is not allowed here" },
        { "conflict", "others have changed this meanwhile: try again" },
    };

    for (size_t i = 0; i < ARRAY_LEN(told); i++)
        if (strcmp(told[i].code, code) == 0)
            return told[i].sentence;
    return NULL;
}
