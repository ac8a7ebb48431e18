/* base/symbols.h - which C function is at an address: of this program by its own table of
 * symbols, static functions too; of libraries what they export. */
#ifndef BASE_SYMBOLS_H
#define BASE_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

struct symbols;

/* NULL: no memory. A program that was stripped has no table, and its functions no names. */
struct symbols *symbols_open(void);
void            symbols_close(struct symbols *symbols); /* NULL is fine */

struct symbol {
    char name[128]; /* "libc.so.6+0x2a0": a library's own affair; "?": nobody knows */
    char file[128]; /* "ljson.c", "libc.so.6"; "": not known */
    bool named;
};
/* What is at ADDRESS. */
void symbols_find(const struct symbols *symbols, uintptr_t address, struct symbol *found);

/* Where this program's function NAME is. False: it has none, or no table. */
bool symbols_range(const struct symbols *symbols, const char *name, uintptr_t *low,
                   uintptr_t *high);

#endif
