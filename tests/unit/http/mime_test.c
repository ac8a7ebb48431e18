#include "http/mime.h"

#include "base/compiler.h"
#include "support/check.h"

#define CHECK_TYPE(path, want)                                                                     \
    do {                                                                                           \
        struct str type = mime_of_path(STR(path));                                                 \
        CHECK_MEM(type.at, type.len, want, sizeof(want) - 1);                                      \
    } while (0)

TEST(extensions_decide_in_either_case)
{
    CHECK_TYPE("/a/index.html", "text/html; charset=utf-8");
    CHECK_TYPE("PHOTO.JPG", "image/jpeg");
    CHECK_TYPE("site.webmanifest", "application/manifest+json");
    CHECK_TYPE("x.tar.gz", "application/gzip");
    CHECK_TYPE("font.woff2", "font/woff2");
    CHECK_TYPE("7.7z", "application/x-7z-compressed");
    CHECK_TYPE("a.zst", "application/zstd");
}

TEST(what_is_not_known_is_bytes)
{
    CHECK_TYPE("README", "application/octet-stream");
    CHECK_TYPE("a.html/b", "application/octet-stream");
    CHECK_TYPE("a.", "application/octet-stream");
    CHECK_TYPE("a.thisextensionistoolong", "application/octet-stream");
    CHECK_TYPE("", "application/octet-stream");
    CHECK(mime_of_extension(STR("nope")).len == 0);
}

/* The table must be in order, or bsearch() would miss some of it. */
TEST(every_common_type_is_found)
{
    static const char *const extensions[] = { "aac", "avif", "avi", "br",  "c",    "css",  "csv",
                                              "gif", "h",    "htm", "ico", "js",   "json", "jxl",
                                              "map", "md",   "mjs", "mp4", "pdf",  "png",  "rss",
                                              "svg", "ts",   "ttf", "txt", "wasm", "webp", "woff",
                                              "xml", "yml",  "zip" };

    for (unsigned i = 0; i < ARRAY_LEN(extensions); i++)
        CHECK(mime_of_extension(str_of(extensions[i])).len > 0);
}

int main(void)
{
    return check_run();
}
