#include "server/admin.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "net/addr.h"
#include "net/listener.h"
#include "net/stream.h"

enum { READ_BYTES = 16 * 1024, FAULT_BYTES = 512 };

struct admin {
    struct loop          *loop;
    struct listener      *listener;
    struct listener_watch watch;
    struct list           commands;
    struct list           clients;
    unsigned              client_count;
    char                  path[ADMIN_PATH_BYTES];
};

struct admin_client {
    struct list                 link;
    struct admin               *admin;
    struct stream               stream;
    struct buf                  in, out;
    const struct admin_command *command; /* NULL: its line has not come */
    void                       *state;
    bool                        is_ended;  /* by the command: closes when all is out */
    bool                        is_broken; /* closes in the next round */
    struct later                close;
};

/* --- a client's end ---------------------------------------------------------------------------------- */

static void free_client(struct admin_client *client)
{
    struct admin *admin = client->admin;

    if (client->command && !client->is_ended && client->command->gone)
        client->command->gone(client, client->command->arg);
    later_cancel(&client->close);
    list_remove(&client->link);
    admin->client_count--;
    stream_fini(&client->stream);
    buf_fini(&client->in);
    buf_fini(&client->out);
    free(client);
}

static void on_close(struct later *later)
{
    free_client(container_of(later, struct admin_client, close));
}

/* Not from within: whoever has called us may still look at it. */
static void close_soon(struct admin_client *client)
{
    client->is_broken = true;
    loop_later(client->admin->loop, &client->close);
}

/* --- out ------------------------------------------------------------------------------------------------ */

static void flush(struct admin_client *client)
{
    struct buf *out = &client->out;

    while (out->len && client->stream.can_write && !client->is_broken) {
        struct iovec piece = { out->at, out->len };
        ssize_t      n     = stream_writev(&client->stream, &piece, 1);

        if (n == STREAM_FAIL)
            close_soon(client);
        else if (n > 0)
            buf_consume(out, (size_t)n);
    }
    if (client->is_ended && !out->len)
        close_soon(client);
}

void admin_say(struct admin_client *client, struct str text)
{
    if (client->is_broken || client->is_ended)
        return;
    buf_add_str(&client->out, text);
    buf_add_byte(&client->out, '\n');
    if (client->out.failed) {
        log_warn("a client of the admin socket reads too slowly and is cut", "command=%s",
                 client->command->name);
        close_soon(client);
        return;
    }
    flush(client);
}

size_t admin_unread(const struct admin_client *client)
{
    return client->out.len;
}

void admin_end(struct admin_client *client)
{
    client->is_ended = true;
    flush(client);
}

void admin_fail(struct admin_client *client, const char *format, ...)
{
    char       text[FAULT_BYTES];
    struct buf line;
    va_list    args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_init(&line, 8 * FAULT_BYTES);
    buf_add_str(&line, STR("{\"error\":"));
    json_string(&line, str_of(text));
    buf_add_byte(&line, '}');
    admin_say(client, buf_str(&line));
    buf_fini(&line);
    admin_end(client);
}

void *admin_state(const struct admin_client *client)
{
    return client->state;
}

void admin_set_state(struct admin_client *client, void *state)
{
    client->state = state;
}

/* --- in ------------------------------------------------------------------------------------------------- */

static const struct admin_command *find_command(struct admin *admin, struct str name)
{
    list_each(link, &admin->commands)
    {
        struct admin_command *command = container_of(link, struct admin_command, link);

        if (str_is(name, str_of(command->name)))
            return command;
    }
    return NULL;
}

static void begin_command(struct admin_client *client, struct str line)
{
    size_t     space = str_find(line, ' ');
    struct str name  = str_make(line.at, space);
    struct str args  = str_trim(str_make(line.at + space, line.len - space));

    client->command = find_command(client->admin, name);
    if (client->command)
        client->command->begin(client, args, client->command->arg);
    else
        admin_fail(client, "unknown command \"%.*s\"", (int)(name.len < 64 ? name.len : 64),
                   name.at);
}

static void take_line(struct admin_client *client, struct str line)
{
    if (client->is_ended)
        return;
    if (!client->command)
        begin_command(client, line);
    else if (client->command->line)
        client->command->line(client, line, client->command->arg);
}

static void take_lines(struct admin_client *client)
{
    char *end;

    while (!client->is_broken && client->in.len &&
           (end = memchr(client->in.at, '\n', client->in.len))) {
        size_t len = (size_t)(end - client->in.at);

        take_line(client, str_make(client->in.at, len));
        buf_consume(&client->in, len + 1);
    }
}

static void read_all(struct admin_client *client)
{
    while (client->stream.can_read && !client->is_broken) {
        char   *to = buf_reserve(&client->in, READ_BYTES);
        ssize_t n  = to ? stream_read(&client->stream, to, READ_BYTES) : STREAM_FAIL;

        if (n == STREAM_WAIT)
            return;
        if (n <= 0) {
            close_soon(client);
            return;
        }
        client->in.len += (size_t)n;
        take_lines(client);
    }
}

