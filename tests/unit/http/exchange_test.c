/* Who holds an exchange, in every order of letting go: a sanitizer build tells of a wrong free. */
#include "http/exchange.h"

#include <fcntl.h>
#include <unistd.h>

#include "net/addr.h"
#include "support/check.h"

static struct arena_pool pool;
static unsigned          wire_calls, work_gone_count, gone_count, freed_count;
static enum gone_why     gone_why;

/* --- a wire that counts ------------------------------------------------------------------------------- */

static int wire_head(struct exchange *ex, const struct answer *answer, uint64_t length)
{
    wire_calls++;
    ex->answer_state = ANSWER_BODY;
    return 0;
}

static int wire_answer(struct exchange *ex, const struct answer *answer, struct str body)
{
    wire_calls++;
    ex->answer_state = ANSWER_ENDED;
    return 0;
}

static void wire_want(struct exchange *ex)
{
    wire_calls++;
}

static void wire_work_gone(struct exchange *ex)
{
    work_gone_count++;
}

static const struct exchange_wire wire = {
    .head = wire_head, .answer = wire_answer, .want = wire_want, .work_gone = wire_work_gone
};

/* --- work ---------------------------------------------------------------------------------------------- */

static void let_go_at_once(struct exchange *ex, enum gone_why why)
{
    gone_count++;
    gone_why = why;
    exchange_work_let_go(ex);
}

static void keep_it(struct exchange *ex, enum gone_why why)
{
    gone_count++;
    gone_why = why;
}

static const struct exchange_work lets_go = { .on_gone = let_go_at_once };
static const struct exchange_work keeps   = { .on_gone = keep_it };

static void on_freed(void *arg)
{
    freed_count++;
}

static struct exchange *begin(const struct exchange_work *calls)
{
    struct exchange *ex = exchange_new(NULL, &pool, &wire, NULL);

    wire_calls = work_gone_count = gone_count = freed_count = 0;
    ex->work                                                = calls;
    arena_defer(&ex->arena, on_freed, NULL);
    return ex;
}

TEST(the_second_to_let_go_frees)
{
    struct exchange *ex = begin(&keeps);

    exchange_work_let_go(ex);
    CHECK_INT(work_gone_count, 1);
    CHECK_INT(freed_count, 0);
    exchange_wire_let_go(ex);
    CHECK_INT(freed_count, 1);

    ex = begin(&keeps);
    exchange_wire_let_go(ex);
    CHECK_INT(freed_count, 0);
    exchange_work_let_go(ex);
    CHECK_INT(work_gone_count, 0);
    CHECK_INT(freed_count, 1);
}

TEST(a_lost_wire_is_told_to_the_work)
{
    struct exchange *ex = begin(&lets_go);

    exchange_wire_lost(ex, GONE_TIMEOUT);
    CHECK_INT(gone_count, 1);
    CHECK_INT(gone_why, GONE_TIMEOUT);
    CHECK_INT(freed_count, 1);

    ex = begin(&keeps);
    exchange_work_let_go(ex);
    exchange_wire_lost(ex, GONE_CLIENT);
    CHECK_INT(gone_count, 0);
    CHECK_INT(freed_count, 1);
}

TEST(nothing_reaches_a_wire_that_is_lost)
{
    struct answer    answer = { .status = 200 };
    struct iovec     piece  = { "a", 1 };
    struct exchange *ex     = begin(&keeps);
    int              fd     = open("/dev/null", O_RDONLY);

    exchange_wire_lost(ex, GONE_CLIENT);
    CHECK_INT(ex->answer_state, ANSWER_ABORTED);
    CHECK_INT(exchange_head(ex, &answer, 0), EXCHANGE_GONE);
    CHECK_INT(exchange_answer(ex, &answer, STR("")), EXCHANGE_GONE);
    CHECK_INT(exchange_interim(ex, &answer), EXCHANGE_GONE);
    CHECK_INT(exchange_body(ex, &piece, 1), EXCHANGE_GONE);
    CHECK_INT(exchange_end(ex, NULL, 0), EXCHANGE_GONE);
    CHECK_INT(exchange_file(ex, fd, 0, 1), EXCHANGE_GONE);
    CHECK(fcntl(fd, F_GETFD) < 0); /* it was ours to close */
    exchange_want(ex);
    exchange_abort(ex, GONE_ERROR);
    CHECK_INT(wire_calls, 0);
    exchange_work_let_go(ex);
}

TEST(an_answer_is_given_once)
{
    struct answer    answer = { .status = 200 };
    struct exchange *ex     = begin(&keeps);

    CHECK_INT(exchange_answer(ex, &answer, STR("a")), 0);
    CHECK_INT(exchange_answer(ex, &answer, STR("b")), EXCHANGE_GONE);
    CHECK_INT(exchange_head(ex, &answer, 0), EXCHANGE_GONE);
    CHECK_INT(wire_calls, 1);
    exchange_work_let_go(ex);
    exchange_wire_let_go(ex);
}

TEST(the_peer_outlives_its_connection)
{
    struct addr      peer = { .family = AF_INET, .port = 80 };
    struct exchange *ex   = begin(&keeps);

    ex->peer = &peer;
    exchange_wire_lost(ex, GONE_CLIENT);
    peer.port = 81;
    CHECK_INT(ex->peer->port, 80);
    exchange_work_let_go(ex);
}

TEST(body_is_taken_from_the_front)
{
    struct exchange *ex = begin(&keeps);
    struct str       taken;

    ex->request_state = REQUEST_BODY;
    CHECK(exchange_put_body(ex, STR("hello")));
    taken = exchange_take_body(ex, 2);
    CHECK(str_is(taken, STR("he")));
    CHECK_INT(exchange_untaken(ex), 3);
    CHECK(exchange_put_body(ex, STR(" you")));
    CHECK(str_is(exchange_take_body(ex, 100), STR("llo you")));
    CHECK_INT(exchange_take_body(ex, 100).len, 0);
    CHECK_INT(ex->body_bytes, 9);
    CHECK_INT(wire_calls, 0); /* nobody has wanted it */
    exchange_want(ex);
    CHECK(exchange_put_body(ex, STR("more")));
    exchange_take_body(ex, 100);
    CHECK_INT(wire_calls, 2); /* taking makes room */
    exchange_work_let_go(ex);
    exchange_wire_let_go(ex);
}

int main(void)
{
    int status;

    arena_pool_init(&pool, 4);
    status = check_run();
    arena_pool_fini(&pool);
    return status;
}
