#include "data/dict_room.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

enum { KIB = 1024, ROOM_BYTES = 256 * KIB, BLOCKS_MAX = 4000 };

static struct dict_room room;

/* Each block is full of one byte of its own: two that overlap would spoil each other. */
static struct {
    unsigned char *at;
    size_t         bytes;
    unsigned char  fill;
} blocks[BLOCKS_MAX];
static unsigned block_count;
static size_t   cost;

static void open_room(void)
{
    block_count = 0;
    cost        = 0;
    CHECK(dict_room_init(&room, ROOM_BYTES));
}

static bool take(size_t bytes)
{
    unsigned char *at = dict_room_take(&room, bytes);

    if (!at || block_count == BLOCKS_MAX)
        return false;
    CHECK_INT((uintptr_t)at % DICT_ROOM_ALIGN, 0);
    blocks[block_count].at    = at;
    blocks[block_count].bytes = bytes;
    blocks[block_count].fill  = (unsigned char)(block_count * 7 + bytes);
    memset(at, blocks[block_count].fill, bytes);
    block_count++;
    cost += dict_room_cost(bytes);
    return true;
}

static void give_back(unsigned i)
{
    for (size_t at = 0; at < blocks[i].bytes; at++)
        if (blocks[i].at[at] != blocks[i].fill)
            CHECK(!"a block was overwritten");
    dict_room_give_back(&room, blocks[i].at);
    cost -= dict_room_cost(blocks[i].bytes);
    blocks[i] = blocks[--block_count];
}

TEST(a_block_as_large_as_the_room_fits_once)
{
    open_room();
    CHECK(!take(ROOM_BYTES));
    CHECK(take(ROOM_BYTES - 8));
    CHECK(!take(1));
    give_back(0);
    CHECK(take(ROOM_BYTES - 8));
    dict_room_fini(&room);
}

TEST(blocks_of_all_sizes_come_and_go_and_none_touches_another)
{
    static const size_t MOST[] = { 60, 300, 3000, 60000 };
    unsigned            seed   = 1;
    unsigned            taken  = 0;

    open_room();
    for (unsigned i = 0; i < 200000; i++) {
        seed = seed * 1103515245 + 12345;
        if ((seed >> 16 & 7) < 5 && take(1 + (seed >> 8) % MOST[i / 1000 % 4])) {
            taken++;
            CHECK(cost <= ROOM_BYTES);
        } else if (block_count > 0) {
            give_back((seed >> 8) % block_count);
        }
    }
    CHECK(taken > 10000);
    while (block_count > 0)
        give_back((seed++ >> 3) % block_count);
    CHECK_INT(room.top, 0); /* all of it is one part again */
    CHECK(take(ROOM_BYTES - 8));
    dict_room_fini(&room);
}

TEST(neighbours_that_are_free_become_one_whatever_their_order)
{
    static const unsigned ORDERS[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                          { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

    for (unsigned i = 0; i < 6; i++) {
        void *three[3], *last;

        CHECK(dict_room_init(&room, ROOM_BYTES));
        for (unsigned k = 0; k < 3; k++)
            three[k] = dict_room_take(&room, 1000);
        last = dict_room_take(&room, 1000);
        for (unsigned k = 0; k < 3; k++)
            dict_room_give_back(&room, three[ORDERS[i][k]]);
        CHECK(dict_room_take(&room, 3 * dict_room_cost(1000) - 8) == three[0]);
        dict_room_give_back(&room, last);
        dict_room_fini(&room);
    }
}

int main(void)
{
    return check_run();
}
