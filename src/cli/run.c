#include "cli/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/err.h"
#include "base/rand.h"
#include "cli/usage.h"
#include "server/config.h"
#include "server/server.h"
#include "server/supervisor.h"

/* One flag as typed, waiting until file and environment have been read, for it beats them. */
struct flag {
    char        origin[64 + 2]; /* "--body-limit", without what is behind its "=" */
    char        name[64];
    const char *value;
};

enum { FLAGS_MAX = 128, SECRET_BYTES = 32, LIST_BYTES_MAX = 64 * 1024 };

struct command_line {
    const char *app;
    struct flag flags[FLAGS_MAX];
    unsigned    flag_count;
    struct buf  secret; /* where nobody sets one; text with its NUL */
};

/* "--no-watch" -> "watch"; "--body-limit" -> "body_limit" */
static void setting_name(const char *flag, size_t len, char *name, size_t room)
{
    snprintf(name, room, "%.*s", (int)len, flag);
    for (char *at = name; *at; at++)
        *at = *at == '-' ? '_' : *at;
}

static int read_flag(struct command_line *line, int argc, char **argv, int *at)
{
    struct flag *flag  = &line->flags[line->flag_count];
    const char  *text  = argv[*at] + 2;
    const char  *equal = strchr(text, '=');
    size_t       len   = equal ? (size_t)(equal - text) : strlen(text);

    if (line->flag_count == FLAGS_MAX)
        return usage_error("too many flags");
    line->flag_count++;
    snprintf(flag->origin, sizeof(flag->origin), "--%.*s", (int)len, text);
    setting_name(text, len, flag->name, sizeof(flag->name));
    if (strncmp(flag->name, "no_", 3) == 0 && config_is_switch(flag->name + 3)) {
        if (equal)
            return usage_error("%s takes no value", flag->origin);
        memmove(flag->name, flag->name + 3, strlen(flag->name) - 2);
        flag->value = "false";
    } else if (equal) {
        flag->value = equal + 1;
    } else if (config_is_switch(flag->name)) {
        flag->value = "true";
    } else if (*at + 1 < argc) {
        flag->value = argv[++*at];
    } else if (config_has(flag->name)) {
        return usage_error("%s needs a value", argv[*at]);
    } else {
        flag->value = ""; /* config_set() says that there is none of this name */
    }
    return CLI_DONE;
}

static int read_command_line(struct command_line *line, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        int rc;

        if (strcmp(argv[i], "--help") == 0)
            return usage_help(), -1;
        if (strncmp(argv[i], "--", 2) == 0 && argv[i][2]) {
            rc = read_flag(line, argc, argv, &i);
            if (rc != CLI_DONE)
                return rc;
        } else if (argv[i][0] == '-') {
            return usage_error("unknown flag \"%s\"", argv[i]);
        } else if (line->app) {
            return usage_error("one app at a time: \"%s\" or \"%s\"?", line->app, argv[i]);
        } else {
            line->app = argv[i];
        }
    }
    return line->app ? CLI_DONE : usage_error("which app? srv run APP");
}

/* Of a list, all that its flag was given up to number LAST: "--cert a --cert b" is "--cert a,b". */
static int apply_list(struct config *config, const struct command_line *line, unsigned last,
                      struct err *err)
{
    const struct flag *flag = &line->flags[last];
    struct buf         value;
    int                rc;

    buf_init(&value, LIST_BYTES_MAX);
    for (unsigned i = 0; i <= last; i++)
        if (strcmp(line->flags[i].name, flag->name) == 0)
            buf_printf(&value, "%s%s", value.len ? "," : "", line->flags[i].value);
    buf_add_byte(&value, '\0');
    rc = value.failed ? err_set(err, ERR_TOO_LARGE, "%s: the list is too long", flag->origin)
                      : config_set(config, flag->name, value.at, flag->origin, err);
    buf_fini(&value);
    return rc;
}

static int apply_flags(struct config *config, const struct command_line *line, struct err *err)
{
    for (unsigned i = 0; i < line->flag_count; i++) {
        const struct flag *flag = &line->flags[i];
        int                rc   = config_is_list(flag->name)
                                      ? apply_list(config, line, i, err)
                                      : config_set(config, flag->name, flag->value, flag->origin, err);

        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Cookies are signed in any case. Made once, in the supervisor, so that a server that is started
 * again still knows those that were given out. */
static void make_secret(struct command_line *line)
{
    char bytes[SECRET_BYTES];

    rand_bytes(bytes, sizeof(bytes));
    buf_init(&line->secret, 4 * SECRET_BYTES);
    codec_hex(&line->secret, str_make(bytes, sizeof(bytes)));
    buf_add_byte(&line->secret, '\0');
}

static int complete(struct config *config, const struct command_line *line, struct err *err)
{
    return *config->secret ? 0
                           : config_set(config, "secret", line->secret.at, "made at start", err);
}

/* Highest precedence last. A flag that is wrong is the user's slip, a file or variable the app's. */
static int configure(struct config *config, const struct command_line *line)
{
    struct err err = { 0 };

    config_init(config);
    if (apply_flags(config, line, &err) != 0)
        return usage_error("%s", err.text);
    if (config_set_app(config, line->app, &err) != 0 || config_read_file(config, &err) != 0 ||
        config_read_environment(config, &err) != 0 || apply_flags(config, line, &err) != 0 ||
        complete(config, line, &err) != 0) {
        fprintf(stderr, "srv: %s\n", err.text);
        return CLI_FAILED;
    }
    return CLI_DONE;
}

/* What the server's process does: the configuration is read there, since the supervisor has no
 * Lua, and again at each restart, since the file may have been mended. */
static int serve(struct supervisor_link *link, void *arg)
{
    struct config *config = malloc(sizeof(*config));
    int            status;

    if (!config)
        return CLI_FAILED;
    status = configure(config, arg);
    if (status == CLI_DONE)
        status = server_run(config, link);
    config_fini(config);
    free(config);
    return status;
}

static bool wants_single(const struct command_line *line)
{
    for (unsigned i = 0; i < line->flag_count; i++)
        if (strcmp(line->flags[i].name, "single") == 0)
            return strcmp(line->flags[i].value, "false") != 0;
    return false;
}

int run_main(int argc, char **argv)
{
    static struct command_line line;
    int                        status = read_command_line(&line, argc, argv);

    if (status != CLI_DONE)
        return status < 0 ? CLI_DONE : status;
    make_secret(&line);
    if (wants_single(&line))
        return supervisor_run_single(serve, &line);
    return supervisor_run(serve, &line);
}
