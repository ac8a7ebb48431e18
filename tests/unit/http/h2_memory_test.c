#include "http/h2_memory.h"

#include <stddef.h>
#include <stdint.h>

#include "support/check.h"

static struct h2_memory memory;

static void *take(size_t bytes)
{
    void *block = memory.calls.malloc(bytes, memory.calls.mem_user_data);

    if (block)
        memset(block, 0xa5, bytes);
    return block;
}

static void give_back(void *block)
{
    memory.calls.free(block, memory.calls.mem_user_data);
}

TEST(what_was_given_back_is_given_out_again)
{
    void *first, *second, *larger;

    h2_memory_init(&memory);
    first = take(100);
    give_back(first);
    second = take(128);
    larger = take(129);
    CHECK(second == first && larger != first);
    give_back(second);
    give_back(larger);
    h2_memory_fini(&memory);
}

TEST(blocks_are_aligned_as_those_of_malloc)
{
    h2_memory_init(&memory);
    for (size_t bytes = 1; bytes < 5000; bytes = bytes * 3 + 1) {
        void *block = take(bytes);

        CHECK_INT((uintptr_t)block % _Alignof(max_align_t), 0);
        give_back(block);
    }
    h2_memory_fini(&memory);
}

TEST(a_block_that_grows_keeps_its_bytes)
{
    char *block;

    h2_memory_init(&memory);
    block = take(10);
    memcpy(block, "0123456789", 10);
    for (size_t bytes = 20; bytes < 100000; bytes *= 3) {
        block = memory.calls.realloc(block, bytes, memory.calls.mem_user_data);
        CHECK_MEM(block, 10, "0123456789", 10);
        memset(block + 10, 'x', bytes - 10);
    }
    give_back(block);
    block = memory.calls.realloc(NULL, 10, memory.calls.mem_user_data);
    CHECK(block);
    give_back(block);
    h2_memory_fini(&memory);
}

TEST(zeroed_blocks_are_zero_and_do_not_overflow)
{
    char *block;

    h2_memory_init(&memory);
    give_back(take(60));
    block = memory.calls.calloc(6, 10, memory.calls.mem_user_data);
    for (unsigned i = 0; i < 60; i++)
        CHECK_INT(block[i], 0);
    give_back(block);
    CHECK(!memory.calls.calloc(SIZE_MAX / 2, 3, memory.calls.mem_user_data));
    h2_memory_fini(&memory);
}

TEST(no_more_than_a_number_is_kept)
{
    void *blocks[2 * H2_MEMORY_KEPT_MAX];

    h2_memory_init(&memory);
    for (unsigned i = 0; i < 2 * H2_MEMORY_KEPT_MAX; i++)
        blocks[i] = take(64);
    for (unsigned i = 0; i < 2 * H2_MEMORY_KEPT_MAX; i++)
        give_back(blocks[i]);
    CHECK_INT(memory.kept_count[0], H2_MEMORY_KEPT_MAX);
    h2_memory_fini(&memory);
}

int main(void)
{
    return check_run();
}
