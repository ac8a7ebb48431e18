#include "http/multipart.h"

#include <stdlib.h>

#include "support/check.h"

/* What a body says, as text: "[name|file|type]content." for each part, "!status" for a fault. */
static char   story[1 << 16];
static size_t story_len;

static void tell(struct str s)
{
    if (story_len + s.len < sizeof(story)) {
        memcpy(story + story_len, s.at, s.len);
        story_len += s.len;
    }
}

static void tell_part(const struct multipart_part *part)
{
    tell(STR("["));
    tell(part->name);
    tell(STR("|"));
    tell(part->file_name.at ? part->file_name : STR("-"));
    tell(STR("|"));
    tell(part->type.at ? part->type : STR("-"));
    tell(STR("]"));
}

static bool tell_fault(const struct multipart *m)
{
    char text[16];

    snprintf(text, sizeof(text), "!%u", m->fault);
    tell(str_of(text));
    CHECK(m->why != NULL);
    return false;
}

static bool tell_piece(struct multipart *m, struct str piece)
{
    enum multipart_step step;
    struct str          data;

    do {
        step = multipart_next(m, &piece, &data);
        if (step == MULTIPART_PART)
            tell_part(&m->part);
        if (step == MULTIPART_DATA)
            tell(data);
        if (step == MULTIPART_END)
            tell(STR("."));
        if (step == MULTIPART_BROKEN)
            return tell_fault(m);
    } while (step != MULTIPART_MORE);
    CHECK_INT(piece.len, 0);
    return true;
}

/* In pieces of which the first has FIRST bytes and the others LATER. */
static const char *read_cut(struct str type, struct str body, size_t first, size_t later)
{
    struct multipart m;
    size_t           len = first;
    bool             ok  = multipart_init(&m, type);

    story_len = 0;
    if (!ok)
        tell_fault(&m);
    for (; ok && body.len; len = later) {
        /* memory of its own, so that reading behind a piece is seen */
        size_t now   = len < body.len ? len : body.len;
        char  *piece = malloc(now ? now : 1);

        memcpy(piece, body.at, now);
        ok = tell_piece(&m, str_make(piece, now));
        free(piece);
        body = str_from(body, now);
    }
    if (ok && !multipart_finish(&m))
        tell_fault(&m);
    multipart_fini(&m);
    story[story_len] = '\0';
    return story;
}

static const struct str TYPE = STR_INIT("multipart/form-data; boundary=B");

/* The same, however it is cut. */
static const char *read_body(struct str body)
{
    static char whole[sizeof(story)];

    strcpy(whole, read_cut(TYPE, body, body.len, body.len));
    for (size_t first = 0; first <= body.len; first++)
        CHECK_STR(read_cut(TYPE, body, first, body.len), whole);
    for (size_t step = 1; step < 8; step++)
        CHECK_STR(read_cut(TYPE, body, step, step), whole);
    return whole;
}

#define PART(disposition, content)                                                                 \
    "--B\r\nContent-Disposition: form-data; " disposition "\r\n\r\n" content "\r\n"
#define FIELD(content) PART("name=a", content)
#define READ(body)     read_body(STR(body))
#define READ_ONE(d)    READ(PART(d, "x") "--B--")
#define HEAD(lines)    "--B\r\n" lines "\r\n\r\nx\r\n--B--\r\n"
#define DISPOSED       "Content-Disposition: form-data; name=a"

TEST(fields_and_files_come_in_order)
{
    CHECK_STR(READ(PART("name=\"t\"",
                        "v") "--B\r\n"
                             "content-TYPE: Text/Plain; charset=utf-8\r\n"
                             "Content-Disposition: Form-Data; filename=\"a.txt\"; name=\"file\"\r\n"
                             "\r\nhi\r\n--B--\r\n"),
              "[t|-|-]v.[file|a.txt|text/plain]hi.");
}

TEST(content_is_any_bytes_but_a_delimiter)
{
    CHECK_STR(READ(FIELD("\r\r\n\r\n-\r\n--\r\n--A\r\n --B\n--B\r--B") "--B--"),
              "[a|-|-]\r\r\n\r\n-\r\n--\r\n--A\r\n --B\n--B\r--B.");
    CHECK_STR(READ(FIELD("") "--B--"), "[a|-|-].");
    CHECK_STR(READ(FIELD("\r\n") FIELD("\r") "--B--"), "[a|-|-]\r\n.[a|-|-]\r.");
}

