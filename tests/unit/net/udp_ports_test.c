#include "net/udp_ports.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "net/addr.h"
#include "support/check.h"

static struct udp_ports *ports;
static struct err        err;
static int               generations[4]; /* owners: their addresses count */

static void open_ports(void)
{
    CHECK_INT(udp_ports_open(&ports, &err), 0);
}

static struct udp_port *take(const struct addr *at, unsigned slot, int generation)
{
    struct udp_port *port = NULL;

    CHECK_INT(udp_ports_take(&port, ports, at, slot, &generations[generation], &err), 0);
    return port;
}

static void give(struct udp_port *port, int generation)
{
    udp_ports_give(port, &generations[generation]);
}

static struct addr any_port(void)
{
    struct addr at;

    CHECK_INT(addr_parse(&at, "127.0.0.1:0", &err), 0);
    return at;
}

static struct addr address_of(const struct udp_port *port)
{
    struct sockaddr_storage sa;
    socklen_t               len = sizeof(sa);
    struct addr             at;

    CHECK_INT(getsockname(udp_port_fd(port), (struct sockaddr *)&sa, &len), 0);
    addr_from_sockaddr(&at, (struct sockaddr *)&sa, len);
    return at;
}

/* One datagram of a fresh socket to AT. */
static void send_from(int fd, const struct addr *at)
{
    struct sockaddr_storage sa;
    socklen_t               len = addr_to_sockaddr(at, &sa);

    CHECK_INT(sendto(fd, "x", 1, 0, (struct sockaddr *)&sa, len), 1);
}

static int receive_all(const struct udp_port *port)
{
    char byte;
    int  count = 0;

    while (recv(udp_port_fd(port), &byte, 1, 0) == 1)
        count++;
    return count;
}

TEST(workers_have_a_socket_each_and_a_sender_stays_with_one)
{
    struct addr      at = any_port();
    struct udp_port *a, *b;
    int              of_a, of_b, to_a = 0, to_b = 0;

    open_ports();
    a  = take(&at, 0, 0);
    at = address_of(a);
    b  = take(&at, 1, 1);
    CHECK(udp_port_fd(a) != udp_port_fd(b));
    for (int sender = 0; sender < 32; sender++) {
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        for (int i = 0; i < 4; i++)
            send_from(fd, &at);
        of_a = receive_all(a);
        of_b = receive_all(b);
        CHECK((of_a == 4 && of_b == 0) || (of_a == 0 && of_b == 4));
        to_a += of_a > 0;
        to_b += of_b > 0;
        close(fd);
    }
    CHECK(to_a > 0 && to_b > 0);
    give(a, 0);
    give(b, 1);
    udp_ports_close(ports);
}

TEST(the_next_generation_of_a_worker_has_the_same_socket)
{
    struct addr      at = any_port();
    struct udp_port *old, *new;
    int              fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    open_ports();
    old = take(&at, 0, 0);
    at  = address_of(old);
    new = take(&at, 0, 1);
    CHECK_INT(udp_port_fd(old), udp_port_fd(new));
    send_from(fd, &at);
    give(old, 0);
    CHECK_INT(receive_all(new), 1);
    give(new, 1);
    old = take(&at, 0, 2); /* free again */
    give(old, 2);
    close(fd);
    udp_ports_close(ports);
}

TEST(a_taken_address_is_a_fault_that_names_it)
{
    struct addr       at = any_port();
    struct udp_ports *others;
    struct udp_port  *first, *second;
    char              text[ADDR_TEXT_BYTES];

    open_ports();
    first = take(&at, 0, 0);
    at    = address_of(first);
    addr_format(&at, text);
    CHECK_INT(udp_ports_take(&second, ports, &at, 0, &generations[0], &err), ERR_IN_USE);
    CHECK(strstr(err.text, text) != NULL);
    CHECK_INT(udp_ports_open(&others, &err), 0); /* as another process */
    CHECK_INT(udp_ports_take(&second, others, &at, 1, &generations[1], &err), ERR_IN_USE);
    CHECK(strstr(err.text, text) != NULL);
    give(first, 0);
    udp_ports_close(others);
    udp_ports_close(ports);
}

int main(void)
{
    return check_run();
}
