#include "server/account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

/* False: it does not fit. */
static bool copy_text(char *to, size_t room, const char *text)
{
    size_t len = strlen(text) + 1;

    if (len <= room)
        memcpy(to, text, len);
    return len <= room;
}

int account_find(struct account *out, const char *name, struct err *err)
{
    const struct passwd *found;

    errno = 0;
    found = getpwnam(name);
    if (!found && errno != 0 && errno != ENOENT)
        return err_set_errno(err, "cannot look for the user \"%.64s\"", name);
    if (!found)
        return err_set(err, ERR_NOT_FOUND, "there is no user \"%.64s\" on this machine", name);
    if (!copy_text(out->name, sizeof(out->name), found->pw_name) ||
        !copy_text(out->home, sizeof(out->home), found->pw_dir))
        return err_set(err, ERR_TOO_LARGE, "the name or home of the user \"%.64s\" is too long",
                       name);
    out->uid = found->pw_uid;
    out->gid = found->pw_gid;
    return 0;
}

bool account_is_ours(const struct account *account)
{
    return getuid() == account->uid && geteuid() == account->uid;
}

/* A capability that was kept (a container's own rules) would let any of these succeed. */
static bool can_come_back(const struct account *account)
{
    uid_t real, effective, saved;

    if (setuid(0) == 0 || seteuid(0) == 0 || setgroups(0, NULL) == 0)
        return true;
    return getresuid(&real, &effective, &saved) != 0 || real != account->uid ||
           effective != account->uid || saved != account->uid;
}

/* Libraries look for their files there (libpq, for one, fails at what it may not look into). */
static int follow_home(const struct account *account)
{
    return setenv("HOME", account->home, 1) == 0 && setenv("USER", account->name, 1) == 0 &&
                   setenv("LOGNAME", account->name, 1) == 0
               ? 0
               : -1;
}

int account_become(const struct account *account, struct err *err)
{
    if (initgroups(account->name, account->gid) != 0)
        return err_set_errno(err, "cannot take the groups of the user \"%s\"", account->name);
    if (setresgid(account->gid, account->gid, account->gid) != 0)
        return err_set_errno(err, "cannot take the group of the user \"%s\"", account->name);
    if (setresuid(account->uid, account->uid, account->uid) != 0)
        return err_set_errno(err, "cannot become the user \"%s\"", account->name);
    if (can_come_back(account))
        return err_set(err, ERR_DENIED, "the user \"%s\" could become root again", account->name);
    if (follow_home(account) != 0)
        return err_set(err, ERR_MEMORY, "no memory for the environment");
    return 0;
}
