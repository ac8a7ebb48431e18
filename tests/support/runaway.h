/* tests/support/runaway.h - code that does not end by itself, and a thread that stops it as the
 * watchdog does: by signals, until the slice has ended. */
#ifndef TESTS_SUPPORT_RUNAWAY_H
#define TESTS_SUPPORT_RUNAWAY_H

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "support/check.h"
#include "support/vm_fixture.h"
#include "vm/sched.h"
#include "vm/stop.h"

struct runaway {
    const char *name, *code;
};

/* Those that a LuaJIT without CHECKHOOK ends too come first. */
static const struct runaway INTERPRETED[] = {
    { "pcall of what raises", "local function f() error('x') end\n"
                              "while true do pcall(f) end" },
    { "pcall around table.sort",
      "while true do pcall(table.sort, { 3, 1, 2 }, function(a, b) return a < b end) end" },
    { "a comparator", "table.sort({ 3, 1, 2 }, function() jit.off() while true do end end)" },
    { "a loop that is not compiled", "jit.off(true, true) while true do end" },
};

static const struct runaway RUNAWAYS[] = {
    { "an empty loop", "while true do end" },
    { "a compiled loop", "local n = 0 while true do n = n + 1 end" },
    { "a loop in pcall in a loop", "while true do pcall(function() while true do end end) end" },
    { "a generator's consumer",
      "local gen = coroutine.wrap(function() while true do coroutine.yield(1) end end)\n"
      "while true do gen() end" },
    { "generators in generators",
      "local function nest(n)\n"
      "  if n == 0 then while true do end end\n"
      "  return coroutine.wrap(function() pcall(nest, n - 1) coroutine.yield() end)()\n"
      "end\n"
      "while true do pcall(nest, 5) end" },
    { "pcall of a generator",
      "while true do pcall(coroutine.wrap(function() while true do end end)) end" },
    { "a generator after its wait",
      "local gen = coroutine.wrap(function() sleep(0) while true do end end)\n"
      "while true do pcall(gen) end" },
    { "a generator that waits again and again, in a loop around pcall",
      "local gen = coroutine.wrap(function()\n"
      "  while true do sleep(0) for i = 1, 1e9 do pcall(error) end end\n"
      "end)\n"
      "while true do pcall(gen) end" },
    { "a metamethod's caller",
      "local t = setmetatable({}, { __index = function(t, k) return k end })\n"
      "while true do local x = t[1] end" },
    { "a metamethod",
      "local t = setmetatable({}, { __add = function() while true do end end }) return t + 1" },
    { "comparators in pcall in a loop",
      "while true do pcall(table.sort, { 3, 1, 2 }, function() while true do end end) end" },
    { "pcall in a comparator",
      "table.sort({ 3, 1, 2 }, function() while true do pcall(function() while true do end end) end end)" },
    { "a generator in a comparator",
      "local gen = coroutine.wrap(function() while true do end end)\n"
      "table.sort({ 3, 1, 2 }, function() while true do pcall(gen) end end)" },
    { "a callback of gsub",
      "while true do pcall(string.gsub, 'abc', '.', function() while true do end end) end" },
    { "__tostring",
      "local t = setmetatable({}, { __tostring = function() while true do end end })\n"
      "while true do pcall(tostring, t) end" },
    { "a handler of xpcall", "while true do xpcall(error, function() while true do end end) end" },
    { "a handler of xpcall in a comparator",
      "local function spin() while true do end end\n"
      "while true do\n"
      "  pcall(table.sort, { 3, 1, 2 }, function() while true do xpcall(spin, spin) end end)\n"
      "end" },
    { "a reader of load", "while true do load(function() while true do end end) end" },
    { "tables", "while true do local t = {} for i = 1, 100 do t[i] = { i } end end" },
    { "texts", "local s = '' while true do s = s .. 'x' if #s > 1000 then s = '' end end" },
    { "closures",
      "local f while true do local n = 0 f = function() n = n + 1 return n end f() end" },
    { "tail calls", "local function f() return f() end f()" },
    { "stack overflows", "local function f() return 1 + f() end while true do pcall(f) end" },
    { "loads and recordings",
      "local at = 0\n"
      "while true do\n"
      "  at = at + 1\n"
      "  loadstring('local n = ' .. at .. ' for i = 1, 200 do n = n + i % 3 end return n',\n"
      "    '=app.lua')()\n"
      "end" },
    { "traces that are thrown away",
      "while true do for i = 1, 100 do local x = i * 2 end jit.flush() end" },
    { "FFI", "local ffi = require 'ffi'\n"
             "local a = ffi.new('int[100]')\n"
             "while true do for i = 0, 99 do a[i] = a[i] + 1 end end" },
    { "a hook of the app's", "debug.sethook(function() end, '', 100)\n"
                             "while true do end" },
    { "hooks set again and again",
      "while true do debug.sethook(function() end, 'l') for i = 1, 9 do end end" },
};

