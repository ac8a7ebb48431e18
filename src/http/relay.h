/* http/relay.h - two channels whose bytes go to each other, until one of them ends: what a reverse proxy makes
 * of an upgrade. It knows nothing of what they say.
 *
 * Nothing is read that the other side has no room for, so a slow one holds the other up. */
#ifndef HTTP_RELAY_H
#define HTTP_RELAY_H

#include <stdbool.h>

struct channel;

/* Both sides have been let go. */
typedef void (*relay_fn)(void *arg);

/* Takes both. An end on one side goes on behind all that came before it; a cut is a cut. ON_OVER comes once,
 * from the loop's turn. False: no memory, both are the caller's still. */
bool relay_start(struct channel *one, struct channel *other, relay_fn on_over, void *arg);

#endif
