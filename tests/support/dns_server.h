/* tests/support/dns_server.h - a DNS server on a thread and a port of its own, whose answers follow
 * from the first label of the name:
 *
 *     both        A 192.0.2.1 and AAAA 2001:db8::1      four        A 192.0.2.4
 *     six         AAAA 2001:db8::6                      alias       CNAME four, TTL 5, to TTL 60
 *     brief       A 192.0.2.5, TTL 1                    zero        A 192.0.2.6, TTL 0
 *     big         truncated by UDP; by TCP an answer of 64 KiB
 *     loop1, loop2  A 127.0.0.1, 127.0.0.2; `race`: A 127.0.0.9, 127.0.0.1; `crowd`: A 127.0.0.11
 *                 to 14, 127.0.0.1
 *     wrongid, wrongname   an answer to something else with 192.0.2.66 before the right one
 *     silent      nothing                               fail        SERVFAIL
 *     host...     A 192.0.2.100                         all else    NXDOMAIN
 *
 * Only names below "test." are known: "four" alone does not exist. */
#ifndef TESTS_SUPPORT_DNS_SERVER_H
#define TESTS_SUPPORT_DNS_SERVER_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/check.h"

enum { DNS_TYPE_A = 1, DNS_TYPE_CNAME = 5, DNS_TYPE_AAAA = 28, DNS_ANSWER_MAX = 65535 };

struct dns_server {
    int         udp, tcp, stop[2];
    uint16_t    port;
    char        address[32]; /* "127.0.0.1:5353", as dns_options.servers has it */
    atomic_uint asked, asked_tcp;
    pthread_t   thread;
};

struct dns_record {
    const char *label;
    int         type;
    uint32_t    ttl;
    const char *data;
};

static const struct dns_record dns_records[] = {
    { "both", DNS_TYPE_A, 60, "192.0.2.1" },    { "both", DNS_TYPE_AAAA, 60, "2001:db8::1" },
    { "four", DNS_TYPE_A, 60, "192.0.2.4" },    { "six", DNS_TYPE_AAAA, 60, "2001:db8::6" },
    { "brief", DNS_TYPE_A, 1, "192.0.2.5" },    { "zero", DNS_TYPE_A, 0, "192.0.2.6" },
    { "wrongid", DNS_TYPE_A, 60, "192.0.2.7" }, { "wrongname", DNS_TYPE_A, 60, "192.0.2.8" },
    { "loop1", DNS_TYPE_A, 60, "127.0.0.1" },   { "loop2", DNS_TYPE_A, 60, "127.0.0.2" },
    { "crowd", DNS_TYPE_A, 60, "127.0.0.11" },  { "crowd", DNS_TYPE_A, 60, "127.0.0.12" },
    { "crowd", DNS_TYPE_A, 60, "127.0.0.13" },  { "crowd", DNS_TYPE_A, 60, "127.0.0.14" },
    { "crowd", DNS_TYPE_A, 60, "127.0.0.1" },   { "race", DNS_TYPE_A, 60, "127.0.0.9" },
    { "race", DNS_TYPE_A, 60, "127.0.0.1" },    { "big", DNS_TYPE_A, 60, "192.0.2.9" },
    { "alias", DNS_TYPE_CNAME, 5, "four" },
};

struct dns_packet {
    uint8_t at[DNS_ANSWER_MAX];
    size_t  len;
};

static inline void dns_put(struct dns_packet *p, const void *bytes, size_t len)
{
    if (p->len + len <= sizeof(p->at)) {
        memcpy(p->at + p->len, bytes, len);
        p->len += len;
    }
}

static inline void dns_put16(struct dns_packet *p, unsigned value)
{
    uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };

    dns_put(p, bytes, 2);
}

/* An owner of 0xc00c is the question's name. */
static inline void dns_put_record(struct dns_packet *p, unsigned owner, int type, uint32_t ttl,
                                  const void *data, size_t len)
{
    dns_put16(p, owner);
    dns_put16(p, (unsigned)type);
    dns_put16(p, 1);
    dns_put16(p, ttl >> 16);
    dns_put16(p, ttl & 0xffff);
    dns_put16(p, (unsigned)len);
    dns_put(p, data, len);
    p->at[7]++;
    if (p->at[7] == 0)
        p->at[6]++;
}