/* --- who stops -------------------------------------------------------------------------------- */

/* Of one thread that runs a VM. */
struct stopper {
    pthread_t     thread, target;
    struct sched *sched;
    sem_t         go, rest;
    atomic_bool   over; /* the slice that it goes for */
    bool          ends;
    unsigned      delay_us, pause_us;

    _Atomic uint64_t slice; /* to be stopped; 0: the one that runs */
    _Atomic uint64_t first_ns;
};

static _Thread_local struct stopper *stopper_of_thread;

static inline void stopper_on_signal(int number)
{
    struct stopper *stopper = stopper_of_thread;
    uint64_t        slice;

    if (!stopper || atomic_load(&stopper->over))
        return;
    slice = atomic_load(&stopper->slice);
    stop_slice(stopper->sched, slice ? slice : sched_slices(stopper->sched), 7);
}

static inline void stopper_pause(unsigned us)
{
    struct timespec ts = { .tv_nsec = (long)us * 1000 };

    if (us)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* Time that the target has had: what a busy machine gives to others is none that it ran on for. */
static inline uint64_t stopper_target_ns(const struct stopper *stopper)
{
    clockid_t       clock;
    struct timespec ts;

    if (pthread_getcpuclockid(stopper->target, &clock) != 0 || clock_gettime(clock, &ts) != 0)
        abort();
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static inline void *stopper_main(void *arg)
{
    struct stopper *stopper = arg;

    for (;;) {
        sem_wait(&stopper->go);
        if (stopper->ends)
            return NULL;
        stopper_pause(stopper->delay_us);
        atomic_store(&stopper->first_ns, stopper_target_ns(stopper));
        while (!atomic_load(&stopper->over)) {
            pthread_kill(stopper->target, SIGURG);
            stopper_pause(stopper->pause_us);
        }
        sem_post(&stopper->rest);
    }
}

/* In the thread whose VM F is. */
static inline void stopper_open(struct stopper *stopper, struct fixture *f)
{
    struct sigaction action = { .sa_handler = stopper_on_signal, .sa_flags = SA_RESTART };
    sigset_t         urgent, before;

    *stopper = (struct stopper){ .target = pthread_self(), .sched = f->sched, .pause_us = 1000 };
    sem_init(&stopper->go, 0, 0);
    sem_init(&stopper->rest, 0, 0);
    atomic_store(&stopper->over, true);
    stopper_of_thread = stopper;
    sigaction(SIGURG, &action, NULL);
    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    pthread_sigmask(SIG_BLOCK, &urgent, &before);
    CHECK(pthread_create(&stopper->thread, NULL, stopper_main, stopper) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static inline void stopper_close(struct stopper *stopper)
{
    stopper->ends = true;
    sem_post(&stopper->go);
    pthread_join(stopper->thread, NULL);
    stopper_of_thread = NULL;
    sem_destroy(&stopper->go);
    sem_destroy(&stopper->rest);
}

/* Starts CODE and runs it to the end that the stopper makes. Returns how long it ran on. */
static inline uint64_t stopper_run(struct stopper *stopper, struct fixture *f, const char *code)
{
    uint64_t ended_ns;

    atomic_store(&stopper->over, false);
    sem_post(&stopper->go);
    fixture_start(f, code);
    fixture_run(f);
    ended_ns = stopper_target_ns(stopper);
    atomic_store(&stopper->over, true);
    while (sem_wait(&stopper->rest) != 0) /* a last signal */
        continue;
    return ended_ns - atomic_load(&stopper->first_ns);
}

/* What must hold of a VM in which a slice was stopped. */
static const char RUNAWAY_CANARY[] =
    "canary = {}\n"
    "for i = 1, 100 do canary[i] = { i, tostring(i), function() return i end } end\n";
static const char RUNAWAY_CHECK[] =
    "debug.sethook()\n" /* that of an app stays, as it should */
    "local sum = 0\n"
    "for v in coroutine.wrap(function() for i = 1, 10 do coroutine.yield(i) end end) do sum = sum + v end\n"
    "assert(sum == 55)\n"
    "for i = 1, 100 do\n"
    "  local c = canary[i]\n"
    "  assert(c[1] == i and c[2] == tostring(i) and c[3]() == i)\n"
    "end\n"
    "local t = { 3, 1, 2 } table.sort(t) assert(t[1] == 1 and t[3] == 3)\n"
    "assert(not pcall(error))\n"
    "return 'usable'";

#endif
