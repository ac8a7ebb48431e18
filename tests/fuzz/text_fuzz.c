/* links: srv_base
 *
 * Whatever the bytes are: JSON is one well-formed string of UTF-8 without control characters, and
 * nothing that drives a terminal reaches it. */
#include <stdint.h>
#include <stdlib.h>

#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool claim)
{
    if (!claim)
        abort();
}

/* Only whole characters, none of them a control character but LINE_END. */
static void check_characters(struct str s, char line_end)
{
    while (s.len) {
        size_t        sequence = text_utf8_len(s);
        unsigned char first    = (unsigned char)s.at[0];

        must(sequence > 0);
        must(sequence > 1 || (first >= 0x20 && first < 0x7f) || s.at[0] == line_end);
        must(sequence != 2 || first != 0xc2 || (unsigned char)s.at[1] >= 0xa0); /* C1 */
        s = str_from(s, sequence);
    }
}

/* A quote inside stands behind an odd number of backslashes. */
static void check_quotes(struct str s)
{
    bool escaped = false;

    must(s.len >= 2 && s.at[0] == '"' && s.at[s.len - 1] == '"');
    for (size_t i = 1; i + 1 < s.len; i++) {
        must(escaped || s.at[i] != '"');
        escaped = !escaped && s.at[i] == '\\';
    }
    must(!escaped);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str text = str_make((const char *)bytes, len);
    struct buf out;

    buf_init(&out, 8 * len + 64);
    text_json(&out, text);
    must(!out.failed);
    check_characters(buf_str(&out), '"');
    check_quotes(buf_str(&out));
    for (unsigned indent = 0; indent <= 4; indent += 4) {
        buf_clear(&out);
        text_terminal(&out, text, indent);
        must(!out.failed);
        if (out.len)
            check_characters(buf_str(&out), indent ? '\n' : ' ');
    }
    buf_fini(&out);
    return 0;
}
