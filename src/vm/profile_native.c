#include "vm/profile_native.h"

#include <link.h>
#include <pthread.h>
#include <string.h>

enum { OBJECTS_MAX = 64, KEPT_MAX = 8 };

/* How pointers are encoded (LSB, exception frames): the one way in which linkers and compilers do it. */
enum {
    AS_PCREL_SDATA4   = 0x1b,
    AS_UDATA4         = 0x03,
    AS_DATAREL_SDATA4 = 0x3b,
};

struct object {
    uintptr_t      low, high; /* from its first segment to the end of its last */
    const uint8_t *table;     /* .eh_frame_hdr: functions in order, for a binary search */
};

static struct object objects[OBJECTS_MAX];
static unsigned      object_count;

/* --- what is loaded ----------------------------------------------------------------------------- */

static bool is_usual(const uint8_t *table)
{
    return table[0] == 1 && table[1] == AS_PCREL_SDATA4 && table[2] == AS_UDATA4 &&
           table[3] == AS_DATAREL_SDATA4;
}

static int note_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct object object = { UINTPTR_MAX, 0, NULL };

    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t at           = info->dlpi_addr + part->p_vaddr;

        if (part->p_type == PT_GNU_EH_FRAME)
            object.table = (const uint8_t *)at;
        if (part->p_type != PT_LOAD)
            continue;
        object.low  = at < object.low ? at : object.low;
        object.high = at + part->p_memsz > object.high ? at + part->p_memsz : object.high;
    }
    if (object.table && is_usual(object.table) && object_count < OBJECTS_MAX)
        objects[object_count++] = object;
    return 0;
}

void native_open(void)
{
    if (object_count == 0)
        dl_iterate_phdr(note_object, NULL);
}

struct native_range native_thread_stack(void)
{
    struct native_range range = { 0, 0 };
    pthread_attr_t      attr;
    void               *low;
    size_t              bytes;

    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return range;
    if (pthread_attr_getstack(&attr, &low, &bytes) == 0)
        range = (struct native_range){ (uintptr_t)low, (uintptr_t)low + bytes };
    pthread_attr_destroy(&attr);
    return range;
}

#ifdef __x86_64__

enum { RBP = 6, RSP = 7 }; /* as DWARF counts them */

/* --- reading ---------------------------------------------------------------------------------------- */

struct reader {
    const uint8_t *at, *end;
};

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
static uint32_t take_number(struct reader *reader, unsigned bytes)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < bytes && reader->at < reader->end; i++)
        value |= (uint32_t)*reader->at++ << (8 * i);
    return value;
}

static uint64_t take_uleb(struct reader *reader)
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

static int64_t take_sleb(struct reader *reader)
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

struct entry {
    uintptr_t     function;
    struct reader first, rest; /* instructions: those of all its kind, then its own */
    uint64_t      code_unit;
    int64_t       data_unit;
    bool          has_lengths; /* "z": its own data begin with their length */
    bool          is_interpreter;
};

static const struct object *object_of(uintptr_t pc)
{
    for (unsigned i = 0; i < object_count; i++)
        if (pc >= objects[i].low && pc < objects[i].high)
            return &objects[i];
    return NULL;
}

/* The last entry of the table that begins at or before PC; NULL: none. */
static const uint8_t *find_record(const struct object *object, uintptr_t pc)
{
    const uint8_t *table = object->table, *rows = table + 12;
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
static bool read_kind(struct entry *entry, const uint8_t *kind)
{
    const char   *letters = (const char *)kind + 9;
    struct reader reader  = { kind + 9 + strlen(letters) + 1, kind + 4 + read_u32(kind) };
    bool          usual   = false;

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
            take_number(&reader, *letter == 'P' ? 5 : 1);
        else if (*letter != 'z')
            return false; /* "S": a signal's frame */
    }
    entry->first = reader;
    return usual;
}

static bool find_entry(struct entry *entry, uintptr_t pc)
{
    const struct object *object = object_of(pc);
    const uint8_t       *record = object ? find_record(object, pc) : NULL;

    if (!record || !read_kind(entry, record + 4 - read_u32(record + 4)))
        return false;
    entry->function = (uintptr_t)(record + 8) + (uintptr_t)(intptr_t)read_s32(record + 8);
    if (pc - entry->function >= read_u32(record + 12))
        return false;
    entry->rest = (struct reader){ record + 16, record + 4 + read_u32(record) };
    if (entry->has_lengths) {
        uint64_t length = take_uleb(&entry->rest);

        entry->rest.at += length;
    }
    return true;
}

/* --- where the caller's registers are ------------------------------------------------------------------ */

