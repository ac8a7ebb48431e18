#include "data/sqlite.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "support/sqlite_fixture.h"

/* --- many threads ---------------------------------------------------------------------------------------- */

enum { WORKERS = 4, TURNS = 50 };

struct worker {
    pthread_t          thread;
    struct loop       *loop;
    struct sqlite_db  *db;
    struct sqlite_call call;
    unsigned           turns;
    unsigned           faults;
};

static void take_turn(struct worker *worker);

static void on_turn_done(struct sqlite_call *call)
{
    struct worker *worker = container_of(call, struct worker, call);

    worker->faults += fault_is_set(&call->fault);
    sqlite_call_fini(call);
    if (++worker->turns == TURNS)
        loop_break(worker->loop);
    else
        take_turn(worker);
}

static void take_turn(struct worker *worker)
{
    static const char *const SQL[] = { "insert into t values (1)", "select count(*) from t" };

    sqlite_call_init(&worker->call, CALL_RUN);
    buf_add_str(&worker->call.sql, str_of(SQL[worker->turns % 2]));
    worker->call.keep = ROWS_ALL;
    worker->call.done = on_turn_done;
    worker->call.drop = on_drop;
    if (sqlite_start(&worker->call, worker->db, worker->loop) != 0)
        abort();
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;

    take_turn(worker);
    loop_run(worker->loop);
    sqlite_db_close(worker->db, loop_inbox(worker->loop));
    return NULL;
}

TEST(four_threads_share_one_database)
{
    struct worker     workers[WORKERS] = { 0 };
    struct sqlite_db *db;

    open_process(4);
    db = open_at(path, 4, 100);
    CHECK_ANSWER(ask(db, NULL, "create table t (n)"), "");
    for (int i = 0; i < WORKERS; i++) {
        CHECK_INT(loop_open(&workers[i].loop, NULL), 0);
        workers[i].db = open_at(path, 4, 100);
        CHECK(workers[i].db == db);
        CHECK_INT(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK_INT(workers[i].faults, 0);
    }
    CHECK_ANSWER(ask(db, NULL, "select count(*) from t"), "100");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
    for (int i = 0; i < WORKERS; i++)
        loop_close(workers[i].loop);
}

/* --- kill -9 ----------------------------------------------------------------------------------------------- */

/* Money goes from account to account, two statements a transaction, until the parent kills us. */
static void pay_for_ever(int ready_fd)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;

    CHECK_INT(loop_open(&loop, NULL), 0);
    CHECK_INT(pool_open(&pool, NULL), 0);
    struct lane *lane;
    CHECK_INT(lane_open(&lane, pool, "sqlite", 2, 64, NULL), 0);
    CHECK_INT(sqlite_open(&sqlite, lane, NULL), 0);
    db = open_at(path, 2, 10);
    for (unsigned turn = 0;; turn++) {
        lease = begin(db, TX_WRITE);
        ask(db, lease, "update account set money = money - 1 where id = 1");
        ask(db, lease, "update account set money = money + 1 where id = 2");
        end(db, lease, CALL_COMMIT);
        if (turn == 20 && write(ready_fd, "!", 1) != 1)
            _exit(1);
    }
}

TEST(a_process_killed_while_it_writes_leaves_whole_transactions)
{
    struct sqlite_db *db;
    int               ready[2];
    char              byte;
    pid_t             child;

    open_process(2);
    db = open_at(path, 2, 10);
    CHECK_ANSWER(ask(db, NULL, "create table account (id integer primary key, money int)"), "");
    CHECK_ANSWER(ask(db, NULL, "insert into account values (1, 0), (2, 0)"), "");
    sqlite_db_close(db, loop_inbox(loop));
    sqlite_close(sqlite);
    pool_close(pool);
    loop_close(loop);

    CHECK_INT(pipe(ready), 0);
    child = fork();
    if (child == 0)
        pay_for_ever(ready[1]);
    CHECK_INT(read(ready[0], &byte, 1), 1);
    CHECK_INT(kill(child, SIGKILL), 0);
    CHECK_INT(waitpid(child, NULL, 0), child);
    close(ready[0]);
    close(ready[1]);

    struct lane *lane;
    CHECK_INT(loop_open(&loop, NULL), 0);
    CHECK_INT(pool_open(&pool, NULL), 0);
    CHECK_INT(lane_open(&lane, pool, "sqlite", 2, 64, NULL), 0);
    CHECK_INT(sqlite_open(&sqlite, lane, NULL), 0);
    db = open_at(path, 2, 10);
    CHECK_ANSWER(ask(db, NULL, "select sum(money) from account"), "0");
    CHECK_ANSWER(ask(db, NULL, "select max(money) >= 20 from account"), "1");
    CHECK_ANSWER(ask(db, NULL,
                     "select count(*) from pragma_integrity_check where "
                     "integrity_check = 'ok'"),
                 "1");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

int main(void)
{
    return check_run();
}
