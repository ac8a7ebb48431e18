/* server/crash.h - last words: a fault in C code names its signal and the route that ran, for the
 * supervisor to log, and then ends the process as it would have ended anyway. */
#ifndef SERVER_CRASH_H
#define SERVER_CRASH_H

struct last_words;
struct sched;

/* Handlers for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT. Once for the process. */
void crash_watch(struct last_words *words);

/* Names the scheduler whose running task is to blame for a fault of the calling thread, and gives the
 * handlers a stack of their own there, since C code without end has used up the thread's. NULL, before
 * the thread ends: none, and the stack is freed. */
void crash_blame(const struct sched *sched);

#endif
