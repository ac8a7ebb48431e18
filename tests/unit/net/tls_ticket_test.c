#include "net/tls_ticket.h"

#include <pthread.h>
#include <stdlib.h>

#include "net/tls.h"
#include "net/tls_cache.h"
#include "support/check.h"

static const struct str STATE  = STR_INIT("state of a session");
static const struct str POLICY = STR_INIT("everybody");

enum { TICKET_BYTES = 18 + TLS_TICKET_ADDED_BYTES };

static bool opens(struct tls_ticket_keys *keys, const char *ticket, size_t len, struct str policy)
{
    char   out[TICKET_BYTES];
    size_t out_len;

    return tls_ticket_open(keys, str_make(ticket, len), policy, out, &out_len) == 0 &&
           str_is(str_make(out, out_len), STATE);
}

TEST(a_ticket_opens_with_its_keys_and_policy)
{
    struct tls_ticket_keys *keys  = tls_ticket_keys_new(0);
    struct tls_ticket_keys *other = tls_ticket_keys_new(60);
    char                    ticket[TICKET_BYTES];

    CHECK_INT(tls_ticket_lifetime(keys), TLS_TICKET_LIFETIME);
    CHECK_INT(tls_ticket_lifetime(other), 60);
    CHECK_INT(tls_ticket_seal(keys, STATE, POLICY, ticket), 0);
    CHECK(opens(keys, ticket, sizeof(ticket), POLICY));
    CHECK(!opens(keys, ticket, sizeof(ticket), STR("somebody")));
    CHECK(!opens(other, ticket, sizeof(ticket), POLICY));
    tls_ticket_keys_free(keys);
    tls_ticket_keys_free(other);
}

TEST(a_ticket_that_was_cut_or_changed_does_not_open)
{
    struct tls_ticket_keys *keys = tls_ticket_keys_new(0);
    char                    ticket[TICKET_BYTES];

    CHECK_INT(tls_ticket_seal(keys, STATE, POLICY, ticket), 0);
    for (size_t i = 0; i < sizeof(ticket); i++) {
        CHECK(!opens(keys, ticket, i, POLICY));
        ticket[i] ^= 1;
        CHECK(!opens(keys, ticket, sizeof(ticket), POLICY));
        ticket[i] ^= 1;
    }
    CHECK(opens(keys, ticket, sizeof(ticket), POLICY));
    tls_ticket_keys_free(keys);
}

static void *use(void *arg)
{
    char ticket[TICKET_BYTES];

    for (unsigned i = 0; i < 300; i++) {
        if (tls_ticket_seal(arg, STATE, POLICY, ticket) != 0 ||
            !opens(arg, ticket, sizeof(ticket), POLICY))
            return arg;
    }
    return NULL;
}

static void *rotate(void *arg)
{
    tls_ticket_keys_rotate(arg);
    return NULL;
}

TEST(several_threads_share_keys_while_they_are_replaced)
{
    struct tls_ticket_keys *keys = tls_ticket_keys_new(0);
    pthread_t               threads[3];
    void                   *failed = NULL, *result;

    for (unsigned i = 0; i < 2; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, use, keys), 0);
    CHECK_INT(pthread_create(&threads[2], NULL, rotate, keys), 0);
    for (unsigned i = 0; i < 3; i++) {
        pthread_join(threads[i], &result);
        failed = result ? result : failed;
    }
    CHECK(!failed);
    tls_ticket_keys_free(keys);
}

/* --- what a client keeps of them --------------------------------------------------------------------- */

static bool has(struct tls_cache *cache, const char *key, const char *state)
{
    return str_is(tls_cache_get(cache, str_of(key)), str_of(state));
}

TEST(a_cache_keeps_the_newest_of_each_key_and_the_most_used)
{
    struct tls_cache cache;

    tls_cache_init(&cache, 2);
    tls_cache_put(&cache, STR("a"), STR("1"));
    tls_cache_put(&cache, STR("a"), STR("2"));
    tls_cache_put(&cache, STR("b"), STR("3"));
    CHECK(has(&cache, "a", "2"));
    tls_cache_put(&cache, STR("c"), STR("4"));
    CHECK(has(&cache, "a", "2") && has(&cache, "b", "") && has(&cache, "c", "4"));
    tls_cache_remove(&cache, STR("a"));
    tls_cache_remove(&cache, STR("a"));
    CHECK(has(&cache, "a", ""));
    CHECK_INT(cache.count, 1);
    tls_cache_fini(&cache);
}

int main(void)
{
    return check_run();
}
