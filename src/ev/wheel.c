#include "ev/wheel.h"

#include <assert.h>

#include "base/clock.h"

void wheel_init(struct wheel *wheel, uint64_t now_ns)
{
    *wheel = (struct wheel){ .at_ms = now_ns / NS_PER_MS };
    for (unsigned level = 0; level < WHEEL_LEVELS; level++)
        for (unsigned slot = 0; slot < WHEEL_SLOTS; slot++)
            list_init(&wheel->slots[level][slot]);
    list_init(&wheel->soon);
    list_init(&wheel->ripe);
}

bool wheel_is_empty(const struct wheel *wheel)
{
    return wheel_next_ns(wheel) == WHEEL_NEVER && list_is_empty(&wheel->soon) &&
           list_is_empty(&wheel->ripe);
}

static unsigned level_of(const struct wheel *wheel, uint64_t due_ms)
{
    uint64_t difference = due_ms ^ wheel->at_ms;

    return difference ? (63u - (unsigned)__builtin_clzll(difference)) / WHEEL_DIGIT_BITS : 0;
}

void wheel_add(struct wheel *wheel, struct timer *timer)
{
    uint64_t due_ms = timer->due_ns / NS_PER_MS;
    unsigned level  = level_of(wheel, due_ms);
    unsigned slot   = (unsigned)(due_ms >> (level * WHEEL_DIGIT_BITS)) % WHEEL_SLOTS;
    uint64_t bit    = UINT64_C(1) << slot;

    assert(due_ms >= wheel->at_ms);
    list_append(&wheel->slots[level][slot], &timer->link);
    if (level == 0 && (!(wheel->filled[0] & bit) || wheel->last_due_ns[slot] < timer->due_ns))
        wheel->last_due_ns[slot] = timer->due_ns;
    wheel->filled[level] |= bit;
}

void wheel_add_soon(struct wheel *wheel, struct timer *timer)
{
    list_append(&wheel->soon, &timer->link);
}

/* A node whose neighbours are one is the last of its list, and that neighbour the head: its place
 * tells the slot, so a timer need not remember where it stands. */
void wheel_remove(struct wheel *wheel, struct timer *timer)
{
    struct list *head  = timer->link.next;
    struct list *first = &wheel->slots[0][0];
    bool         last  = head == timer->link.prev;

    list_remove(&timer->link);
    if (last && head >= first && head < first + WHEEL_LEVELS * WHEEL_SLOTS) {
        size_t index = (size_t)(head - first);

        wheel->filled[index / WHEEL_SLOTS] &= ~(UINT64_C(1) << (index % WHEEL_SLOTS));
    }
}

static unsigned first_filled(const struct wheel *wheel, unsigned level)
{
    return (unsigned)__builtin_ctzll(wheel->filled[level]);
}

static unsigned lowest_level(const struct wheel *wheel)
{
    unsigned level = 0;

    while (level < WHEEL_LEVELS && !wheel->filled[level])
        level++;
    return level;
}

/* The millisecond at which the slot begins: the wheel's digits above LEVEL, then SLOT, then zeros. */
static uint64_t slot_begin_ms(const struct wheel *wheel, unsigned level, unsigned slot)
{
    unsigned shift = level * WHEEL_DIGIT_BITS;
    uint64_t above = wheel->at_ms >> (shift + WHEEL_DIGIT_BITS) << (shift + WHEEL_DIGIT_BITS);

    return above | (uint64_t)slot << shift;
}

uint64_t wheel_next_ns(const struct wheel *wheel)
{
    unsigned level = lowest_level(wheel);

    if (level == WHEEL_LEVELS)
        return WHEEL_NEVER;
    if (level == 0)
        return wheel->last_due_ns[first_filled(wheel, 0)];
    return slot_begin_ms(wheel, level, first_filled(wheel, level)) * NS_PER_MS;
}

void wheel_ripen_soon(struct wheel *wheel)
{
    list_splice(&wheel->ripe, &wheel->soon);
}

/* Takes the timers of the nearest slot out. One of level 0 is due; the others are dealt out anew
 * in their order, so those of one millisecond keep it: none could enter their slot of level 0
 * before. */
static void reach_slot(struct wheel *wheel, unsigned level)
{
    unsigned     slot = first_filled(wheel, level);
    struct list *node;
    struct list  dealt;

    list_init(&dealt);
    list_splice(&dealt, &wheel->slots[level][slot]);
    wheel->filled[level] &= ~(UINT64_C(1) << slot);
    wheel->at_ms = slot_begin_ms(wheel, level, slot);
    if (level == 0) {
        list_splice(&wheel->ripe, &dealt);
        return;
    }
    while ((node = list_take_first(&dealt)))
        wheel_add(wheel, container_of(node, struct timer, link));
}

void wheel_advance(struct wheel *wheel, uint64_t now_ns)
{
    uint64_t now_ms = now_ns / NS_PER_MS;

    while (wheel_next_ns(wheel) <= now_ns)
        reach_slot(wheel, lowest_level(wheel));
    if (wheel->at_ms < now_ms)
        wheel->at_ms = now_ms;
}
