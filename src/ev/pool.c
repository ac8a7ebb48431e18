/* A job's state changes under its lane's lock until a thread has it; from RUNNING on the thread
 * alone moves it, and the inbox hands it over to its home. So job_cancel() needs the lock only to
 * find out whether it came in time. */
#include "ev/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
#include "ev/thread.h"

struct lane {
    struct list link; /* in the pool */
    const char *name;

    pthread_mutex_t lock;
    pthread_cond_t  changed; /* a job came, or closing was set */
    struct list     queue;
    unsigned        queued;
    unsigned        queue_max;
    unsigned        idle; /* threads that wait for a job */
    bool            closing;
    uint64_t        done, refused; /* jobs */

    struct thread *threads; /* room for threads_max */
    unsigned       started;
    unsigned       threads_max;
};

struct pool {
    struct list lanes;
};

/* --- jobs ----------------------------------------------------------------------------------- */

static void deliver_job(struct message *message)
{
    struct job *job = container_of(message, struct job, message);

    atomic_store_explicit(&job->state, JOB_IDLE, memory_order_relaxed);
    job->done(job);
}

static void drop_job(struct message *message)
{
    struct job *job = container_of(message, struct job, message);

    atomic_store_explicit(&job->state, JOB_IDLE, memory_order_relaxed);
    job->drop(job);
}

static void run_job(struct job *job)
{
    job->run(job);
    atomic_store_explicit(&job->state, JOB_FINISHED, memory_order_relaxed);
    inbox_post(job->home, &job->message); /* it may be gone from here on */
}

/* Lane locked. */
static struct job *take_job(struct lane *lane)
{
    struct list *node = list_take_first(&lane->queue);
    struct job  *job;

    if (!node)
        return NULL;
    job = container_of(node, struct job, link);
    lane->queued--;
    atomic_store_explicit(&job->state, JOB_RUNNING, memory_order_relaxed);
    return job;
}

bool job_cancel(struct job *job)
{
    struct lane *lane = job->lane;
    bool         in_time;

    pthread_mutex_lock(&lane->lock);
    in_time = atomic_load_explicit(&job->state, memory_order_relaxed) == JOB_QUEUED;
    if (in_time) {
        list_remove(&job->link);
        lane->queued--;
        atomic_store_explicit(&job->state, JOB_IDLE, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lane->lock);
    if (!in_time)
        atomic_store_explicit(&job->cancelled, true, memory_order_relaxed);
    return in_time;
}

/* --- lanes ---------------------------------------------------------------------------------- */

/* Lane locked. NULL: the lane closes. */
static struct job *wait_for_job(struct lane *lane)
{
    struct job *job;

    while (!(job = take_job(lane)) && !lane->closing) {
        lane->idle++;
        pthread_cond_wait(&lane->changed, &lane->lock);
        lane->idle--;
    }
    return job;
}

static void lane_main(void *arg)
{
    struct lane *lane = arg;
    struct job  *job;

    pthread_mutex_lock(&lane->lock);
    while ((job = wait_for_job(lane))) {
        pthread_mutex_unlock(&lane->lock);
        run_job(job);
        pthread_mutex_lock(&lane->lock);
        lane->done++;
    }
    pthread_mutex_unlock(&lane->lock);
}

/* Lane locked. Waiting threads are spoken for by the jobs that are queued: one more job wants one
 * more thread, while there may be more. A lane that has any gets on without. */
static bool has_thread_for_one_more(struct lane *lane)
{
    if (lane->idle <= lane->queued && lane->started < lane->threads_max &&
        thread_start(&lane->threads[lane->started], lane->name, 0, lane_main, lane, NULL) == 0)
        lane->started++;
    return lane->started > 0;
}

/* Lane locked. */
static int admit(struct lane *lane, struct job *job)
{
    if (lane->closing)
        return ERR_CLOSED;
    if (lane->queued >= lane->queue_max) {
        lane->refused++;
        return ERR_BUSY;
    }
    if (!has_thread_for_one_more(lane))
        return ERR_SYSTEM;
    list_append(&lane->queue, &job->link);
    lane->queued++;
    atomic_store_explicit(&job->state, JOB_QUEUED, memory_order_relaxed);
    return 0;
}

int lane_submit(struct lane *lane, struct job *job, struct inbox *home)
{
    int rc;

    assert(atomic_load(&job->state) == JOB_IDLE);
    job->message = (struct message){ .deliver = deliver_job, .drop = drop_job };
    job->lane    = lane;
    job->home    = home;
    atomic_store_explicit(&job->cancelled, false, memory_order_relaxed);

    pthread_mutex_lock(&lane->lock);
    rc = admit(lane, job);
    pthread_mutex_unlock(&lane->lock);
    if (rc == 0)
        pthread_cond_signal(&lane->changed);
    return rc;
}

int lane_open(struct lane **out, struct pool *pool, const char *name, unsigned threads,
              unsigned queue_max, struct err *err)
{
    struct lane *lane = calloc(1, sizeof(*lane));

    assert(threads > 0 && queue_max > 0);
    if (lane)
        lane->threads = calloc(threads, sizeof(*lane->threads));
    if (!lane || !lane->threads) {
        free(lane);
        return err_set(err, ERR_MEMORY, "no memory for lane %s", name);
    }
    lane->name        = name;
    lane->threads_max = threads;
    lane->queue_max   = queue_max;
    list_init(&lane->queue);
    pthread_mutex_init(&lane->lock, NULL);
    pthread_cond_init(&lane->changed, NULL);
    list_append(&pool->lanes, &lane->link);
    *out = lane;
    return 0;
}

void lane_stats(struct lane *lane, struct lane_stats *out)
{
    pthread_mutex_lock(&lane->lock);
    *out = (struct lane_stats){ .name    = lane->name,
                                .queued  = lane->queued,
                                .running = lane->started - lane->idle,
                                .threads = lane->started,
                                .done    = lane->done,
                                .refused = lane->refused };
    pthread_mutex_unlock(&lane->lock);
}

static void drop_all(struct list *jobs)
{
    struct list *node;

    while ((node = list_take_first(jobs)))
        drop_job(&container_of(node, struct job, link)->message);
}

static void stop_lane(struct lane *lane)
{
    struct list unwanted;

    list_init(&unwanted);
    pthread_mutex_lock(&lane->lock);
    lane->closing = true;
    list_splice(&unwanted, &lane->queue);
    lane->queued = 0;
    pthread_mutex_unlock(&lane->lock);
    pthread_cond_broadcast(&lane->changed);
    drop_all(&unwanted);
}

static void free_lane(struct lane *lane)
{
    for (unsigned i = 0; i < lane->started; i++)
        thread_join(&lane->threads[i]);
    pthread_cond_destroy(&lane->changed);
    pthread_mutex_destroy(&lane->lock);
    free(lane->threads);
    free(lane);
}

/* --- the pool ------------------------------------------------------------------------------- */

int pool_open(struct pool **out, struct err *err)
{
    struct pool *pool = calloc(1, sizeof(*pool));

    if (!pool)
        return err_set(err, ERR_MEMORY, "no memory for the thread pool");
    list_init(&pool->lanes);
    *out = pool;
    return 0;
}

/* All lanes are told before the first is waited for, so their last jobs end side by side. */
void pool_close(struct pool *pool)
{
    struct list *node;

    if (!pool)
        return;
    list_each(lane, &pool->lanes) stop_lane(container_of(lane, struct lane, link));
    while ((node = list_take_first(&pool->lanes)))
        free_lane(container_of(node, struct lane, link));
    free(pool);
}
