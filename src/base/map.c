#include "base/map.h"

#include <assert.h>
#include <stdlib.h>

#include "base/rand.h"

enum { FIRST_SLOTS = 16 };

/* --- SipHash-1-3 (Aumasson and Bernstein), 64 bits ------------------------------------------- */

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 = rotate(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v2 = rotate(s->v2, 32);
}

static void sip_word(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

/* The bytes that fill no word, and the length's low byte on top. */
static uint64_t last_word(const char *rest, size_t rest_len, size_t len)
{
    uint64_t word = (uint64_t)len << 56;

    for (size_t i = 0; i < rest_len; i++)
        word |= (uint64_t)(unsigned char)rest[i] << (8 * i);
    return word;
}

uint64_t map_hash_with(const uint64_t secret[2], struct str key)
{
    struct sip s     = { secret[0] ^ 0x736f6d6570736575u, secret[1] ^ 0x646f72616e646f6du,
                         secret[0] ^ 0x6c7967656e657261u, secret[1] ^ 0x7465646279746573u };
    size_t     words = key.len / 8;

    for (size_t i = 0; i < words; i++) {
        uint64_t word;

        memcpy(&word, key.at + 8 * i, 8);
        sip_word(&s, word);
    }
    sip_word(&s, last_word(key.at + 8 * words, key.len % 8, key.len));
    s.v2 ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t map_hash(struct str key)
{
    return map_hash_with(rand_process_key(), key);
}

/* --- the table -------------------------------------------------------------------------------- */

void map_init(struct map *map)
{
    *map = (struct map){ 0 };
}

void map_fini(struct map *map)
{
    free(map->slots);
    map_init(map);
}

/* The slot that holds KEY, or the free one where it would go. */
static struct map_slot *slot_for(const struct map *map, struct str key, uint64_t hash)
{
    size_t mask = map->slot_count - 1;
    size_t i    = hash & mask;

    while (map->slots[i].value && !(map->slots[i].hash == hash && str_is(map->slots[i].key, key)))
        i = (i + 1) & mask;
    return &map->slots[i];
}

void *map_get(const struct map *map, struct str key)
{
    return map->count ? slot_for(map, key, map_hash(key))->value : NULL;
}

/* Doubles the table when one more entry would fill over three quarters. */
static bool make_room(struct map *map)
{
    struct map grown = { .slot_count = map->slot_count ? map->slot_count * 2 : FIRST_SLOTS };

    if ((map->count + 1) * 4 <= map->slot_count * 3)
        return true;
    grown.slots = calloc(grown.slot_count, sizeof(*grown.slots));
    if (!grown.slots)
        return false;
    for (size_t i = 0; i < map->slot_count; i++)
        if (map->slots[i].value)
            *slot_for(&grown, map->slots[i].key, map->slots[i].hash) = map->slots[i];
    grown.count = map->count;
    free(map->slots);
    *map = grown;
    return true;
}

bool map_put(struct map *map, struct str key, void *value, void **replaced)
{
    uint64_t         hash = map_hash(key);
    struct map_slot *slot;

    assert(value);
    if (!make_room(map))
        return false;
    slot = slot_for(map, key, hash);
    if (replaced)
        *replaced = slot->value;
    if (!slot->value)
        map->count++;
    *slot = (struct map_slot){ key, value, hash };
    return true;
}

/* Moves later entries of the run into the hole, so that no search stops short of them. */
static void close_hole(struct map *map, size_t hole)
{
    size_t mask = map->slot_count - 1;

    for (size_t i = (hole + 1) & mask; map->slots[i].value; i = (i + 1) & mask) {
        size_t home = map->slots[i].hash & mask;

        if (((i - home) & mask) < ((i - hole) & mask))
            continue; /* it lies between its home and the hole already */
        map->slots[hole] = map->slots[i];
        hole             = i;
    }
    map->slots[hole] = (struct map_slot){ 0 };
}

void *map_remove(struct map *map, struct str key)
{
    struct map_slot *slot  = map->count ? slot_for(map, key, map_hash(key)) : NULL;
    void            *value = slot ? slot->value : NULL;

    if (value) {
        map->count--;
        close_hole(map, (size_t)(slot - map->slots));
    }
    return value;
}

void *map_next(const struct map *map, size_t *cursor, struct str *key)
{
    while (*cursor < map->slot_count) {
        const struct map_slot *slot = &map->slots[(*cursor)++];

        if (!slot->value)
            continue;
        if (key)
            *key = slot->key;
        return slot->value;
    }
    return NULL;
}
