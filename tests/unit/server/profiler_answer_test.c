#include "server/profiler_answer.h"

#include <stdlib.h>

#include <lua.h>

#include "support/check.h"
#include "vm/profile_store.h"

/* --- what was seen --------------------------------------------------------------------------------- */

static const struct profile_frame *frame(struct profile_store *store, struct profile_frame wanted)
{
    return profile_store_frame(store, &wanted);
}

static const struct profile_frame *line(struct profile_store *store, const char *file, int number)
{
    return frame(store, (struct profile_frame){
                            .kind = PROFILE_LUA, .file = file, .line = number, .defined = 1 });
}

static const struct profile_frame *label(struct profile_store *store, const char *text)
{
    return frame(store, (struct profile_frame){ .kind = PROFILE_TASK, .name = text });
}

__attribute__((noinline)) static int lfetch_of_this_test(void)
{
    return abs(-1);
}

static const struct profile_frame *function(struct profile_store *store, const void *address)
{
    return frame(store, (struct profile_frame){ .kind = PROFILE_C, .address = (uintptr_t)address });
}

static void see(struct profile_store *store, enum profile_state state, unsigned count,
                const struct profile_frame *outer, const struct profile_frame *inner)
{
    const struct profile_frame *path[] = { outer, inner };

    profile_store_add(store, state, path, 2, count);
}

/* --- what is told ------------------------------------------------------------------------------------ */

static char told[1024 * 1024];

static unsigned tell(struct profile_store *const stores[], unsigned count)
{
    struct profiler_answer *answer = profiler_answer_open(stores, count);
    struct buf              out;
    unsigned                pieces = 1;

    buf_init(&out, sizeof(told));
    while (profiler_answer_next(answer, &out))
        pieces++;
    profiler_answer_sums(answer, &out);
    snprintf(told, sizeof(told), "%.*s", (int)out.len, out.at);
    buf_fini(&out);
    profiler_answer_close(answer);
    return pieces;
}

static unsigned times(const char *text)
{
    unsigned count = 0;

    for (const char *at = told; (at = strstr(at, text)); at++)
        count++;
    return count;
}

TEST(a_frame_that_two_workers_saw_is_told_once)
{
    struct profile_store a, b;

    profile_store_init(&a);
    profile_store_init(&b);
    see(&a, PROFILE_IN_LUA, 3, label(&a, "GET /"), line(&a, "@app.lua", 7));
    line(&b, "@other.lua", 1); /* so that ids differ */
    see(&b, PROFILE_IN_JIT, 4, label(&b, "GET /"), line(&b, "@app.lua", 7));
    tell((struct profile_store *[]){ &a, &b }, 2);
    CHECK_INT((int)times("{\"frame\":"), 2);
    CHECK(strstr(told,
                 "{\"frame\":0,\"name\":\"GET /\",\"kind\":\"task\"}\n"
                 "{\"frame\":1,\"file\":\"app.lua\",\"line\":7,\"defined\":1,\"kind\":\"app\"}\n"
                 "{\"worker\":0,\"state\":\"lua\",\"stack\":[0,1],\"count\":3}\n"
                 "{\"worker\":1,\"state\":\"jit\",\"stack\":[0,1],\"count\":4}\n"));
    CHECK(strstr(told, "\"samples\":7,\"waits\":0,\"lost\":0,"));
    CHECK(strstr(told, "\"silent\":[]"));
    profile_store_fini(&a);
    profile_store_fini(&b);
}

TEST(functions_in_c_have_names_and_waits_are_named_by_theirs)
{
    struct profile_store store;

    profile_store_init(&store);
    see(&store, PROFILE_WAITS, 5, line(&store, "=srv/x.lua", 2),
        function(&store, (const void *)lfetch_of_this_test));
    see(&store, PROFILE_WAITS, 6, line(&store, "@a.lua", 2), line(&store, "@a.lua", 3));
    CHECK_INT(lfetch_of_this_test(), 1);
    tell((struct profile_store *[]){ &store }, 1);
    CHECK(strstr(
        told,
        "\"name\":\"lfetch_of_this_test\",\"file\":\"profiler_answer_test.c\",\"kind\":\"c\"}"));
    CHECK(strstr(told, "\"file\":\"srv/x.lua\",\"line\":2,\"defined\":1,\"kind\":\"srv\"}"));
    CHECK(strstr(told, "\"state\":\"wait\",\"wait\":\"fetch\","));
    CHECK(strstr(told, "\"state\":\"wait\",\"wait\":\"other\","));
    profile_store_fini(&store);
}

TEST(functions_of_libraries_are_named_by_what_they_export)
{
    struct profile_store store;

    profile_store_init(&store);
    see(&store, PROFILE_IN_C, 1, label(&store, "x"), function(&store, (const void *)lldiv));
    see(&store, PROFILE_IN_C, 1, label(&store, "y"), function(&store, (const void *)16));
    tell((struct profile_store *[]){ &store }, 1);
    CHECK(strstr(told, "\"name\":\"lldiv\",\"file\":\"lib"));
    CHECK(strstr(told, "\"name\":\"?\",\"kind\":\"c\"}"));
    profile_store_fini(&store);
}

#ifdef SRV_CHECKHOOK
TEST(the_collector_is_a_state_and_a_kind_of_its_own)
{
    struct profile_store store;
    extern char          lj_gc_step[] __attribute__((visibility("hidden")));

    profile_store_init(&store);
    see(&store, PROFILE_IN_C, 1, line(&store, "@a.lua", 1), function(&store, lj_gc_step));
    tell((struct profile_store *[]){ &store }, 1);
    CHECK(strstr(told, "\"name\":\"lj_gc_step\""));
    CHECK(strstr(told, "\"kind\":\"gc\"}"));
    CHECK(strstr(told, "\"state\":\"gc\""));
    profile_store_fini(&store);
}
#endif

TEST(a_worker_that_says_nothing_is_named)
{
    struct profile_store store;

    profile_store_init(&store);
    see(&store, PROFILE_IN_C, 2, label(&store, "a \"quoted\" label"), label(&store, "b"));
    tell((struct profile_store *[]){ NULL, &store, NULL }, 3);
    CHECK(strstr(told, "a \\\"quoted\\\" label"));
    CHECK(strstr(told, "{\"worker\":1,"));
    CHECK(strstr(told, "\"silent\":[0,2]"));
    profile_store_fini(&store);
}

TEST(many_stacks_come_in_pieces)
{
    struct profile_store store;
    unsigned             count = 10 * PROFILER_PIECE_LINES + 1;

    profile_store_init(&store);
    for (unsigned i = 0; i < count; i++)
        see(&store, PROFILE_IN_C, 1, label(&store, "x"), line(&store, "@a.lua", (int)i));
    CHECK_INT((int)tell((struct profile_store *[]){ &store }, 1), 11);
    CHECK_INT((int)times("\"state\":\"c\""), (int)count);
    profile_store_fini(&store);
}

int main(void)
{
    return check_run();
}
