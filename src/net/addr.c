#include "net/addr.h"

#include <arpa/inet.h>
#include <assert.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/err.h"
#include "base/str.h"

static_assert(sizeof(struct addr) == 24 || sizeof(void *) != 8, "each connection keeps one");

enum { HOST_BYTES_MAX = INET6_ADDRSTRLEN + 1 + IF_NAMESIZE };

/* --- from text ------------------------------------------------------------------------------ */

/* "eth0" or "2", as it stands behind the percent sign (RFC 4007, 11.2). */
static bool parse_scope(const char *text, uint32_t *scope)
{
    uint64_t number;

    *scope = if_nametoindex(text);
    if (*scope != 0)
        return true;
    if (!str_to_u64(str_of(text), UINT32_MAX, &number) || number == 0)
        return false;
    *scope = (uint32_t)number;
    return true;
}

static bool parse_v6(struct addr *out, const char *host)
{
    char  text[HOST_BYTES_MAX + 1];
    char *percent;

    snprintf(text, sizeof(text), "%s", host);
    percent = strchr(text, '%');
    if (percent) {
        *percent = '\0';
        if (!parse_scope(percent + 1, &out->scope))
            return false;
    }
    out->family = AF_INET6;
    return inet_pton(AF_INET6, text, &out->at.v6) == 1;
}

/* HOST has no brackets. */
static bool parse_ip(struct addr *out, const char *host)
{
    *out = (struct addr){ .family = AF_INET };
    if (strcmp(host, "localhost") == 0) {
        out->at.v4.s_addr = htonl(INADDR_LOOPBACK);
        return true;
    }
    if (strchr(host, ':'))
        return parse_v6(out, host);
    return inet_pton(AF_INET, host, &out->at.v4) == 1;
}

static int refuse_host(struct err *err, struct str host)
{
    return err_set(err, ERR_INVALID, "\"%.*s\" is not an IP address (names are not looked up here)",
                   STR_ARG(host));
}

/* HOST may have its brackets. */
static int parse_host(struct addr *out, struct str host, uint16_t port, struct err *err)
{
    char       text[HOST_BYTES_MAX + 1];
    struct str bare      = host;
    bool       bracketed = host.len >= 2 && host.at[0] == '[' && host.at[host.len - 1] == ']';

    if (bracketed)
        bare = str_make(host.at + 1, host.len - 2);
    if (bare.len > HOST_BYTES_MAX)
        return refuse_host(err, host);
    memcpy(text, bare.at, bare.len);
    text[bare.len] = '\0';
    if (!parse_ip(out, text) || (bracketed && out->family != AF_INET6))
        return refuse_host(err, host);
    out->port = port;
    return 0;
}

int addr_parse_host(struct addr *out, const char *host, uint16_t port, struct err *err)
{
    return parse_host(out, str_of(host), port, err);
}

int addr_parse_path(struct addr *out, const char *path, struct err *err)
{
    struct sockaddr_un un;

    if (path[0] == '\0' || strcmp(path, "@") == 0)
        return err_set(err, ERR_INVALID, "the path of a Unix socket is empty");
    if (strlen(path) >= sizeof(un.sun_path))
        return err_set(err, ERR_TOO_LARGE, "the path of a Unix socket has at most %zu bytes: %s",
                       sizeof(un.sun_path) - 1, path);
    *out = (struct addr){ .family = AF_UNIX, .at.path = path };
    return 0;
}

int addr_parse(struct addr *out, const char *text, struct err *err)
{
    const char *colon = strrchr(text, ':');
    uint64_t    port;

    if (strncmp(text, "unix:", 5) == 0)
        return addr_parse_path(out, text + 5, err);
    if (!colon || colon == text)
        return err_set(err, ERR_INVALID, "\"%s\" is not HOST:PORT or unix:PATH", text);
    if (!str_to_u64(str_of(colon + 1), UINT16_MAX, &port))
        return err_set(err, ERR_INVALID, "\"%s\" is not a port (0 to 65535)", colon + 1);
    /* "::1:80" could be read two ways. */
    if (text[0] != '[' && memchr(text, ':', (size_t)(colon - text)))
        return err_set(err, ERR_INVALID, "an IPv6 address needs brackets before its port: %s",
                       text);
    return parse_host(out, str_make(text, (size_t)(colon - text)), (uint16_t)port, err);
}

/* --- to text -------------------------------------------------------------------------------- */

static void format_v6(const struct addr *addr, char *to)
{
    char name[IF_NAMESIZE];

    inet_ntop(AF_INET6, &addr->at.v6, to, INET6_ADDRSTRLEN);
    if (addr->scope == 0)
        return;
    if (if_indextoname(addr->scope, name))
        snprintf(to + strlen(to), 1 + IF_NAMESIZE, "%%%s", name);
    else
        snprintf(to + strlen(to), 1 + IF_NAMESIZE, "%%%u", (unsigned)addr->scope);
}