static inline void dns_put_address(struct dns_packet *p, unsigned owner, int type, uint32_t ttl,
                                   const char *text)
{
    uint8_t bytes[16];

    inet_pton(type == DNS_TYPE_A ? AF_INET : AF_INET6, text, bytes);
    dns_put_record(p, owner, type, ttl, bytes, type == DNS_TYPE_A ? 4 : 16);
}

/* The first label into LABEL; whether the name ends in "test". Returns where the question ends. */
static inline size_t dns_read_question(const uint8_t *query, size_t len, char label[64],
                                       bool *is_known, int *type)
{
    size_t at = 12, last = 12;

    memcpy(label, query + 13, query[12] & 63);
    label[query[12] & 63] = '\0';
    while (at < len && query[at] != 0) {
        last = at;
        at += query[at] + 1u;
    }
    *is_known = query[last] == 4 && memcmp(query + last + 1, "test", 4) == 0;
    *type     = query[at + 1] << 8 | query[at + 2];
    return at + 5;
}

static inline void dns_begin(struct dns_packet *p, const uint8_t *query, size_t question_end,
                             unsigned rcode)
{
    p->len = 0;
    dns_put(p, query, question_end);
    p->at[2] = 0x81; /* an answer, recursion desired */
    p->at[3] = (uint8_t)(0x80 | rcode);
    memset(p->at + 6, 0, 6);
}

static inline bool dns_add_records(struct dns_packet *p, const char *label, int type,
                                   unsigned owner)
{
    static const uint8_t four[] = "\4four\4test";
    bool                 found  = false;

    for (size_t i = 0; i < sizeof(dns_records) / sizeof(dns_records[0]); i++) {
        const struct dns_record *r = &dns_records[i];

        if (strcmp(r->label, label) != 0)
            continue;
        found = true;
        if (r->type == DNS_TYPE_CNAME) {
            unsigned at = (unsigned)p->len + 12;

            dns_put_record(p, owner, r->type, r->ttl, four, sizeof(four));
            dns_add_records(p, r->data, type, 0xc000 | at);
        } else if (r->type == type) {
            dns_put_address(p, owner, type, r->ttl, r->data);
        }
    }
    return found;
}

/* What comes before the right answer. False: nothing. */
static inline bool dns_make_wrong(struct dns_packet *p, const uint8_t *query, size_t question_end,
                                  const char *label, int type)
{
    dns_begin(p, query, question_end, 0);
    if (strcmp(label, "wrongid") == 0)
        p->at[0] ^= 0x55;
    else if (strcmp(label, "wrongname") == 0)
        p->at[13] = 'x';
    else
        return false;
    dns_put_address(p, 0xc00c, type, 60, type == DNS_TYPE_A ? "192.0.2.66" : "2001:db8::66");
    return true;
}

/* Empty: no answer. */
static inline void dns_make_answer(struct dns_packet *p, const uint8_t *query, size_t question_end,
                                   const char *label, bool is_known, int type, bool is_tcp)
{
    bool big = is_known && strcmp(label, "big") == 0;

    dns_begin(p, query, question_end, strcmp(label, "fail") == 0 ? 2 : 0);
    if (strcmp(label, "silent") == 0)
        p->len = 0;
    else if (strcmp(label, "fail") == 0)
        return;
    else if (big && !is_tcp)
        p->at[2] |= 0x02;
    else if (big && type == DNS_TYPE_A)
        while (p->len + 16 <= DNS_ANSWER_MAX)
            dns_put_address(p, 0xc00c, type, 60, "192.0.2.9");
    else if (is_known && strncmp(label, "host", 4) == 0 && type == DNS_TYPE_A)
        dns_put_address(p, 0xc00c, type, 60, "192.0.2.100");
    else if (is_known && strncmp(label, "host", 4) == 0)
        return;
    else if (!is_known || !dns_add_records(p, label, type, 0xc00c))
        p->at[3] = 0x83;
}

