/* server/account.h - the account that a server started by root runs as, once the port is open.
 *
 * No threads may run yet, no Lua: the supervisor calls this too. */
#ifndef SERVER_ACCOUNT_H
#define SERVER_ACCOUNT_H

#include <stdbool.h>
#include <sys/types.h>

struct err;

enum { ACCOUNT_NAME_BYTES = 64, ACCOUNT_HOME_BYTES = 256 }; /* with a NUL */

struct account {
    char  name[ACCOUNT_NAME_BYTES];
    char  home[ACCOUNT_HOME_BYTES];
    uid_t uid;
    gid_t gid;
};

/* ERR_NOT_FOUND: this machine has no such account. */
int account_find(struct account *out, const char *name, struct err *err);

/* Whether the process runs as it already. */
bool account_is_ours(const struct account *account);

/* The process is root and takes the account's user, group and further groups, for good: that there
 * is no way back is tried. HOME, USER and LOGNAME follow. After an error nothing may go on. */
int account_become(const struct account *account, struct err *err);

#endif
