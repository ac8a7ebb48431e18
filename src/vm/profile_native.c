#include "vm/profile_native.h"

#include <link.h>
#include <pthread.h>
#include <stddef.h>

#include "vm/profile_unwind.h"

enum { OBJECTS_MAX = 64 };

struct object {
    uintptr_t      low, high; /* from its first segment to the end of its last */
    const uint8_t *table;     /* .eh_frame_hdr: functions in order, for a binary search */
};

static struct object objects[OBJECTS_MAX];
static unsigned      object_count;

/* --- what is loaded ----------------------------------------------------------------------------- */

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
    if (object.table && unwind_is_usual(object.table) && object_count < OBJECTS_MAX)
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

static const struct object *object_of(uintptr_t pc)
{
    for (unsigned i = 0; i < object_count; i++)
        if (pc >= objects[i].low && pc < objects[i].high)
            return &objects[i];
    return NULL;
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
static bool leave(struct frame *frame, const struct unwind_entry *entry, uintptr_t place,
                  struct native_range thread)
{
    struct unwind_rules rules;
    uintptr_t           base;

    if (!unwind_rules(&rules, entry, place))
        return false;
    base = (rules.base == UNWIND_RSP ? frame->sp : frame->bp) + (uintptr_t)rules.offset;
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
    const struct object *object = object_of(place);
    struct unwind_entry  entry;

    if (!object || !unwind_find(&entry, object->table, place)) {
        out->ends_unknown            = true;
        out->place                   = out->depth == 0 ? NATIVE_UNKNOWN : out->place;
        out->functions[out->depth++] = place;
        return false;
    }
    if (entry.is_interpreter) {
        out->place  = out->depth == 0 ? NATIVE_LUA : out->place;
        out->caller = out->depth == 0 ? 0 : place;
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
    stack->caller       = 0;
    stack->depth        = 0;
    while (stack->depth < NATIVE_DEPTH_MAX && note_function(stack, &frame, place, thread))
        place = frame.pc - 1;
}

#else

void native_walk(struct native_stack *stack, const ucontext_t *at, struct native_range thread)
{
    stack->place        = NATIVE_UNKNOWN;
    stack->ends_unknown = true;
    stack->caller       = 0;
    stack->depth        = 1;
    stack->functions[0] = (uintptr_t)at->uc_mcontext.pc;
}

#endif
