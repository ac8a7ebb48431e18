#include "http/mime.h"

#include <stdlib.h>

#include "base/compiler.h"

struct type {
    struct str extension;
    struct str type;
};

#define TYPE(extension, type)                                                                      \
    {                                                                                              \
        STR_INIT(extension), STR_INIT(type)                                                        \
    }

/* In byte order of the extension, for bsearch(). Text says that it is UTF-8, since a browser would
 * guess otherwise; JSON, XML and SVG need not, their formats settle it. */
static const struct type types[] = {
    TYPE("7z", "application/x-7z-compressed"),
    TYPE("aac", "audio/aac"),
    TYPE("apng", "image/apng"),
    TYPE("atom", "application/atom+xml"),
    TYPE("avi", "video/x-msvideo"),
    TYPE("avif", "image/avif"),
    TYPE("bin", "application/octet-stream"),
    TYPE("bmp", "image/bmp"),
    TYPE("br", "application/x-brotli"),
    TYPE("bz2", "application/x-bzip2"),
    TYPE("c", "text/plain; charset=utf-8"),
    TYPE("conf", "text/plain; charset=utf-8"),
    TYPE("css", "text/css; charset=utf-8"),
    TYPE("csv", "text/csv; charset=utf-8"),
    TYPE("doc", "application/msword"),
    TYPE("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    TYPE("eot", "application/vnd.ms-fontobject"),
    TYPE("epub", "application/epub+zip"),
    TYPE("flac", "audio/flac"),
    TYPE("gif", "image/gif"),
    TYPE("gz", "application/gzip"),
    TYPE("h", "text/plain; charset=utf-8"),
    TYPE("htm", "text/html; charset=utf-8"),
    TYPE("html", "text/html; charset=utf-8"),
    TYPE("ico", "image/x-icon"),
    TYPE("ics", "text/calendar; charset=utf-8"),
    TYPE("jpeg", "image/jpeg"),
    TYPE("jpg", "image/jpeg"),
    TYPE("js", "text/javascript; charset=utf-8"),
    TYPE("json", "application/json"),
    TYPE("jsonld", "application/ld+json"),
    TYPE("jxl", "image/jxl"),
    TYPE("log", "text/plain; charset=utf-8"),
    TYPE("lua", "text/plain; charset=utf-8"),
    TYPE("m4a", "audio/mp4"),
    TYPE("map", "application/json"),
    TYPE("md", "text/markdown; charset=utf-8"),
    TYPE("mid", "audio/midi"),
    TYPE("mjs", "text/javascript; charset=utf-8"),
    TYPE("mkv", "video/x-matroska"),
    TYPE("mov", "video/quicktime"),
    TYPE("mp3", "audio/mpeg"),
    TYPE("mp4", "video/mp4"),
    TYPE("mpeg", "video/mpeg"),
    TYPE("oga", "audio/ogg"),
    TYPE("ogg", "audio/ogg"),
    TYPE("ogv", "video/ogg"),
    TYPE("opus", "audio/ogg"),
    TYPE("otf", "font/otf"),
    TYPE("pdf", "application/pdf"),
    TYPE("png", "image/png"),
    TYPE("ppt", "application/vnd.ms-powerpoint"),
    TYPE("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    TYPE("rar", "application/vnd.rar"),
    TYPE("rss", "application/rss+xml"),
    TYPE("rtf", "application/rtf"),
    TYPE("svg", "image/svg+xml"),
    TYPE("tar", "application/x-tar"),
    TYPE("text", "text/plain; charset=utf-8"),
    TYPE("tif", "image/tiff"),
    TYPE("tiff", "image/tiff"),
    TYPE("toml", "application/toml"),
    TYPE("ts", "video/mp2t"),
    TYPE("ttf", "font/ttf"),
    TYPE("txt", "text/plain; charset=utf-8"),
    TYPE("vtt", "text/vtt; charset=utf-8"),
    TYPE("wasm", "application/wasm"),
    TYPE("wav", "audio/wav"),
    TYPE("weba", "audio/webm"),
    TYPE("webm", "video/webm"),
    TYPE("webmanifest", "application/manifest+json"),
    TYPE("webp", "image/webp"),
    TYPE("woff", "font/woff"),
    TYPE("woff2", "font/woff2"),
    TYPE("xhtml", "application/xhtml+xml"),
    TYPE("xls", "application/vnd.ms-excel"),
    TYPE("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    TYPE("xml", "application/xml"),
    TYPE("yaml", "application/yaml"),
    TYPE("yml", "application/yaml"),
    TYPE("zip", "application/zip"),
    TYPE("zst", "application/zstd"),
};

enum { EXTENSION_BYTES_MAX = 16 };

static int compare(const void *key, const void *element)
{
    const struct str  *extension = key;
    const struct type *type      = element;
    size_t len   = extension->len < type->extension.len ? extension->len : type->extension.len;
    int    order = memcmp(extension->at, type->extension.at, len);

    return order ? order : (int)extension->len - (int)type->extension.len;
}

struct str mime_of_extension(struct str extension)
{
    char               lower[EXTENSION_BYTES_MAX];
    struct str         key = str_make(lower, extension.len);
    const struct type *found;

    if (extension.len > sizeof(lower))
        return STR_NONE;
    for (size_t i = 0; i < extension.len; i++) {
        char byte = extension.at[i];

        lower[i] = byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
    }
    found = bsearch(&key, types, ARRAY_LEN(types), sizeof(types[0]), compare);
    return found ? found->type : STR_NONE;
}

/* What follows the last dot; empty when there is none behind the last slash. */
static struct str extension_of(struct str path)
{
    for (size_t i = path.len; i > 0 && path.at[i - 1] != '/'; i--)
        if (path.at[i - 1] == '.')
            return str_from(path, i);
    return STR_NONE;
}

struct str mime_of_path(struct str path)
{
    struct str type = mime_of_extension(extension_of(path));

    return type.len ? type : STR("application/octet-stream");
}
