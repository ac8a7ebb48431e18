/* base/temps.h - the temporary files of a process: in a folder of its own below $TMPDIR or /tmp, 0700, made with the
 * first of them.
 *
 * The folder is locked for as long as the process lives, by flock(2), so a process that was killed lets go of
 * it: what such ones of the same user have left is removed when another begins. No clock is asked and no
 * process id, which mean nothing to another container that shares the folder above. */
#ifndef BASE_TEMPS_H
#define BASE_TEMPS_H

#include <stddef.h>

struct err;
struct temps;

/* Removes what others have left. The functions below are for all threads, this one and the last may block. */
int temps_open(struct temps **out, struct err *err);

/* A new file of our own, open for reading and writing; whoever asked for it removes it. May block. */
int temps_file(struct temps *temps, const char *suffix, char *path, size_t room, int *fd,
               struct err *err);

/* Removes the folder with what is still in it. NULL is fine. */
void temps_close(struct temps *temps);

#endif