static void on_event(struct stream *stream, void *arg)
{
    struct admin_client *client = arg;

    flush(client);
    read_all(client);
}

/* --- who is asking ---------------------------------------------------------------------------------------- */

/* The folder keeps others out already; a second lock, for a folder that was opened to them. */
static bool is_owner(int fd)
{
    struct ucred peer;
    socklen_t    len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

/* In a word, if its socket takes one at once. */
static void turn_away(int fd)
{
    static const char WORD[] = "{\"error\":\"too many ask the admin socket at once: try again\"}\n";

    (void)!send(fd, WORD, sizeof(WORD) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

static void on_accept(int fd, const struct addr *peer, void *arg)
{
    struct admin        *admin = arg;
    struct admin_client *client;

    if (!is_owner(fd)) {
        close(fd);
        return;
    }
    if (admin->client_count == ADMIN_CLIENTS_MAX || !(client = calloc(1, sizeof(*client)))) {
        turn_away(fd);
        return;
    }
    client->admin = admin;
    if (stream_init(&client->stream, admin->loop, fd, on_event, client) != 0) {
        free(client);
        return;
    }
    buf_init(&client->in, ADMIN_LINE_MAX);
    buf_init(&client->out, ADMIN_UNREAD_MAX);
    later_init(&client->close, on_close);
    list_append(&admin->clients, &client->link);
    admin->client_count++;
}

/* --- life ---------------------------------------------------------------------------------------------------- */

static void folder_of(char *folder)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    if (runtime && runtime[0] == '/' && strlen(runtime) < ADMIN_PATH_BYTES - 32)
        snprintf(folder, ADMIN_PATH_BYTES, "%s/srv", runtime);
    else
        snprintf(folder, ADMIN_PATH_BYTES, "/tmp/srv-%u", (unsigned)geteuid());
}

void admin_path(char path[ADMIN_PATH_BYTES], pid_t pid)
{
    char folder[ADMIN_PATH_BYTES];

    folder_of(folder);
    snprintf(path, ADMIN_PATH_BYTES, "%.80s/%d.sock", folder, (int)pid);
}

/* In a folder that anybody may write to, somebody else may have been first. */
static int make_folder(struct err *err)
{
    char        folder[ADMIN_PATH_BYTES];
    struct stat found;

    folder_of(folder);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return err_set(err, ERR_SYSTEM, "%s: %s", folder, strerror(errno));
    if (lstat(folder, &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != geteuid() ||
        (found.st_mode & 077) != 0)
        return err_set(err, ERR_DENIED, "%s is not a folder of this user's alone (mode 0700)",
                       folder);
    return 0;
}

/* "4711.sock" of a process that has gone without taking it away: it was killed. */
static bool is_left_over(const char *name)
{
    const char *end = strchr(name, '.');
    uint64_t    pid;

    return end && strcmp(end, ".sock") == 0 &&
           str_to_u64(str_make(name, (size_t)(end - name)), INT32_MAX, &pid) && pid > 0 &&
           kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static void sweep_folder(void)
{
    char           path[ADMIN_PATH_BYTES];
    DIR           *folder;
    struct dirent *entry;

    folder_of(path);
    folder = opendir(path);
    while (folder && (entry = readdir(folder)))
        if (is_left_over(entry->d_name))
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}

int admin_open(struct admin **out, struct loop *loop, const char *path, struct err *err)
{
    struct admin *admin = calloc(1, sizeof(*admin));
    struct addr   at;
    int           rc;

    if (!admin)
        return err_set(err, ERR_MEMORY, "no memory");
    admin->loop = loop;
    list_init(&admin->commands);
    list_init(&admin->clients);
    snprintf(admin->path, sizeof(admin->path), "%s", path);
    rc = make_folder(err);
    if (rc == 0)
        sweep_folder();
    if (rc == 0)
        rc = addr_parse_path(&at, admin->path, err);
    if (rc == 0)
        rc = listener_open(&admin->listener, &at, 1, err);
    if (rc == 0) {
        listener_watch_init(&admin->watch, loop, on_accept, NULL, admin);
        if (listener_watch_start(&admin->watch, listener_fd(admin->listener, 0)) != 0)
            rc = err_set_errno(err, "watching the admin socket");
    }
    if (rc != 0) {
        listener_withdraw(admin->listener);
        free(admin);
        return rc;
    }
    *out = admin;
    return 0;
}

void admin_close(struct admin *admin)
{
    if (!admin)
        return;
    listener_watch_stop(&admin->watch);
    list_each_safe(link, &admin->clients)
        free_client(container_of(link, struct admin_client, link));
    listener_withdraw(admin->listener);
    free(admin);
}

void admin_add(struct admin *admin, struct admin_command *command)
{
    list_append(&admin->commands, &command->link);
}
