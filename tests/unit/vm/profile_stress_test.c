/* Samples at random moments of all that Lua does, in two VMs of two threads at once. SRV_ROUNDS is how many
 * rounds of work each does; the default keeps an everyday run short. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "support/check.h"
#include "support/vm_fixture.h"
#include "vm/profile.h"
#include "vm/profile_store.h"

enum { THREADS = 2, ROUNDS = 500, PAUSE_US_MAX = 60 };

/* Each round does the same, so its sum is known. Stacks grow and shrink, calls end by return, tail call,
 * error and yield, the collector runs and has finalizers, traces are made and thrown away. */
static const char WORK[] =
    "local function deep(n) if n == 0 then return 0 end return 1 + deep(n - 1) end\n"
    "local function tail(n) if n == 0 then return 7 end return tail(n - 1) end\n"
    "local function gen(n) return coroutine.wrap(function()\n"
    "  for i = 1, n do coroutine.yield(i) end error('over') end) end\n"
    "local finalized = 0\n"
    "function round()\n"
    "  local sum, t = deep(3000) + tail(100), {}\n"
    "  for i = 1, 300 do t[i] = { key = tostring(i * 7 % 301) .. 'x' } end\n"
    "  table.sort(t, function(a, b) return a.key < b.key end)\n"
    "  sum = sum + #table.concat({ ('ab'):rep(50):gsub('a', function() return 'cc' end) })\n"
    "  local next = gen(50)\n"
    "  while true do local ok, i = pcall(next) if not ok then break end sum = sum + i end\n"
    "  local proxy = newproxy(true)\n"
    "  getmetatable(proxy).__gc = function() finalized = finalized + #tostring({}) end\n"
    "  local n = 0 for i = 1, 20000 do n = n + i % 3 end\n"
    "  for i = 1, 20 do sum = sum + assert(loadstring('local a = ... return a * ' .. i))(2) end\n"
    "  sleep(0)\n"
    "  return sum + n\n"
    "end\n"
    "function again(count)\n"
    "  local first = round()\n"
    "  for i = 2, count do\n"
    "    if i % 10 == 0 then jit.flush() collectgarbage() end\n"
    "    local sum = round()\n"
    "    if sum ~= first then return 'sum of round ' .. i .. ': ' .. sum .. ', not ' .. first end\n"
    "  end\n"
    "  return 'right'\n"
    "end\n";

struct half {
    pthread_t     thread;
    unsigned      rounds;
    char          text[2048];
    unsigned long samples, lost;
    _Atomic bool  begun, over;
};

static void *work(void *arg)
{
    struct half    *half = arg;
    struct fixture  f;
    struct profile *profile;
    char            code[128];

    fixture_open(&f);
    fixture_run_lua(f.vm->L, WORK);
    if (profile_open(&profile, NULL) != 0)
        return NULL;
    profile_begin(profile, f.sched);
    atomic_store(&half->begun, true);
    snprintf(code, sizeof(code), "sleep(1) return again(%u)", half->rounds);
    fixture_start(&f, code);
    fixture_run(&f);
    snprintf(half->text, sizeof(half->text), "%s", f.text);
    atomic_store(&half->over, true);
    profile_end(profile);
    half->samples = (unsigned long)profile_seen(profile)->samples;
    half->lost    = (unsigned long)profile_seen(profile)->lost;
    profile_close(profile);
    fixture_close(&f);
    return NULL;
}

static unsigned rounds_wanted(void)
{
    const char *text  = getenv("SRV_ROUNDS");
    long        count = text ? strtol(text, NULL, 10) : ROUNDS;

    return count > 1 ? (unsigned)count : 2;
}

TEST(samples_at_any_moment_change_nothing)
{
    struct half halves[THREADS] = { 0 };
    unsigned    seed = 7, over = 0;

#ifdef __SANITIZE_THREAD__
    SKIP("ThreadSanitizer delivers no signal while Lua runs");
#endif
    profile_take_signals();
    for (unsigned i = 0; i < THREADS; i++) {
        halves[i].rounds = rounds_wanted();
        CHECK_INT(pthread_create(&halves[i].thread, NULL, work, &halves[i]), 0);
    }
    while (over < THREADS) {
        over = 0;
        for (unsigned i = 0; i < THREADS; i++) {
            if (atomic_load(&halves[i].over))
                over++;
            else if (atomic_load(&halves[i].begun))
                pthread_kill(halves[i].thread, SIGPROF);
        }
        nanosleep(&(struct timespec){ .tv_nsec = rand_r(&seed) % (PAUSE_US_MAX * 1000) }, NULL);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(halves[i].thread, NULL);
        CHECK_STR(halves[i].text, "right");
        CHECK(halves[i].samples > 0);
        CHECK_INT((int)halves[i].lost, 0);
    }
}

int main(void)
{
    return check_run();
}
