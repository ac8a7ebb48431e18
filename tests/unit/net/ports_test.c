#include "net/ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "net/addr.h"
#include "support/check.h"

static struct ports *open_ports(void)
{
    struct ports *ports;
    struct err    err;

    CHECK_INT(ports_open(&ports, &err), 0);
    return ports;
}

static struct port *take(struct ports *ports, const char *text)
{
    struct port *port;
    struct addr  at;
    struct err   err;

    CHECK_INT(addr_parse(&at, text, &err), 0);
    CHECK_INT(ports_take(&port, ports, &at, &err), 0);
    return port;
}

static bool can_connect(const struct addr *at)
{
    struct sockaddr_storage sa;
    socklen_t               len = addr_to_sockaddr(at, &sa);
    int                     fd  = socket(at->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool                    ok  = connect(fd, (struct sockaddr *)&sa, len) == 0;

    close(fd);
    return ok;
}

TEST(who_asks_for_an_open_address_shares_its_socket)
{
    struct ports *ports = open_ports();
    struct port  *first = take(ports, "127.0.0.1:0"), *second;
    struct addr   at    = *port_addr(first);
    char          text[ADDR_TEXT_BYTES];

    second = take(ports, addr_format(&at, text));
    CHECK_INT(port_fd(second), port_fd(first));
    ports_give(first);
    CHECK(can_connect(&at));
    ports_give(second);
    CHECK(!can_connect(&at));
    ports_close(ports);
}

TEST(port_zero_is_another_port_each_time)
{
    struct ports *ports = open_ports();
    struct port  *first = take(ports, "127.0.0.1:0"), *second = take(ports, "127.0.0.1:0");

    CHECK(port_addr(first)->port != port_addr(second)->port);
    ports_give(first);
    ports_give(second);
    ports_close(ports);
}

TEST(an_address_that_others_have_is_a_fault)
{
    struct ports *ports = open_ports(), *others = open_ports();
    struct port  *theirs = take(others, "127.0.0.1:0"), *ours = NULL;
    struct err    err;

    CHECK_INT(ports_take(&ours, ports, port_addr(theirs), &err), ERR_IN_USE);
    CHECK(ours == NULL);
    ports_give(theirs);
    ports_close(others);
    ports_close(ports);
}

TEST(a_unix_socket_leaves_no_file_behind)
{
    char          folder[] = "/tmp/srv-ports-XXXXXX", text[64];
    struct ports *ports    = open_ports();
    struct port  *first, *second;

    CHECK(mkdtemp(folder) != NULL);
    snprintf(text, sizeof(text), "unix:%s/s", folder);
    first  = take(ports, text);
    second = take(ports, text);
    CHECK(first == second);
    ports_give(first);
    CHECK(access(text + 5, F_OK) == 0);
    ports_give(second);
    CHECK(access(text + 5, F_OK) < 0);
    rmdir(folder);
    ports_close(ports);
}

int main(void)
{
    return check_run();
}
