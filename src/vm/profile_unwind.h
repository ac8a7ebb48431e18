/* vm/profile_unwind.h - a reader of unwind tables (.eh_frame: DWARF 5, section 6.4, and the LSB's chapter
 * on exception frames): from an address to its function and to where the caller's registers are.
 *
 * Only what compilers write for plain functions on x86-64. Async-signal-safe: it reads what is mapped. */
#ifndef VM_PROFILE_UNWIND_H
#define VM_PROFILE_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

enum { UNWIND_RBP = 6, UNWIND_RSP = 7 }; /* as DWARF counts them */

struct unwind_reader {
    const uint8_t *at, *end;
};

struct unwind_entry {
    uintptr_t            function;
    struct unwind_reader first, rest; /* instructions: those of all its kind, then its own */
    uint64_t             code_unit;
    int64_t              data_unit;
    bool                 has_lengths;    /* "z": its own data begin with their length */
    bool                 is_interpreter; /* LuaJIT's */
};

struct unwind_rules {
    uint64_t base;       /* UNWIND_RSP or UNWIND_RBP; the frame is at its value ... */
    int64_t  offset;     /* ... plus this; right below is the return address */
    bool     rbp_saved;  /* at the frame ... */
    int64_t  rbp_offset; /* ... plus this */
};

/* Whether TABLE (.eh_frame_hdr) is of the usual kind; the others cannot be read. */
bool unwind_is_usual(const uint8_t *table);

/* False: PC is in no function of TABLE's. */
bool unwind_find(struct unwind_entry *entry, const uint8_t *table, uintptr_t pc);
/* With PC in ENTRY's function. False: in a way that is not known here. */
bool unwind_rules(struct unwind_rules *rules, const struct unwind_entry *entry, uintptr_t pc);

#endif
