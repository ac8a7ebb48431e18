#include "server/vitals_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/check.h"

enum { QUEUE = 7, CLIENTS = 3, DIRTY_BYTES = 32 * 1024 * 1024 };

TEST(memory_and_descriptors_are_this_processes_own)
{
    struct vitals_process before, after;
    char                 *dirty;
    int                   fd;

    vitals_process_read(&before);
    dirty = malloc(DIRTY_BYTES);
    CHECK(dirty != NULL);
    memset(dirty, 1, DIRTY_BYTES);
    fd = open("/dev/null", O_RDONLY);
    vitals_process_read(&after);
    CHECK(dirty[DIRTY_BYTES - 1] == 1);
    CHECK_INT((int)(after.fds - before.fds), 1);
    CHECK(after.rss_bytes >= before.rss_bytes + DIRTY_BYTES / 2);
    CHECK(after.cpu_ns > before.cpu_ns);
    close(fd);
    free(dirty);
}

static int listening(struct sockaddr_in *at)
{
    socklen_t len = sizeof(*at);
    int       fd  = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    CHECK_INT(bind(fd, (struct sockaddr *)at, sizeof(*at)), 0);
    CHECK_INT(listen(fd, QUEUE), 0);
    CHECK_INT(getsockname(fd, (struct sockaddr *)at, &len), 0);
    return fd;
}

TEST(the_accept_queue_is_seen_filling_up)
{
    struct sockaddr_in    at;
    struct vitals_backlog backlog;
    int                   clients[CLIENTS];
    int                   fd = listening(&at);

    vitals_backlog_read(&backlog, fd);
    CHECK_INT((int)backlog.waiting, 0);
    CHECK_INT((int)backlog.max, QUEUE);
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_INT(connect(clients[i], (struct sockaddr *)&at, sizeof(at)), 0);
    }
    vitals_backlog_read(&backlog, fd);
    CHECK_INT((int)backlog.waiting, CLIENTS);
    for (unsigned i = 0; i < CLIENTS; i++)
        close(clients[i]);
    close(fd);
}

TEST(what_does_not_listen_has_no_queue)
{
    struct vitals_backlog backlog = { 9, 9 };

    vitals_backlog_read(&backlog, -1);
    CHECK_INT((int)backlog.max, 0);
    vitals_backlog_read(&backlog, STDIN_FILENO);
    CHECK_INT((int)backlog.max, 0);
}

int main(void)
{
    return check_run();
}
