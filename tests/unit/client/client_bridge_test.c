#include "client/client_bridge.h"

#include "support/tls_pair.h"

/* `ours` is the proxy, `theirs` the near end. */

static struct tls_server    *server;
static struct tls_clients   *clients;
static struct client_bridge *bridge;

static void close_all(void)
{
    pair_close();
    client_bridge_close(bridge);
    tls_clients_free(clients);
    tls_server_close(server);
    bridge  = NULL;
    clients = NULL;
    server  = NULL;
    pair_end();
}

static int take_fd(struct tls_end *end)
{
    end->is_open = false;
    buf_fini(&end->got);
    return stream_detach(&end->stream);
}

/* To a proxy that should be called NAME. */
static void open_bridge(const char *name)
{
    struct client_tls settings = { .id = STR("a"), .name = str_of(name) };
    int               fd, near = -1;

    pair_open(0);
    server      = plain_server();
    clients     = tls_clients_new(tls);
    settings.ca = buf_str(&authority.cert);
    CHECK_INT(tls_accept(&ours.stream, server, STR_NONE), 0);
    fd     = take_fd(&theirs);
    bridge = client_bridge_open(loop, clients, &settings, fd, &near, &pair_err);
    CHECK(bridge != NULL);
    end_open(&theirs, near);
}

TEST(what_goes_in_at_the_near_end_comes_by_tls_and_back)
{
    open_bridge("a.example");
    CHECK_INT(end_send(&theirs, "hello"), 5);
    RUN_UNTIL(ours.got.len == 5);
    CHECK_STR(tls_info(&ours.stream)->sni, "a.example");
    CHECK_INT(end_send(&ours, "there"), 5);
    RUN_UNTIL(theirs.got.len == 5);
    CHECK_INT(memcmp(theirs.got.at, "there", 5), 0);
    CHECK_STR(client_bridge_fault(bridge), "");
    close_all();
}

/* More than both pairs of sockets hold. */
TEST(nothing_is_lost_where_one_side_is_slow)
{
    enum { TEXT_BYTES = 3 * 1024 * 1024 };
    char  *text = malloc(TEXT_BYTES);
    size_t sent = 0;

    for (size_t i = 0; i < TEXT_BYTES; i++)
        text[i] = (char)(i * 31 + i / 251);
    open_bridge("a.example");
    RUN_UNTIL(tls_info(&ours.stream));
    theirs.reads = false;
    while (sent < TEXT_BYTES) {
        struct iovec iov = { text + sent, TEXT_BYTES - sent };
        ssize_t      n   = stream_writev(&ours.stream, &iov, 1);

        if (n > 0) {
            sent += (size_t)n;
            continue;
        }
        CHECK_INT(n, STREAM_WAIT);
        end_read(&theirs);
        run_turn();
    }
    theirs.reads = true;
    end_read(&theirs);
    RUN_UNTIL(theirs.got.len == TEXT_BYTES);
    CHECK_INT(memcmp(theirs.got.at, text, TEXT_BYTES), 0);
    free(text);
    close_all();
}

TEST(an_end_goes_through_each_way_also_one_before_the_handshake_is_over)
{
    open_bridge("a.example");
    stream_shut(&theirs.stream);
    RUN_UNTIL(ours.last == STREAM_FIN);
    CHECK(!ours.stream.cut);
    CHECK_INT(end_send(&ours, "last"), 4);
    stream_shut(&ours.stream);
    RUN_UNTIL(theirs.last == STREAM_FIN);
    CHECK_INT(theirs.got.len, 4);
    close_all();
}

TEST(what_was_said_last_is_passed_on_with_the_end)
{
    open_bridge("a.example");
    CHECK_INT(end_send(&theirs, "hello"), 5);
    RUN_UNTIL(ours.got.len == 5);
    CHECK_INT(end_send(&theirs, "bye"), 3);
    end_close(&theirs);
    client_bridge_close(bridge);
    bridge = NULL;
    RUN_UNTIL(ours.last == STREAM_FIN);
    CHECK(!ours.stream.cut);
    CHECK_INT(ours.got.len, 8);
    close_all();
}

TEST(a_proxy_that_is_not_trusted_is_an_end_whose_reason_is_known)
{
    open_bridge("b.example");
    CHECK_INT(end_send(&theirs, "secret"), 6);
    RUN_UNTIL(theirs.last < 0 && theirs.last != STREAM_WAIT);
    CHECK(strstr(client_bridge_fault(bridge), "the certificate of b.example is for a.example"));
    CHECK_INT(ours.got.len, 0);
    close_all();
}

TEST(a_proxy_that_breaks_the_connection_breaks_it)
{
    open_bridge("a.example");
    RUN_UNTIL(tls_info(&ours.stream));
    end_close(&ours);
    RUN_UNTIL(theirs.last < 0 && theirs.last != STREAM_WAIT);
    close_all();
}

TEST(files_that_cannot_be_read_open_no_bridge)
{
    struct client_tls settings = { .id   = STR("a"),
                                   .name = STR("a.example"),
                                   .ca   = STR("/nowhere/ca.pem") };
    int               fd, near = -1;

    pair_open(0);
    clients = tls_clients_new(tls);
    fd      = take_fd(&theirs);
    CHECK(!client_bridge_open(loop, clients, &settings, fd, &near, &pair_err));
    CHECK(strstr(pair_err.text, "/nowhere/ca.pem"));
    CHECK_INT(near, -1);
    RUN_UNTIL(ours.last == STREAM_FIN); /* the descriptor was taken */
    close_all();
}

int main(void)
{
    int status = check_run();

    forget_certs();
    return status;
}
