/* What writers make, readers read: all codings, whole, in pieces and flushed. */
#include "base/coding.h"

#include <stdlib.h>
#include <string.h>

#include "base/brotli.h"
#include "base/deflate.h"
#include "base/zstd.h"
#include "support/check.h"

enum { TEXT_BYTES = 300000, ROOM = 2 * TEXT_BYTES };

static const struct pair {
    struct coding *(*writer)(void);
    struct coding *(*reader)(void);
} PAIRS[] = {
    { gzip_writer_new, deflate_reader_new },
    { brotli_writer_new, brotli_reader_new },
    { zstd_writer_new, zstd_reader_new },
};
enum { PAIR_COUNT = sizeof(PAIRS) / sizeof(PAIRS[0]) };

static char text[TEXT_BYTES], coded[ROOM], decoded[ROOM];

static void fill_text(void)
{
    unsigned state = 1;

    for (size_t i = 0; i < TEXT_BYTES; i++) {
        state   = state * 1103515245 + 12345;
        text[i] = "the quick brown fox"[state >> 16 & 15];
    }
}

/* All of IN in steps with PIECE of room; what was made is in OUT. */
static size_t run_all(struct coding *coding, struct str in, size_t piece, char *out,
                      enum coding_step *last_step)
{
    size_t made, len = 0;

    do {
        *last_step = coding_run(coding, &in, true, out + len, piece, &made);
        len += made;
    } while (*last_step == CODING_FULL);
    return len;
}

static void round_trip(const struct pair *pair, size_t piece)
{
    struct coding   *writer = pair->writer(), *reader = pair->reader();
    enum coding_step step;
    size_t           coded_len, len;

    coded_len = run_all(writer, str_make(text, TEXT_BYTES), piece, coded, &step);
    CHECK_INT(step, CODING_DONE);
    CHECK(coded_len < TEXT_BYTES * 3 / 4);
    len = run_all(reader, str_make(coded, coded_len), piece, decoded, &step);
    CHECK_INT(step, CODING_DONE);
    CHECK_INT(len, TEXT_BYTES);
    CHECK(memcmp(text, decoded, TEXT_BYTES) == 0);
    coding_free(writer);
    coding_free(reader);
}

TEST(a_text_that_was_written_is_read_as_it_was_with_much_room_and_with_little)
{
    fill_text();
    for (int i = 0; i < PAIR_COUNT; i++) {
        round_trip(&PAIRS[i], ROOM / 2);
        round_trip(&PAIRS[i], 7);
    }
}

TEST(what_was_flushed_can_be_read_before_the_end)
{
    for (int i = 0; i < PAIR_COUNT; i++) {
        struct coding *writer = PAIRS[i].writer(), *reader = PAIRS[i].reader();
        struct str     in = STR("event one"), from;
        size_t         made, flushed, len;

        CHECK_INT(coding_run(writer, &in, false, coded, ROOM, &made), CODING_MORE);
        CHECK_INT(coding_flush(writer, coded + made, ROOM - made, &flushed), CODING_MORE);
        from = str_make(coded, made + flushed);
        CHECK_INT(coding_run(reader, &from, false, decoded, ROOM, &len), CODING_MORE);
        CHECK_INT(len, 9);
        CHECK(memcmp(decoded, "event one", 9) == 0);
        coding_free(writer);
        coding_free(reader);
    }
}

TEST(a_writer_that_was_reset_writes_the_same_text_the_same_way)
{
    for (int i = 0; i < PAIR_COUNT; i++) {
        struct coding   *writer = PAIRS[i].writer();
        enum coding_step step;
        size_t len = run_all(writer, STR("the same, the same, the same"), ROOM, coded, &step);

        if (coding_reset(writer)) {
            size_t again =
                run_all(writer, STR("the same, the same, the same"), ROOM, decoded, &step);

            CHECK_INT(again, len);
            CHECK(memcmp(coded, decoded, len) == 0);
        }
        coding_free(writer);
    }
}

TEST(zstd_frames_in_a_row_are_one_text_and_one_cut_short_is_broken)
{
    struct coding   *writer = zstd_writer_new(), *reader = zstd_reader_new();
    enum coding_step step;
    size_t           len = run_all(writer, STR("one "), ROOM, coded, &step), made;

    coding_reset(writer);
    len += run_all(writer, STR("two"), ROOM, coded + len, &step);
    made = run_all(reader, str_make(coded, len), ROOM, decoded, &step);
    CHECK_INT(step, CODING_DONE);
    CHECK_INT(made, 7);
    CHECK(memcmp(decoded, "one two", 7) == 0);
    coding_free(reader);
    reader = zstd_reader_new();
    run_all(reader, str_make(coded, len - 1), ROOM, decoded, &step);
    CHECK_INT(step, CODING_BROKEN);
    coding_free(reader);
    reader = zstd_reader_new();
    run_all(reader, STR(""), ROOM, decoded, &step);
    CHECK_INT(step, CODING_BROKEN);
    coding_free(reader);
    coding_free(writer);
}

int main(void)
{
    return check_run();
}
