#include "base/iov.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "support/check.h"

static struct iovec PIECES[] = { { "ab", 2 }, { NULL, 0 }, { "cde", 3 }, { "f", 1 } };

enum { COUNT = sizeof(PIECES) / sizeof(PIECES[0]) };

TEST(the_length_of_pieces_is_that_of_all)
{
    CHECK_INT(iov_len(PIECES, COUNT), 6);
    CHECK_INT(iov_len(PIECES, 0), 0);
}

static void check_cut(size_t most, int count_max, int pieces, size_t want)
{
    struct iovec out[COUNT];
    size_t       len;

    CHECK_INT(iov_cut(out, count_max, PIECES, COUNT, most, &len), pieces);
    CHECK_INT(len, want);
    CHECK_INT(iov_len(out, pieces), want);
}

TEST(a_cut_ends_inside_a_piece_or_where_there_is_no_room_for_another)
{
    check_cut(100, COUNT, 4, 6);
    check_cut(6, COUNT, 4, 6);
    check_cut(4, COUNT, 3, 4);
    check_cut(2, COUNT, 1, 2);
    check_cut(0, COUNT, 0, 0);
    check_cut(100, 3, 3, 5);
}

static void check_copy(size_t skip, size_t most, const char *want)
{
    struct buf to;

    buf_init(&to, 100);
    CHECK_INT(iov_copy(&to, PIECES, COUNT, skip, most), strlen(want));
    CHECK_MEM(to.at, to.len, want, strlen(want));
    buf_fini(&to);
}

TEST(a_copy_begins_behind_what_is_skipped_and_ends_where_it_is_told)
{
    check_copy(0, SIZE_MAX, "abcdef");
    check_copy(1, SIZE_MAX, "bcdef");
    check_copy(2, 2, "cd");
    check_copy(3, SIZE_MAX, "def");
    check_copy(0, 4, "abcd");
    check_copy(6, SIZE_MAX, "");
    check_copy(7, SIZE_MAX, "");
    check_copy(0, 0, "");
}

int main(void)
{
    return check_run();
}