struct rules {
    uint64_t base;       /* RSP or RBP; the frame is at its value ... */
    int64_t  offset;     /* ... plus this; right below is the return address */
    bool     rbp_saved;  /* at the frame ... */
    int64_t  rbp_offset; /* ... plus this */
};

struct machine {
    const struct entry *entry;
    struct rules        rules, begin;
    struct rules        kept[KEPT_MAX];
    unsigned            kept_count;
    uint64_t            location, wanted; /* from the function's beginning */
};

static void save_register(struct machine *m, uint64_t number, int64_t offset)
{
    if (number != RBP)
        return;
    m->rules.rbp_saved  = true;
    m->rules.rbp_offset = offset * m->entry->data_unit;
}

static void restore_register(struct machine *m, uint64_t number)
{
    if (number != RBP)
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
static bool obey(struct machine *m, uint8_t code, struct reader *reader)
{
    struct rules *rules = &m->rules;
    uint64_t      number;

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

static bool obey_short(struct machine *m, uint8_t code, struct reader *reader)
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
static bool obey_all(struct machine *m, struct reader reader)
{
    while (reader.at < reader.end && m->location <= m->wanted)
        if (!obey_short(m, *reader.at++, &reader))
            return false;
    return true;
}

static bool find_rules(struct rules *rules, const struct entry *entry, uintptr_t pc)
{
    struct machine m = { .entry = entry, .wanted = pc - entry->function };

    if (!obey_all(&m, entry->first))
        return false;
    m.begin = m.rules;
    if (!obey_all(&m, entry->rest))
        return false;
    *rules = m.rules;
    return rules->base == RSP || rules->base == RBP;
}

/* --- the walk ---------------------------------------------------------------------------------------------- */

struct frame {
    uintptr_t pc, sp, bp;
};

__attribute__((no_sanitize("address", "thread"))) static uintptr_t word_at(uintptr_t at)
{
    return *(const uintptr_t *)at;
}

static bool is_on(struct native_range thread, uintptr_t at)
{
    return at % sizeof(uintptr_t) == 0 && at >= thread.low && at <= thread.high - sizeof(uintptr_t);
}

/* FRAME becomes that of its caller. */
static bool leave(struct frame *frame, const struct entry *entry, uintptr_t place,
                  struct native_range thread)
{
    struct rules rules;
    uintptr_t    base;

    if (!find_rules(&rules, entry, place))
        return false;
    base = (rules.base == RSP ? frame->sp : frame->bp) + (uintptr_t)rules.offset;
    if (base <= frame->sp || !is_on(thread, base - sizeof(uintptr_t)))
        return false;
    frame->pc = word_at(base - sizeof(uintptr_t));
    frame->sp = base;
    if (rules.rbp_saved && is_on(thread, base + (uintptr_t)rules.rbp_offset))
        frame->bp = word_at(base + (uintptr_t)rules.rbp_offset);
    return frame->pc != 0;
}

static struct frame frame_of(const ucontext_t *at)
{
    const greg_t *registers = at->uc_mcontext.gregs;

    return (struct frame){ (uintptr_t)registers[REG_RIP], (uintptr_t)registers[REG_RSP],
                           (uintptr_t)registers[REG_RBP] };
}

/* False: the walk ends. */
static bool note_function(struct native_stack *out, struct frame *frame, uintptr_t place,
                          struct native_range thread)
{
    struct entry entry;

    if (!find_entry(&entry, place)) {
        out->ends_unknown            = true;
        out->place                   = out->depth == 0 ? NATIVE_UNKNOWN : out->place;
        out->functions[out->depth++] = place;
        return false;
    }
    if (entry.is_interpreter) {
        out->place = out->depth == 0 ? NATIVE_LUA : out->place;
        return false;
    }
    out->functions[out->depth++] = entry.function;
    return leave(frame, &entry, place, thread);
}

/* A return address belongs to the call before it. */
void native_walk(struct native_stack *stack, const ucontext_t *at, struct native_range thread)
{
    struct frame frame = frame_of(at);
    uintptr_t    place = frame.pc;

    stack->place        = NATIVE_C;
    stack->ends_unknown = false;
    stack->depth        = 0;
    while (stack->depth < NATIVE_DEPTH_MAX && note_function(stack, &frame, place, thread))
        place = frame.pc - 1;
}

#else

void native_walk(struct native_stack *stack, const ucontext_t *at, struct native_range thread)
{
    stack->place        = NATIVE_UNKNOWN;
    stack->ends_unknown = true;
    stack->depth        = 1;
    stack->functions[0] = (uintptr_t)at->uc_mcontext.pc;
}

#endif
