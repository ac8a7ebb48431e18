/* ev/thread.h - named threads that leave signals to the main thread.
 *
 * All threads block every signal but SIGURG and SIGPROF, by which watchdog and profiler reach the
 * thread that runs a VM, and the faults, which cannot be put off. The main thread waits for the others in sigwait(). */
#ifndef EV_THREAD_H
#define EV_THREAD_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>

struct err;

/* Stays where it is until thread_join(). */
struct thread {
    pthread_t id;
    char      name[16]; /* what the kernel keeps: 15 bytes and a NUL */
    void (*run)(void *arg);
    void *arg;
    sem_t ended; /* sanitizers know no join with a limit */
};

/* Runs RUN(ARG) on a new thread. NAME is cut to 15 bytes; STACK_BYTES 0 takes the system's.
 * 0, or ERR_SYSTEM. */
int thread_start(struct thread *thread, const char *name, size_t stack_bytes,
                 void (*run)(void *arg), void *arg, struct err *err);
/* Once for each thread started. */
void thread_join(struct thread *thread);
/* False: it has not ended within MS, and may be joined later. */
bool thread_join_within(struct thread *thread, unsigned ms);

/* Blocks, in the calling thread and those it starts, what all threads of the server block. */
void thread_block_signals(void);

#endif
