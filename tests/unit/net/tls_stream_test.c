#include "support/tls_pair.h"

static struct tls_server *server;
static struct tls_client *client;

static void open_pair(int send_bytes)
{
    pair_open(send_bytes);
    server = plain_server();
    client = plain_client();
}

static void close_pair(void)
{
    tls_server_close(server);
    tls_client_close(client);
    pair_end();
}

TEST(a_handshake_ends_and_bytes_go_both_ways)
{
    open_pair(0);
    shake_well(server, client);
    CHECK_INT(end_send(&theirs, "hello"), 5);
    RUN_UNTIL(ours.got.len == 5);
    CHECK_MEM(ours.got.at, ours.got.len, "hello", 5);
    CHECK_INT(end_send(&ours, "you too"), 7);
    RUN_UNTIL(theirs.got.len == 7);
    CHECK_MEM(theirs.got.at, theirs.got.len, "you too", 7);
    close_pair();
}

int main(void)
{
    int rc = check_run();

    forget_certs();
    return rc;
}
