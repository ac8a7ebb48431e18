#include "server/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "server/account.h"
#include "server/config.h"
#include "server/place.h"
#include "server/supervisor.h"

/* --- what is made the user's -------------------------------------------------------------------- */

static int give_away(int fd, const struct account *account, const char *path, struct err *err)
{
    int rc = 0;

    if (fchownat(fd, "", account->uid, account->gid, AT_EMPTY_PATH) != 0)
        rc = err_set_errno(err, "cannot give %s to the user \"%s\"", path, account->name);
    close(fd);
    return rc;
}

/* A log that is not there yet: its folder is root's as a rule. One that is there is opened by the
 * user like any file, for root must not follow where a link of somebody else's leads. */
static int make_log(const struct config *config, const struct account *account, struct err *err)
{
    int fd = -1;

    if (*config->log_file)
        fd = open(config->log_file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
    return fd < 0 ? 0 : give_away(fd, account, config->log_file, err);
}

/* Only a socket of root's without a second name can be the one that we have made just now. */
static int give_socket(const struct config *config, const struct account *account, struct err *err)
{
    const char *path = config->unix_path;
    struct stat about;
    int         fd;

    if (!*path || *path == '@')
        return 0;
    fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, "cannot look at the socket %s", path);
    if (fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode) && about.st_uid == 0 &&
        about.st_nlink == 1)
        return give_away(fd, account, path, err);
    close(fd);
    return err_set(err, ERR_DENIED, "somebody else has changed the socket %s", path);
}

/* --- what he must be able to do ----------------------------------------------------------------- */

static int check(const char *path, int mode, const struct account *account, struct err *err)
{
    if (access(path, mode) == 0)
        return 0;
    return err_set_errno(err, "the user \"%s\" cannot %s %s", account->name,
                         mode & W_OK ? "write" : "read", path);
}

/* A restart after a crash, an edit, a rotation must not be the first to find out. */
static int check_files(const struct config *config, const struct account *account, struct err *err)
{
    char path[sizeof(config->app_root) + 16];
    int  rc = check(config->app_root, R_OK | X_OK, account, err);

    snprintf(path, sizeof(path), "%s/config.lua", config->app_root);
    if (rc == 0 && (access(path, F_OK) == 0 || errno != ENOENT))
        rc = check(path, R_OK, account, err);
    if (rc == 0 && *config->app_file)
        rc = check(config->app_file, R_OK, account, err);
    if (rc == 0 && *config->log_file)
        rc = check(config->log_file, W_OK, account, err);
    return rc;
}

/* --- the handover --------------------------------------------------------------------------------- */

static int hand_over_to(const struct account *account, const struct config *config,
                        struct supervisor_link *link, struct err *err)
{
    int rc = make_log(config, account, err);

    if (rc == 0)
        rc = give_socket(config, account, err);
    if (rc == 0)
        rc = account_become(account, err);
    if (rc == 0)
        rc = supervisor_follow(link, account->name, err);
    if (rc == 0)
        rc = check_files(config, account, err);
    return rc;
}

int handover(const struct config *config, struct supervisor_link *link, struct err *err)
{
    struct account account;
    struct err     why = { 0 };
    int            rc;

    if (!*config->user)
        return 0;
    rc = account_find(&account, config->user, &why);
    if (rc == 0 && account_is_ours(&account))
        return 0;
    if (rc == 0 && geteuid() != 0)
        rc = err_set(&why, ERR_DENIED,
                     "only root can become \"%s\": start it as root or as that user", config->user);
    if (rc == 0)
        rc = hand_over_to(&account, config, link, &why);
    if (rc != 0)
        err_set(err, rc, "%s: %s", place_of(config_origin(config, "user"), "user").text, why.text);
    return rc;
}
