#include "base/map.h"

#include <stdio.h>

#include "support/check.h"

static int values[2000];

/* A key of its own for each number. */
static struct str key_of(int number)
{
    static char texts[2000][8];

    snprintf(texts[number], sizeof(texts[number]), "k%d", number);
    return str_of(texts[number]);
}

static void fill(struct map *map, int count)
{
    map_init(map);
    for (int i = 0; i < count; i++)
        CHECK(map_put(map, key_of(i), &values[i], NULL));
}

TEST(an_empty_map_finds_nothing_and_owns_nothing)
{
    struct map map;
    size_t     cursor = 0;

    map_init(&map);
    CHECK(map_get(&map, STR("a")) == NULL);
    CHECK(map_remove(&map, STR("a")) == NULL);
    CHECK(map_next(&map, &cursor, NULL) == NULL);
    CHECK(map.slots == NULL);
    map_fini(&map);
}

TEST(what_was_put_is_found_as_the_table_grows)
{
    struct map map;

    fill(&map, 2000);
    CHECK_INT(map.count, 2000);
    for (int i = 0; i < 2000; i++)
        CHECK(map_get(&map, key_of(i)) == &values[i]);
    CHECK(map_get(&map, STR("k2000")) == NULL);
    map_fini(&map);
}

TEST(a_second_put_replaces_and_hands_back_the_first)
{
    struct map map;
    void      *old = &map;

    map_init(&map);
    CHECK(map_put(&map, STR("k"), &values[0], &old));
    CHECK(old == NULL);
    CHECK(map_put(&map, STR("k"), &values[1], &old));
    CHECK(old == &values[0]);
    CHECK_INT(map.count, 1);
    CHECK(map_get(&map, STR("k")) == &values[1]);
    map_fini(&map);
}

TEST(keys_are_bytes_with_a_length)
{
    struct map map;

    map_init(&map);
    CHECK(map_put(&map, STR("a\0b"), &values[0], NULL));
    CHECK(map_put(&map, STR(""), &values[1], NULL));
    CHECK(map_get(&map, STR("a")) == NULL);
    CHECK(map_get(&map, STR("a\0c")) == NULL);
    CHECK(map_get(&map, STR("a\0b")) == &values[0]);
    CHECK(map_get(&map, STR_NONE) == &values[1]);
    map_fini(&map);
}

/* Removal moves entries about: whatever goes, the others must stay within reach. */
TEST(every_other_key_is_found_after_any_removal)
{
    struct map map;

    fill(&map, 500);
    for (int gone = 0; gone < 500; gone++) {
        CHECK(map_remove(&map, key_of(gone)) == &values[gone]);
        CHECK(map_remove(&map, key_of(gone)) == NULL);
        for (int i = gone + 1; i < 500; i++)
            CHECK(map_get(&map, key_of(i)) == &values[i]);
    }
    CHECK_INT(map.count, 0);
    map_fini(&map);
}

TEST(a_walk_meets_each_entry_once)
{
    struct map map;
    size_t     cursor    = 0;
    char       seen[300] = { 0 };
    struct str key;
    int       *value;

    fill(&map, 300);
    while ((value = map_next(&map, &cursor, &key))) {
        CHECK(str_is(key, key_of((int)(value - values))));
        seen[value - values]++;
    }
    for (int i = 0; i < 300; i++)
        CHECK_INT(seen[i], 1);
    map_fini(&map);
}

/* ETags are made of it: what it gives for a key and bytes never changes. */
TEST(a_hash_under_a_key_is_the_same_everywhere)
{
    static const uint64_t ZERO[2] = { 0, 0 }, OTHER[2] = { 0, 1 };
    struct str            body = STR("{\"hello\":\"world\",\"n\":1}");

    CHECK(map_hash_with(ZERO, body) == 0x158c4717fa41bcc6u);
    CHECK(map_hash_with(OTHER, body) != map_hash_with(ZERO, body));
    CHECK(map_hash_with(ZERO, STR("a")) != map_hash_with(ZERO, STR("aa")));
}

int main(void)
{
    return check_run();
}
