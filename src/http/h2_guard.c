#include "http/h2_guard.h"

static const char *const PHRASES[] = {
    [H2_RESET]    = "too many streams were reset",
    [H2_BROKEN]   = "too many streams had to be reset",
    [H2_PING]     = "too many PING frames",
    [H2_SETTINGS] = "too many SETTINGS frames",
    [H2_EMPTY]    = "too many empty DATA frames",
    [H2_PRIORITY] = "too many priorities",
    [H2_WINDOW]   = "too many WINDOW_UPDATE frames",
    [H2_CRUMB]    = "the window is opened in crumbs",
    [H2_FRAGMENT] = "too many CONTINUATION frames",
};

enum { UNIT = 1000 };

void h2_guard_init(struct h2_guard *guard, uint64_t now_ms)
{
    *guard = (struct h2_guard){ .since_ms = now_ms, .thousandths = H2_GUARD_BURST * UNIT };
}

static void fill(struct h2_guard *guard, uint64_t now_ms)
{
    uint64_t room = (uint64_t)H2_GUARD_BURST * UNIT - guard->thousandths;
    uint64_t more = (now_ms - guard->since_ms) * H2_GUARD_PER_SECOND;

    guard->thousandths += (uint32_t)(more < room ? more : room);
    guard->since_ms = now_ms;
}

bool h2_guard_spend(struct h2_guard *guard, enum h2_nuisance nuisance, uint64_t now_ms)
{
    if ((nuisance == H2_PING || nuisance == H2_WINDOW) && guard->free) {
        guard->free--;
        return true;
    }
    if (guard->since_ms != now_ms)
        fill(guard, now_ms);
    if (guard->thousandths >= UNIT) {
        guard->thousandths -= UNIT;
        return true;
    }
    if (!guard->why)
        guard->why = PHRASES[nuisance];
    return false;
}
