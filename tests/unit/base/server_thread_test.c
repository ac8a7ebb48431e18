/* The servers of tests themselves (tests/support/server_thread.h): what a test that fails leaves behind. */
#include "support/server_thread.h"

#include "support/scripted_server.h"

static struct scripted_server server;

static bool answer(struct scripted_peer *peer, const char *head)
{
    scripted_send(peer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    return true;
}

/* A peer that is connected, and has heard an answer. */
static int ask(void)
{
    struct sockaddr_in at        = { .sin_family      = AF_INET,
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                     .sin_port        = htons(server.thread.port) };
    const char         request[] = "GET / HTTP/1.1\r\n\r\n";
    char               heard[100];
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
        send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0 &&
        recv(fd, heard, sizeof(heard), 0) > 0)
        return fd;
    close(fd);
    return -1;
}

static int left;

static void skip_with_a_server(void)
{
    scripted_start(&server, answer);
    left = ask();
    SKIP("as a failed check, it jumps");
}

/* As check_run() does it, whose place to jump to stays. */
static enum check_verdict run(void (*test)(void))
{
    const struct check_test inner = { "inner", test, NULL };
    jmp_buf                 outer;
    enum check_verdict      verdict;

    memcpy(outer, check_failed, sizeof(outer));
    verdict = check_one(&inner);
    check_end_all();
    memcpy(check_failed, outer, sizeof(outer));
    return verdict;
}

TEST(a_test_that_ends_early_leaves_no_server)
{
    char byte;

    for (unsigned i = 0; i < 2; i++) {
        CHECK_INT(run(skip_with_a_server), CHECK_SKIPPED);
        CHECK(left >= 0);
        CHECK_INT(recv(left, &byte, 1, 0), 0); /* nobody is there any more */
        close(left);
        CHECK_INT(ask(), -1);
        CHECK_INT(check_open_count, 0);
    }
}

TEST(a_server_that_was_stopped_is_not_stopped_again)
{
    int peer;

    scripted_start(&server, answer);
    CHECK_INT(check_open_count, 1);
    peer = ask();
    CHECK(peer >= 0);
    scripted_stop(&server);
    CHECK_INT(check_open_count, 0);
    close(peer);
}

int main(void)
{
    return check_run();
}