TEST(a_delimiter_right_behind_a_head_ends_a_part_without_a_body)
{
    CHECK_STR(READ("--B\r\n" DISPOSED "\r\n\r\n--B\r\n" DISPOSED "\r\n\r\nx\r\n--B--"),
              "[a|-|-].[a|-|-]x.");
    CHECK_STR(READ("--B\r\n" DISPOSED "\r\n\r\n--Bx\r\n--B--"), "[a|-|-].!400");
    CHECK_STR(READ(FIELD("--") FIELD("--A") "--B--"), "[a|-|-]--.[a|-|-]--A.");
}

TEST(what_stands_around_the_parts_is_skipped)
{
    CHECK_STR(READ("hello\r\n--A\r\n" FIELD("x") "--B--\r\nbye\r\n--B\r\nmore"), "[a|-|-]x.");
    CHECK_STR(READ("\r\n" FIELD("x") "--B--"), "[a|-|-]x.");
    CHECK_STR(READ("--B \t\r\n" DISPOSED "\r\n\r\nx\r\n--B-- \t\r\n"), "[a|-|-]x.");
}

TEST(a_form_may_have_no_parts)
{
    CHECK_STR(READ("--B--\r\n"), "");
}

TEST(a_body_that_ends_early_is_malformed)
{
    struct str whole = STR(FIELD("unfinished") "--B--");

    for (size_t len = 0; len < whole.len; len++) {
        const char *told = read_cut(TYPE, str_make(whole.at, len), len, len);

        CHECK(strcmp(told + strlen(told) - 4, "!400") == 0);
    }
}

TEST(lines_end_in_crlf)
{
    CHECK_STR(READ("--B\n" DISPOSED "\r\n\r\nx\r\n--B--"), "!400");
    CHECK_STR(READ("--B\r" DISPOSED "\r\n\r\nx\r\n--B--"), "!400");
    CHECK_STR(READ("--B\r\n" DISPOSED "\n\r\nx\r\n--B--"), "!400");
    CHECK_STR(READ("--B\r\n" DISPOSED "\r\n\nx\r\n--B--"), "!400");
    CHECK_STR(READ("--B\r\n" DISPOSED "\rX: y\r\n\r\nx\r\n--B--"), "!400");
    CHECK_STR(READ(FIELD("x") "--B--\rx"), "[a|-|-]x.!400");
}

TEST(a_line_that_begins_with_the_boundary_is_a_delimiter_or_a_fault)
{
    CHECK_STR(READ(FIELD("x") "--Bx\r\n"), "[a|-|-]x.!400");
    CHECK_STR(READ(FIELD("x") "--B-\r\n"), "[a|-|-]x.!400");
    CHECK_STR(READ(FIELD("x") "--B--x"), "[a|-|-]x.!400");
}

TEST(heads_are_checked)
{
    CHECK_STR(READ("--B\r\n\r\nx\r\n--B--"), "!400");
    CHECK_STR(READ(HEAD("Content-Type: text/plain")), "!400");
    CHECK_STR(READ(HEAD("Content-Disposition: attachment; name=a")), "!400");
    CHECK_STR(READ(HEAD("Content-Disposition: form-data")), "!400");
    CHECK_STR(READ(HEAD("Content-Disposition: form-data; filename=a")), "!400");
    CHECK_STR(READ(HEAD(DISPOSED "\r\n" DISPOSED)), "!400");
    CHECK_STR(READ(HEAD(DISPOSED "\r\nX y: 1")), "!400");
    CHECK_STR(READ(HEAD(DISPOSED "\r\nX : 1")), "!400");
    CHECK_STR(READ(HEAD(DISPOSED "\r\n folded")), "!400");
    CHECK_STR(READ(HEAD(DISPOSED "\r\nX: \1")), "!400");
    CHECK_STR(READ(HEAD(DISPOSED "\r\nX: a\0b")), "!400");
    CHECK_STR(READ(HEAD(DISPOSED "\r\nno colon")), "!400");
    CHECK_STR(READ(HEAD(DISPOSED "\r\nContent-Type: nonsense")), "!400");
    CHECK_STR(READ(HEAD(DISPOSED "\r\nContent-Type: a/b\r\nContent-Type: a/b")), "!400");
    CHECK_STR(READ(HEAD(DISPOSED "\r\nContent-Type:")), "!400");
    CHECK_STR(READ(HEAD(DISPOSED "\r\nX:\r\nContent-Type:image/PNG ;a=b")), "[a|-|image/png]x.");
}

