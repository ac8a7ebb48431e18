#include "net/ports.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/list.h"
#include "net/addr.h"
#include "net/listener.h"

struct ports {
    pthread_mutex_t lock; /* for all that follows, and `users` of each port */
    struct list     open;
};

struct port {
    struct list      link;
    struct ports    *ports;
    struct listener *listener; /* owned */
    struct addr      at;
    char            *path; /* owned; NULL: no Unix socket */
    unsigned         users;
};

int ports_open(struct ports **out, struct err *err)
{
    struct ports *ports = calloc(1, sizeof(*ports));

    if (!ports)
        return err_set(err, ERR_MEMORY, "out of memory");
    pthread_mutex_init(&ports->lock, NULL);
    list_init(&ports->open);
    *out = ports;
    return 0;
}

static struct port *find(struct ports *ports, const struct addr *at)
{
    if (at->family != AF_UNIX && at->port == 0)
        return NULL;
    list_each(node, &ports->open)
    {
        struct port *port = container_of(node, struct port, link);

        if (addr_is_equal(&port->at, at))
            return port;
    }
    return NULL;
}

static void free_port(struct port *port)
{
    free(port->path);
    free(port);
}

static void close_port(struct port *port)
{
    list_remove(&port->link);
    listener_withdraw(port->listener);
    free_port(port);
}

void ports_close(struct ports *ports)
{
    if (!ports)
        return;
    list_each_safe(node, &ports->open) close_port(container_of(node, struct port, link));
    pthread_mutex_destroy(&ports->lock);
    free(ports);
}

static int open_port(struct port **out, struct ports *ports, const struct addr *at, struct err *err)
{
    struct port *port = calloc(1, sizeof(*port));
    int          rc;

    if (!port)
        return err_set(err, ERR_MEMORY, "out of memory");
    port->ports = ports;
    port->at    = *at;
    if (at->family == AF_UNIX) {
        port->path       = strdup(at->at.path);
        port->at.at.path = port->path;
    }
    if (at->family == AF_UNIX && !port->path)
        rc = err_set(err, ERR_MEMORY, "out of memory");
    else
        rc = listener_open(&port->listener, &port->at, 1, err);
    if (rc < 0) {
        free_port(port);
        return rc;
    }
    port->at.port = listener_addr(port->listener)->port;
    list_append(&ports->open, &port->link);
    *out = port;
    return 0;
}

int ports_take(struct port **out, struct ports *ports, const struct addr *at, struct err *err)
{
    int rc = 0;

    pthread_mutex_lock(&ports->lock);
    *out = find(ports, at);
    if (!*out)
        rc = open_port(out, ports, at, err);
    if (rc == 0)
        (*out)->users++;
    pthread_mutex_unlock(&ports->lock);
    return rc;
}

void ports_give(struct port *port)
{
    struct ports *ports = port->ports;

    pthread_mutex_lock(&ports->lock);
    if (--port->users == 0)
        close_port(port);
    pthread_mutex_unlock(&ports->lock);
}

int port_fd(const struct port *port)
{
    return listener_fd(port->listener, 0);
}

const struct addr *port_addr(const struct port *port)
{
    return listener_addr(port->listener);
}