static char *put_octet(char *to, unsigned octet)
{
    if (octet >= 100)
        *to++ = (char)('0' + octet / 100);
    if (octet >= 10)
        *to++ = (char)('0' + octet / 10 % 10);
    *to++ = (char)('0' + octet % 10);
    return to;
}

/* Each line of an access log has one, and inet_ntop() goes through sprintf(). */
static void format_v4(const struct in_addr *address, char *to)
{
    const unsigned char *octets = (const unsigned char *)&address->s_addr;

    for (int i = 0; i < 4; i++) {
        to    = put_octet(to, octets[i]);
        *to++ = i < 3 ? '.' : '\0';
    }
}

const char *addr_format_host(const struct addr *addr, char to[ADDR_TEXT_BYTES])
{
    switch (addr->family) {
    case AF_INET: format_v4(&addr->at.v4, to); break;
    case AF_INET6: format_v6(addr, to); break;
    case AF_UNIX: memcpy(to, "unix", sizeof("unix")); break;
    default: memcpy(to, "unknown", sizeof("unknown")); break;
    }
    return to;
}

const char *addr_format(const struct addr *addr, char to[ADDR_TEXT_BYTES])
{
    char host[ADDR_TEXT_BYTES];

    if (addr->family == AF_UNIX)
        snprintf(to, ADDR_TEXT_BYTES, "unix:%s", addr->at.path ? addr->at.path : "");
    else if (addr->family == AF_INET6)
        snprintf(to, ADDR_TEXT_BYTES, "[%.*s]:%u", HOST_BYTES_MAX, addr_format_host(addr, host),
                 addr->port);
    else
        snprintf(to, ADDR_TEXT_BYTES, "%.*s:%u", HOST_BYTES_MAX, addr_format_host(addr, host),
                 addr->port);
    return to;
}

/* --- the kernel's form ---------------------------------------------------------------------- */

/* An abstract name is not closed by a NUL, so its length counts. */
static socklen_t path_to_sockaddr(const char *path, struct sockaddr_un *to)
{
    size_t len = path ? strlen(path) : 0;

    assert(len < sizeof(to->sun_path));
    to->sun_family = AF_UNIX;
    memcpy(to->sun_path, path ? path : "", len);
    if (len > 0 && path[0] == '@')
        to->sun_path[0] = '\0';
    else if (len > 0)
        len++;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

socklen_t addr_to_sockaddr(const struct addr *addr, struct sockaddr_storage *to)
{
    struct sockaddr_in  *in  = (struct sockaddr_in *)to;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

    memset(to, 0, sizeof(*to));
    switch (addr->family) {
    case AF_INET:
        in->sin_family = AF_INET;
        in->sin_port   = htons(addr->port);
        in->sin_addr   = addr->at.v4;
        return sizeof(*in);
    case AF_INET6:
        in6->sin6_family   = AF_INET6;
        in6->sin6_port     = htons(addr->port);
        in6->sin6_addr     = addr->at.v6;
        in6->sin6_scope_id = addr->scope;
        return sizeof(*in6);
    default:
        assert(addr->family == AF_UNIX);
        return path_to_sockaddr(addr->at.path, (struct sockaddr_un *)to);
    }
}

static void from_v6(struct addr *out, const struct sockaddr_in6 *in6)
{
    out->port = ntohs(in6->sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        out->family = AF_INET;
        memcpy(&out->at.v4, &in6->sin6_addr.s6_addr[12], sizeof(out->at.v4));
        return;
    }
    out->at.v6 = in6->sin6_addr;
    out->scope = in6->sin6_scope_id;
}

void addr_from_sockaddr(struct addr *out, const struct sockaddr *from, socklen_t len)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)from;

    *out = (struct addr){ .family = AF_UNSPEC };
    if (len < (socklen_t)sizeof(sa_family_t))
        return;
    out->family = from->sa_family;
    if (from->sa_family == AF_INET && len >= (socklen_t)sizeof(*in)) {
        out->port  = ntohs(in->sin_port);
        out->at.v4 = in->sin_addr;
    } else if (from->sa_family == AF_INET6 && len >= (socklen_t)sizeof(struct sockaddr_in6)) {
        from_v6(out, (const struct sockaddr_in6 *)from);
    }
}

static bool is_same_path(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool addr_is_equal(const struct addr *a, const struct addr *b)
{
    if (a->family != b->family || a->port != b->port || a->scope != b->scope)
        return false;
    switch (a->family) {
    case AF_INET: return a->at.v4.s_addr == b->at.v4.s_addr;
    case AF_INET6: return IN6_ARE_ADDR_EQUAL(&a->at.v6, &b->at.v6);
    case AF_UNIX: return is_same_path(a->at.path, b->at.path);
    default: return true;
    }
}