static inline void dns_serve_udp(struct dns_server *server, struct dns_packet *answer)
{
    uint8_t                 query[1500];
    struct sockaddr_storage from;
    socklen_t               from_len = sizeof(from);
    char                    label[64];
    bool                    is_known;
    int                     type;
    ssize_t n = recvfrom(server->udp, query, sizeof(query), 0, (struct sockaddr *)&from, &from_len);
    size_t  end;

    if (n < 17)
        return;
    atomic_fetch_add(&server->asked, 1);
    end = dns_read_question(query, (size_t)n, label, &is_known, &type);
    if (dns_make_wrong(answer, query, end, label, type))
        sendto(server->udp, answer->at, answer->len, 0, (struct sockaddr *)&from, from_len);
    dns_make_answer(answer, query, end, label, is_known, type, false);
    if (answer->len)
        sendto(server->udp, answer->at, answer->len, 0, (struct sockaddr *)&from, from_len);
}

static inline bool dns_read_all(int fd, uint8_t *to, size_t len)
{
    size_t  got = 0;
    ssize_t n;

    while (got < len && (n = recv(fd, to + got, len - got, 0)) > 0)
        got += (size_t)n;
    return got == len;
}

/* Until the client closes, or is silent for a while. */
static inline void dns_serve_tcp(struct dns_server *server, struct dns_packet *answer)
{
    struct timeval patience = { .tv_sec = 1 };
    uint8_t        size[2], query[1500];
    char           label[64];
    bool           is_known;
    int            type, fd = accept(server->tcp, NULL, NULL);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    while (dns_read_all(fd, size, 2)) {
        size_t len = (size_t)(size[0] << 8 | size[1]), end;

        if (len > sizeof(query) || !dns_read_all(fd, query, len))
            break;
        atomic_fetch_add(&server->asked_tcp, 1);
        end = dns_read_question(query, len, label, &is_known, &type);
        dns_make_answer(answer, query, end, label, is_known, type, true);
        size[0] = (uint8_t)(answer->len >> 8);
        size[1] = (uint8_t)answer->len;
        if (send(fd, size, 2, MSG_NOSIGNAL) != 2 ||
            send(fd, answer->at, answer->len, MSG_NOSIGNAL) != (ssize_t)answer->len)
            break;
    }
    close(fd);
}

static inline void *dns_server_run(void *arg)
{
    struct dns_server *server = arg;
    struct dns_packet *answer = malloc(sizeof(*answer));
    struct pollfd      fds[]  = { { server->udp, POLLIN, 0 },
                                  { server->tcp, POLLIN, 0 },
                                  { server->stop[0], POLLIN, 0 } };

    while (poll(fds, 3, -1) > 0 && !fds[2].revents) {
        if (fds[0].revents)
            dns_serve_udp(server, answer);
        if (fds[1].revents)
            dns_serve_tcp(server, answer);
    }
    free(answer);
    return NULL;
}

/* Both kinds of socket on one free port. */
static inline bool dns_server_bind(struct dns_server *server)
{
    struct sockaddr_in at  = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          len = sizeof(at);

    server->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    server->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(server->tcp, (struct sockaddr *)&at, len) == 0 && listen(server->tcp, 16) == 0 &&
        getsockname(server->tcp, (struct sockaddr *)&at, &len) == 0 &&
        bind(server->udp, (struct sockaddr *)&at, len) == 0) {
        server->port = ntohs(at.sin_port);
        return true;
    }
    close(server->udp);
    close(server->tcp);
    return false;
}

static inline void dns_server_start(struct dns_server *server)
{
    bool bound = false;

    memset(server, 0, sizeof(*server));
    for (int tries = 0; tries < 10 && !bound; tries++)
        bound = dns_server_bind(server);
    CHECK(bound);
    snprintf(server->address, sizeof(server->address), "127.0.0.1:%u", server->port);
    CHECK(pipe(server->stop) == 0);
    CHECK(pthread_create(&server->thread, NULL, dns_server_run, server) == 0);
}

static inline void dns_server_stop(struct dns_server *server)
{
    CHECK(write(server->stop[1], "x", 1) == 1);
    pthread_join(server->thread, NULL);
    close(server->stop[0]);
    close(server->stop[1]);
    close(server->udp);
    close(server->tcp);
}

#endif
