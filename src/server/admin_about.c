#include "server/admin_about.h"

#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "server/config.h"
#include "server/version.h"

enum { ANSWER_BYTES_MAX = 64 * 1024 };

static void add_text(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, "\"%s\":", name);
    json_string(out, str_of(text));
    buf_add_byte(out, ',');
}

static void begin(struct admin_client *client, struct str args, void *arg)
{
    const struct admin_about *about = arg;
    struct buf                out;

    buf_init(&out, ANSWER_BYTES_MAX);
    buf_add_byte(&out, '{');
    add_text(&out, "version", SRV_VERSION);
    add_text(&out, "app", about->config->app_root);
    buf_printf(&out, "\"pid\":%d,\"workers\":%u}", (int)getpid(), about->workers);
    admin_say(client, buf_str(&out));
    buf_fini(&out);
    admin_end(client);
}

void admin_about_add(struct admin_about *about, struct admin *admin, const struct config *config,
                     unsigned workers)
{
    *about = (struct admin_about){ .command = { .name = "about", .begin = begin, .arg = about },
                                   .config  = config,
                                   .workers = workers };
    admin_add(admin, &about->command);
}
