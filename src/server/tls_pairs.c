#include "server/tls_pairs.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/err.h"

struct pair {
    struct str cert, key;
};

#define PAIRS "tls = { { cert = \"cert.pem\", key = \"key.pem\" } }"

static int refuse(struct err *err)
{
    return err_set(err, ERR_INVALID, "tls must be a list of pairs: " PAIRS);
}

/* "ca=a.pem", or a third path. */
static int refuse_word(struct str word, struct err *err)
{
    struct str name = str_make(word.at, str_find(word, '='));

    if (name.len == word.len)
        return refuse(err);
    if (str_is(name, STR("ca")))
        return err_set(
            err, ERR_INVALID,
            "tls has no \"ca\": authorities between a certificate and a root stand behind it "
            "in its file, those of clients are client_ca; " PAIRS);
    return err_set(err, ERR_INVALID, "tls has no \"%.*s\": " PAIRS, STR_ARG(name));
}

/* "cert=a.pem", or "a.pem" as the first and "a.key" as the second. */
static bool read_word(struct pair *pair, struct str word)
{
    struct str *first_free = pair->cert.len ? &pair->key : &pair->cert;

    if (str_starts_with(word, STR("cert=")))
        pair->cert = str_from(word, 5);
    else if (str_starts_with(word, STR("key=")))
        pair->key = str_from(word, 4);
    else if (first_free->len == 0 && str_find(word, '=') == word.len)
        *first_free = word;
    else
        return false;
    return true;
}

/* One bare word would be half of a pair that somebody has written without its inner brackets. */
static int read_pair(struct pair *pair, struct str text, struct err *err)
{
    bool       is_named = str_starts_with(text, STR("cert="));
    struct str word;

    *pair = (struct pair){ STR_NONE, STR_NONE };
    while (str_next(&text, ' ', &word))
        if (!read_word(pair, word))
            return refuse_word(word, err);
    if (pair->key.len == 0 && is_named)
        pair->key = pair->cert;
    return pair->cert.len > 0 && pair->key.len > 0 ? 0 : refuse(err);
}

/* False: there is no room. */
static bool append(char *list, struct str path)
{
    size_t len = strlen(list);
    int    n =
        snprintf(list + len, TLS_PAIRS_BYTES_MAX - len, "%s%.*s", len ? "," : "", STR_ARG(path));

    return n > 0 && len + (size_t)n < TLS_PAIRS_BYTES_MAX;
}

int tls_pairs_read(struct tls_pairs *out, struct str text, struct err *err)
{
    struct str item;

    out->certs[0] = out->keys[0] = '\0';
    if (str_is(text, STR("false")))
        return 0;
    while (str_next(&text, ',', &item)) {
        struct pair pair;
        int         rc = read_pair(&pair, item, err);

        if (rc != 0)
            return rc;
        if (!append(out->certs, pair.cert) || !append(out->keys, pair.key))
            return err_set(err, ERR_TOO_LARGE, "tls has too many certificates");
    }
    return 0;
}