TEST(parts_are_neither_nested_nor_coded)
{
    CHECK_STR(READ(HEAD(DISPOSED "\r\nContent-Type: multipart/mixed; boundary=C")), "!400");
    CHECK_STR(READ(HEAD(DISPOSED "\r\nContent-Transfer-Encoding: base64")), "!415");
    CHECK_STR(READ(HEAD(DISPOSED "\r\nContent-Transfer-Encoding: Binary")), "[a|-|-]x.");
}

TEST(parameters_are_read_as_browsers_and_tools_write_them)
{
    CHECK_STR(READ_ONE("name=\"a b;c=d\""), "[a b;c=d|-|-]x.");
    CHECK_STR(READ_ONE("name = \"a\" ; x=y ;"), "[a|-|-]x.");
    CHECK_STR(READ_ONE("NAME=a; FileName=b"), "[a|b|-]x.");
    CHECK_STR(READ_ONE("name=\"a\\\"b\\\\c\\d\""), "[a\"b\\c\\d|-|-]x.");
    CHECK_STR(READ_ONE("name=\"a%22b%0d%0Ac%41%\""), "[a\"b\r\nc%41%|-|-]x.");
    CHECK_STR(READ_ONE("name=\"\""), "[|-|-]x.");
    CHECK_STR(READ_ONE("name=\"\xc3\xa9\""), "[\xc3\xa9|-|-]x.");
}

TEST(malformed_parameters_are_refused)
{
    CHECK_STR(READ_ONE("name=\"a"), "!400");
    CHECK_STR(READ_ONE("name=a b"), "!400");
    CHECK_STR(READ_ONE("name=\"a\"b"), "!400");
    CHECK_STR(READ_ONE("name"), "!400");
    CHECK_STR(READ_ONE("name="), "!400");
    CHECK_STR(READ_ONE("=a"), "!400");
    CHECK_STR(READ_ONE("name=a; name=b"), "!400");
    CHECK_STR(READ_ONE("name=a; filename=b; filename=c"), "!400");
    CHECK_STR(READ_ONE("name=\"\xe9\""), "!400");
    CHECK_STR(READ_ONE("name=a; filename=\"\xe9\""), "!400");
}

TEST(the_extended_name_of_a_file_goes_before_the_plain_one)
{
    CHECK_STR(READ_ONE("name=a; filename=\"e.txt\"; filename*=UTF-8''%e2%82%ac.txt"),
              "[a|\xe2\x82\xac.txt|-]x.");
    CHECK_STR(READ_ONE("name=a; filename*=utf-8'en'a%20b"), "[a|a b|-]x.");
    CHECK_STR(READ_ONE("name=a; filename*=UTF-8''..%2f..%2Fpasswd"), "[a|passwd|-]x.");
}

TEST(an_extended_name_that_is_none_is_passed_over)
{
    CHECK_STR(READ_ONE("name=a; filename=e; filename*=ISO-8859-1''%e9"), "[a|e|-]x.");
    CHECK_STR(READ_ONE("name=a; filename=e; filename*=UTF-8''%e9"), "[a|e|-]x.");
    CHECK_STR(READ_ONE("name=a; filename=e; filename*=UTF-8''%4"), "[a|e|-]x.");
    CHECK_STR(READ_ONE("name=a; filename=e; filename*=UTF-8'x"), "[a|e|-]x.");
    CHECK_STR(READ_ONE("name=a; filename*=x"), "[a|-|-]x.");
}

