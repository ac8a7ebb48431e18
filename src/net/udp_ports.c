#include "net/udp_ports.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/list.h"
#include "net/addr.h"

struct udp_ports {
    pthread_mutex_t lock; /* for all that follows */
    struct list     open;
};

struct udp_port {
    struct list       link;
    struct udp_ports *ports;
    struct addr       at;
    unsigned          slot;
    unsigned          users;
    const void       *owner; /* who took it last; NULL: that one has given it back */
    int               fd;
};

int udp_ports_open(struct udp_ports **out, struct err *err)
{
    struct udp_ports *ports = calloc(1, sizeof(*ports));

    if (!ports)
        return err_set(err, ERR_MEMORY, "no memory for UDP sockets");
    pthread_mutex_init(&ports->lock, NULL);
    list_init(&ports->open);
    *out = ports;
    return 0;
}

static void close_port(struct udp_port *port)
{
    list_remove(&port->link);
    close(port->fd);
    free(port);
}

void udp_ports_close(struct udp_ports *ports)
{
    if (!ports)
        return;
    list_each_safe(node, &ports->open) close_port(container_of(node, struct udp_port, link));
    pthread_mutex_destroy(&ports->lock);
    free(ports);
}

/* --- sockets -------------------------------------------------------------------------------- */

static int share(int fd)
{
    int on = 1;

    return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
}

static int bind_socket(int fd, const struct addr *at, bool sibling)
{
    struct sockaddr_storage sa;
    socklen_t               len = addr_to_sockaddr(at, &sa);

    if (sibling && share(fd) < 0)
        return -1;
    return bind(fd, (struct sockaddr *)&sa, len);
}

/* The first socket binds without SO_REUSEPORT, so that an address which another process has is a fault;
 * then it has the option, so that siblings may join. */
static int open_socket(const struct addr *at, bool sibling)
{
    int fd = socket(at->family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int number;

    if (fd < 0)
        return -1;
    if (bind_socket(fd, at, sibling) == 0 && share(fd) == 0)
        return fd;
    number = errno;
    close(fd);
    errno = number;
    return -1;
}

static void read_port(struct udp_port *port)
{
    struct sockaddr_storage sa;
    struct addr             bound;
    socklen_t               len = sizeof(sa);

    if (getsockname(port->fd, (struct sockaddr *)&sa, &len) == 0) {
        addr_from_sockaddr(&bound, (struct sockaddr *)&sa, len);
        port->at.port = bound.port;
    }
}

/* --- taking and giving ------------------------------------------------------------------------ */

static int refuse(struct err *err, const struct addr *at)
{
    char text[ADDR_TEXT_BYTES];

    return err_set_errno(err, "%s cannot be bound", addr_format(at, text));
}

/* The socket of SLOT, or NULL; SIBLING: whether another worker has one. */
static struct udp_port *find(struct udp_ports *ports, const struct addr *at, unsigned slot,
                             bool *sibling)
{
    *sibling = false;
    if (at->port == 0)
        return NULL;
    list_each(node, &ports->open)
    {
        struct udp_port *port = container_of(node, struct udp_port, link);

        if (!addr_is_equal(&port->at, at))
            continue;
        *sibling = true;
        if (port->slot == slot)
            return port;
    }
    return NULL;
}

static int open_port(struct udp_port **out, struct udp_ports *ports, const struct addr *at,
                     unsigned slot, bool sibling, struct err *err)
{
    struct udp_port *port = calloc(1, sizeof(*port));
    int              rc;

    if (!port)
        return err_set(err, ERR_MEMORY, "no memory for a UDP socket");
    *port = (struct udp_port){ .ports = ports, .at = *at, .slot = slot };
    list_init(&port->link);
    port->fd = open_socket(at, sibling);
    if (port->fd < 0) {
        rc = refuse(err, at);
        free(port);
        return rc;
    }
    read_port(port);
    list_append(&ports->open, &port->link);
    *out = port;
    return 0;
}

static int take(struct udp_port **out, struct udp_ports *ports, const struct addr *at,
                unsigned slot, const void *owner, struct err *err)
{
    bool sibling;
    int  rc = 0;

    *out = find(ports, at, slot, &sibling);
    if (*out && (*out)->owner == owner) {
        errno = EADDRINUSE;
        return refuse(err, at);
    }
    if (!*out)
        rc = open_port(out, ports, at, slot, sibling, err);
    if (rc < 0)
        return rc;
    (*out)->users++;
    (*out)->owner = owner;
    return 0;
}

int udp_ports_take(struct udp_port **out, struct udp_ports *ports, const struct addr *at,
                   unsigned slot, const void *owner, struct err *err)
{
    int rc;

    pthread_mutex_lock(&ports->lock);
    rc = take(out, ports, at, slot, owner, err);
    pthread_mutex_unlock(&ports->lock);
    return rc;
}

void udp_ports_give(struct udp_port *port, const void *owner)
{
    struct udp_ports *ports = port->ports;

    pthread_mutex_lock(&ports->lock);
    if (port->owner == owner)
        port->owner = NULL;
    if (--port->users == 0)
        close_port(port);
    pthread_mutex_unlock(&ports->lock);
}

int udp_port_fd(const struct udp_port *port)
{
    return port->fd;
}
