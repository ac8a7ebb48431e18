#include "net/networks.h"

#include "base/compiler.h"
#include "net/addr.h"

/* What the names stand for; plugins have the same (lua/srv/plugins/networks.lua). */
static const struct named {
    struct str name;
    struct str text;
    bool       unix_peers;
} NAMED[] = {
    { STR_INIT("loopback"), STR_INIT("127.0.0.0/8,::1/128"), true },
    { STR_INIT("private"), STR_INIT("10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7"), false },
};

static bool add_all(struct networks *out, struct str text, struct str *wrong)
{
    while (str_next(&text, ',', wrong))
        if (out->count == NETWORKS_MAX || !cidr_parse(&out->of[out->count++], *wrong))
            return false;
    return true;
}

static const struct named *find_named(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(NAMED); i++)
        if (str_is(NAMED[i].name, name))
            return &NAMED[i];
    return NULL;
}

bool networks_parse(struct networks *out, struct str text, struct str *wrong)
{
    struct str element, unused;

    *out = (struct networks){ 0 };
    while (str_next(&text, ',', &element)) {
        const struct named *named = find_named(element);

        *wrong = element;
        if (!element.len || !add_all(out, named ? named->text : element, &unused))
            return false;
        out->unix_peers |= named && named->unix_peers;
    }
    return true;
}

bool networks_is_empty(const struct networks *networks)
{
    return networks->count == 0;
}

static bool ip_of(struct ip *out, const struct addr *peer)
{
    static const unsigned char V4_PREFIX[12] = { [10] = 0xff, [11] = 0xff };

    if (peer->family == AF_INET) {
        memcpy(out->bytes, V4_PREFIX, sizeof(V4_PREFIX));
        memcpy(out->bytes + sizeof(V4_PREFIX), &peer->at.v4, sizeof(peer->at.v4));
        return true;
    }
    memcpy(out->bytes, &peer->at.v6, sizeof(out->bytes));
    return peer->family == AF_INET6;
}

bool networks_has(const struct networks *networks, const struct addr *peer)
{
    struct ip ip;

    if (peer->family == AF_UNIX)
        return networks->unix_peers;
    if (!ip_of(&ip, peer))
        return false;
    for (unsigned i = 0; i < networks->count; i++)
        if (cidr_has(&networks->of[i], &ip))
            return true;
    return false;
}