TEST(names_of_files_hold_no_path_and_nothing_that_deceives)
{
    CHECK_STR(READ_ONE("name=a; filename=\"../../etc/passwd\""), "[a|passwd|-]x.");
    CHECK_STR(READ_ONE("name=a; filename=\"C:\\dir\\a.txt\""), "[a|a.txt|-]x.");
    CHECK_STR(READ_ONE("name=a; filename=\"a%0d%0ab.txt\""), "[a|ab.txt|-]x.");
    CHECK_STR(READ_ONE("name=a; filename=\"a\xe2\x80\xaegpj.exe\""), "[a|agpj.exe|-]x.");
    CHECK_STR(READ_ONE("name=a; filename*=UTF-8''a%00%7f%c2%85b"), "[a|ab|-]x.");
    CHECK_STR(READ_ONE("name=a; filename=\" a \""), "[a|a|-]x.");
    CHECK_STR(READ_ONE("name=a; filename=\"..\""), "[a|unnamed|-]x.");
    CHECK_STR(READ_ONE("name=a; filename=\"a/\""), "[a|unnamed|-]x.");
    CHECK_STR(READ_ONE("name=a; filename=\"\""), "[a|unnamed|-]x.");
}

TEST(long_names_of_files_keep_their_ending)
{
    char   name[1000], safe[MULTIPART_FILE_NAME_MAX];
    size_t len;

    for (size_t i = 0; i + 1 < sizeof(name); i += 2)
        memcpy(name + i, "\xc3\xa9", 2);
    memcpy(name + sizeof(name) - 5, ".jpeg", 5);
    name[sizeof(name) - 6] = 'x';
    len                    = multipart_safe_name(str_make(name, sizeof(name)), safe);
    CHECK(len <= sizeof(safe) && len > 240);
    CHECK(str_ends_with(str_make(safe, len), STR("\xc3\xa9.jpeg")));
    memset(name, 'a', sizeof(name));
    CHECK_INT(multipart_safe_name(str_make(name, sizeof(name)), safe), sizeof(safe));
}

static const char *read_long_head(size_t bytes, bool with_lines)
{
    static char body[40000];
    size_t      len = (size_t)snprintf(body, sizeof(body), "--B\r\n%s\r\nX: ", DISPOSED);

    for (size_t end = len + bytes; len < end; len++)
        body[len] = 'x';
    for (int i = 0; with_lines && i < MULTIPART_FIELDS_MAX; i++)
        len += (size_t)snprintf(body + len, sizeof(body) - len, "\r\nY: %d", i);
    len += (size_t)snprintf(body + len, sizeof(body) - len, "\r\n\r\nx\r\n--B--");
    return read_cut(TYPE, str_make(body, len), 1000, 999);
}

TEST(heads_are_bounded)
{
    CHECK_STR(read_long_head(MULTIPART_HEAD_BYTES_MAX - 100, false), "[a|-|-]x.");
    CHECK_STR(read_long_head(MULTIPART_HEAD_BYTES_MAX, false), "!413");
    CHECK_STR(read_long_head(2 * MULTIPART_HEAD_BYTES_MAX, false), "!413");
    CHECK_STR(read_long_head(10, true), "!413");
}

#define TYPE_IS(type, boundary)                                                                    \
    CHECK_STR(read_cut(STR(type),                                                                  \
                       STR("--" boundary "\r\n" DISPOSED "\r\n\r\nx\r\n--" boundary "--"), 9, 9),  \
              "[a|-|-]x.")
#define NO_TYPE(type) CHECK_STR(read_cut(STR(type), STR("x"), 1, 1), "!400")
#define SIXTY         "123456789012345678901234567890123456789012345678901234567890"

TEST(boundaries_are_1_to_70_plain_characters)
{
    TYPE_IS("multipart/form-data; boundary=\"a b:c=?\"", "a b:c=?");
    TYPE_IS("multipart/form-data;charset=utf-8 ; BOUNDARY=*****", "*****");
    TYPE_IS("multipart/form-data; boundary=a:b", "a:b");
    TYPE_IS("multipart/form-data; boundary=" SIXTY "1234567890", SIXTY "1234567890");
    NO_TYPE("multipart/form-data; boundary=" SIXTY "12345678901");
    NO_TYPE("multipart/form-data");
    NO_TYPE("multipart/form-data; boundary");
    NO_TYPE("multipart/form-data; boundary=");
    NO_TYPE("multipart/form-data; boundary=\"\"");
    NO_TYPE("multipart/form-data; boundary=\"a \"");
    NO_TYPE("multipart/form-data; boundary=\"a");
    NO_TYPE("multipart/form-data; boundary=\xe9");
    NO_TYPE("multipart/form-data; boundary=a; boundary=a");
}

int main(void)
{
    return check_run();
}
