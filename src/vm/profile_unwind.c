#include "vm/profile_unwind.h"

#include <string.h>

enum { KEPT_MAX = 8 };

/* How pointers are encoded (LSB, exception frames): the one way in which linkers and compilers do it. */
enum {
    AS_PCREL_SDATA4   = 0x1b,
    AS_UDATA4         = 0x03,
    AS_DATAREL_SDATA4 = 0x3b,
};

bool unwind_is_usual(const uint8_t *table)
{
    return table[0] == 1 && table[1] == AS_PCREL_SDATA4 && table[2] == AS_UDATA4 &&
           table[3] == AS_DATAREL_SDATA4;
}

/* --- reading ---------------------------------------------------------------------------------------- */

static uint32_t read_u32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static int32_t read_s32(const uint8_t *at)
{
    return (int32_t)read_u32(at);
}

/* A number that is BYTES long, little end first. */
static uint32_t take_number(struct unwind_reader *reader, unsigned bytes)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < bytes && reader->at < reader->end; i++)
        value |= (uint32_t)*reader->at++ << (8 * i);
    return value;
}

static uint64_t take_uleb(struct unwind_reader *reader)
{
    uint64_t value = 0;

    for (unsigned shift = 0; reader->at < reader->end && shift < 64; shift += 7) {
        uint8_t byte = *reader->at++;

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            break;
    }
    return value;
}

static int64_t take_sleb(struct unwind_reader *reader)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t  byte  = 0;

    while (reader->at < reader->end && shift < 64) {
        byte = *reader->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80))
            break;
    }
    if ((byte & 0x40) && shift < 64)
        value |= ~UINT64_C(0) << shift;
    return (int64_t)value;
}

/* --- a function's entry ------------------------------------------------------------------------------- */

