#include "net/tls_worker.h"

#include "support/tls_pair.h"

enum { WORKS = 10 };

static struct tls_work  works[WORKS];
static unsigned         runs, runs_in_turn, most_in_turn;
static struct loop_hook turn;

static void on_turn(struct loop_hook *hook)
{
    runs_in_turn = 0;
}

static void run(struct tls_work *work)
{
    runs++;
    runs_in_turn++;
    if (runs_in_turn > most_in_turn)
        most_in_turn = runs_in_turn;
    if (runs < 30)
        tls_work_ask(tls, work);
    else
        loop_break(loop);
}

TEST(a_turn_of_the_loop_has_few_steps_however_many_wait)
{
    pair_start();
    runs = most_in_turn = 0;
    loop_hook_init(&turn, on_turn);
    loop_on_turn(loop, &turn);
    for (unsigned i = 0; i < WORKS; i++) {
        tls_work_init(&works[i], run);
        tls_work_ask(tls, &works[i]);
        tls_work_ask(tls, &works[i]);
    }
    RUN_UNTIL(runs >= 30);
    CHECK(most_in_turn <= TLS_STEPS_PER_TURN);
    for (unsigned i = 0; i < WORKS; i++)
        tls_work_cancel(&works[i]);
    loop_hook_remove(&turn);
    pair_end();
}

static void note(struct tls_work *work)
{
    runs++;
    loop_break(loop);
}

TEST(who_has_been_cancelled_does_not_run)
{
    pair_start();
    runs = 0;
    tls_work_init(&works[0], note);
    tls_work_init(&works[1], note);
    tls_work_ask(tls, &works[0]);
    tls_work_ask(tls, &works[1]);
    tls_work_cancel(&works[0]);
    tls_work_cancel(&works[0]);
    RUN_UNTIL(runs > 0);
    run_for_ms(5);
    CHECK_INT(runs, 1);
    pair_end();
}

int main(void)
{
    int rc = check_run();

    forget_certs();
    return rc;
}
