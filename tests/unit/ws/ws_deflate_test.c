#include "ws/ws_deflate.h"

#include "base/rand.h"
#include "ws/ws_code.h"
#include "support/check.h"

static struct ws_deflater deflater;

TEST(what_was_packed_unpacks_and_each_message_stands_alone)
{
    struct str text = STR("the same words again and again and again and again, the same words");
    struct str packed, again, plain;
    char       copy[200];

    ws_deflater_init(&deflater);
    CHECK(ws_pack(&deflater, text, &packed));
    CHECK(packed.len < text.len);
    CHECK(!str_ends_with(packed, STR("\x00\x00\xff\xff")));
    memcpy(copy, packed.at, packed.len);
    CHECK(ws_pack(&deflater, text, &again));
    CHECK_MEM(again.at, again.len, copy, packed.len);
    CHECK_INT(ws_unpack(&deflater, again, 1000, &plain), 0);
    CHECK(str_is(plain, text));
    CHECK_INT(ws_unpack(&deflater, str_make(copy, packed.len), 1000, &plain), 0);
    CHECK(str_is(plain, text));
    CHECK_INT(deflater.packed_count, 2);
    ws_deflater_fini(&deflater);
}

TEST(noise_is_not_packed)
{
    char       noise[1000];
    struct str packed;

    rand_bytes(noise, sizeof(noise));
    ws_deflater_init(&deflater);
    CHECK(!ws_pack(&deflater, str_make(noise, sizeof(noise)), &packed));
    ws_deflater_fini(&deflater);
}

TEST(the_limit_is_that_of_what_comes_out)
{
    static char zeros[100 * 1000];
    struct str  packed, plain;

    ws_deflater_init(&deflater);
    CHECK(ws_pack(&deflater, str_make(zeros, sizeof(zeros)), &packed));
    CHECK_INT(ws_unpack(&deflater, packed, sizeof(zeros), &plain), 0);
    CHECK_INT(plain.len, sizeof(zeros));
    CHECK_INT(ws_unpack(&deflater, packed, sizeof(zeros) - 1, &plain), WS_CODE_TOO_LARGE);
    CHECK_INT(ws_unpack(&deflater, packed, 0, &plain), WS_CODE_TOO_LARGE);
    ws_unpack_end(&deflater);
    CHECK_INT(deflater.plain.room, 0);
    ws_deflater_fini(&deflater);
}

TEST(broken_data_is_told_and_does_not_stay)
{
    struct str plain;

    ws_deflater_init(&deflater);
    CHECK_INT(ws_unpack(&deflater, STR("\xff"), 1000, &plain), WS_CODE_BAD_DATA);
    CHECK_INT(ws_unpack(&deflater, STR("\xf2\x48\xcd\xc9\xc9\x07\x00"), 1000, &plain), 0);
    CHECK(str_is(plain, STR("Hello"))); /* RFC 7692, 7.2.3.1 */
    CHECK_INT(ws_unpack(&deflater, STR("\xf2\x00\x11\x00\x00"), 1000, &plain),
              WS_CODE_BAD_DATA); /* it would need an earlier message's window (7.2.3.2) */
    ws_deflater_fini(&deflater);
}

/* RFC 7692, 7.2.3: without compression, in two blocks, with a final block. */
TEST(all_forms_of_deflate_are_understood)
{
    static const struct str FORMS[] = {
        STR_INIT("\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"),
        STR_INIT("\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"),
        STR_INIT("\xf3\x48\xcd\xc9\xc9\x07\x00\x00"),
    };
    struct str plain;

    ws_deflater_init(&deflater);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_INT(ws_unpack(&deflater, FORMS[i], 5, &plain), 0);
        CHECK(str_is(plain, STR("Hello")));
    }
    ws_deflater_fini(&deflater);
}

int main(void)
{
    return check_run();
}