/* The last entry of the table that begins at or before PC; NULL: none. */
static const uint8_t *find_record(const uint8_t *table, uintptr_t pc)
{
    const uint8_t *rows = table + 12;
    uint32_t       low = 0, high = read_u32(table + 8);

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if ((uintptr_t)table + (intptr_t)read_s32(rows + 8 * (size_t)middle) <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? NULL : table + read_s32(rows + 8 * (size_t)(low - 1) + 4);
}

/* What all entries of one kind have in common. False: not one of the usual kind. LuaJIT's interpreter is
 * the only code with a personality routine ("P") that has no data for it ("L"), be it linked in or the
 * distribution's. */
static bool read_kind(struct unwind_entry *entry, const uint8_t *kind)
{
    const char          *letters = (const char *)kind + 9;
    struct unwind_reader reader  = { kind + 9 + strlen(letters) + 1, kind + 4 + read_u32(kind) };
    bool                 usual   = false;

    entry->code_unit = take_uleb(&reader);
    entry->data_unit = take_sleb(&reader);
    take_uleb(&reader); /* the column of the return address */
    entry->has_lengths    = letters[0] == 'z';
    entry->is_interpreter = strcmp(letters, "zPR") == 0;
    if (entry->has_lengths)
        take_uleb(&reader);
    for (const char *letter = letters; *letter; letter++) {
        if (*letter == 'R')
            usual = take_number(&reader, 1) == AS_PCREL_SDATA4;
        else if (*letter == 'P' || *letter == 'L')
            reader.at += *letter == 'P' ? 5 : 1; /* encoding and address; encoding */
        else if (*letter != 'z')
            return false; /* "S": a signal's frame */
    }
    entry->first = reader;
    return usual;
}

bool unwind_find(struct unwind_entry *entry, const uint8_t *table, uintptr_t pc)
{
    const uint8_t *record = find_record(table, pc);

    if (!record || !read_kind(entry, record + 4 - read_u32(record + 4)))
        return false;
    entry->function = (uintptr_t)(record + 8) + (uintptr_t)(intptr_t)read_s32(record + 8);
    if (pc - entry->function >= read_u32(record + 12))
        return false;
    entry->rest = (struct unwind_reader){ record + 16, record + 4 + read_u32(record) };
    if (entry->has_lengths) {
        uint64_t length = take_uleb(&entry->rest);

        entry->rest.at += length;
    }
    return true;
}

/* --- where the caller's registers are ------------------------------------------------------------------ */

struct machine {
    const struct unwind_entry *entry;
    struct unwind_rules        rules, begin;
    struct unwind_rules        kept[KEPT_MAX];
    unsigned                   kept_count;
    uint64_t                   location, wanted; /* from the function's beginning */
};

static void save_register(struct machine *m, uint64_t number, int64_t offset)
{
    if (number != UNWIND_RBP)
        return;
    m->rules.rbp_saved  = true;
    m->rules.rbp_offset = offset * m->entry->data_unit;
}

static void restore_register(struct machine *m, uint64_t number)
{
    if (number != UNWIND_RBP)
        return;
    m->rules.rbp_saved  = m->begin.rbp_saved;
    m->rules.rbp_offset = m->begin.rbp_offset;
}

static bool keep_rules(struct machine *m)
{
    if (m->kept_count == KEPT_MAX)
        return false;
    m->kept[m->kept_count++] = m->rules;
    return true;
}

static bool take_kept(struct machine *m)
{
    if (m->kept_count == 0)
        return false;
    m->rules = m->kept[--m->kept_count];
    return true;
}

/* DW_CFA_ instructions with their operands behind. False: one of those that compilers do not write for
 * plain functions, so the walk ends. */
static bool obey(struct machine *m, uint8_t code, struct unwind_reader *reader)
{
    struct unwind_rules *rules = &m->rules;
    uint64_t             number;

    switch (code) {
    case 0x00: return true; /* nop */
    case 0x02:
        m->location += take_number(reader, 1) * m->entry->code_unit; /* advance_loc1 */
        return true;
    case 0x03:
        m->location += take_number(reader, 2) * m->entry->code_unit; /* advance_loc2 */
        return true;
    case 0x04:
        m->location += take_number(reader, 4) * m->entry->code_unit; /* advance_loc4 */
        return true;
    case 0x0a: return keep_rules(m); /* remember_state */
    case 0x0b: return take_kept(m);  /* restore_state */
    case 0x0c:                       /* def_cfa */
        rules->base   = take_uleb(reader);
        rules->offset = (int64_t)take_uleb(reader);
        return true;
    case 0x0d: rules->base = take_uleb(reader); return true;            /* def_cfa_register */
    case 0x0e: rules->offset = (int64_t)take_uleb(reader); return true; /* def_cfa_offset */
    case 0x11:                                                          /* offset_extended_sf */
        number = take_uleb(reader);
        save_register(m, number, take_sleb(reader));
        return true;
    case 0x2e: take_uleb(reader); return true; /* GNU_args_size */
    default: return false;
    }
}

static bool obey_short(struct machine *m, uint8_t code, struct unwind_reader *reader)
{
    uint8_t low = code & 0x3f;

    switch (code >> 6) {
    case 1: m->location += low * m->entry->code_unit; return true;          /* advance_loc */
    case 2: save_register(m, low, (int64_t)take_uleb(reader)); return true; /* offset */
    case 3: restore_register(m, low); return true;                          /* restore */
    default: return obey(m, code, reader);
    }
}

/* Until the place that is wanted. */
static bool obey_all(struct machine *m, struct unwind_reader reader)
{
    while (reader.at < reader.end && m->location <= m->wanted)
        if (!obey_short(m, *reader.at++, &reader))
            return false;
    return true;
}

bool unwind_rules(struct unwind_rules *rules, const struct unwind_entry *entry, uintptr_t pc)
{
    struct machine m = { .entry = entry, .wanted = pc - entry->function };

    if (!obey_all(&m, entry->first))
        return false;
    m.begin = m.rules;
    if (!obey_all(&m, entry->rest))
        return false;
    *rules = m.rules;
    return rules->base == UNWIND_RSP || rules->base == UNWIND_RBP;
}
