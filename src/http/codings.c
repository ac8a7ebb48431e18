#include "http/codings.h"

#include "base/brotli.h"
#include "base/compiler.h"
#include "base/deflate.h"
#include "base/zstd.h"
#include "http/message.h"

enum { WEIGHT_ONE = 1000, WEIGHT_UNSAID = -1 };

static const struct {
    struct str name;
    struct coding *(*reader)(void);
    struct coding *(*writer)(void);
} codings[CODINGS_COUNT] = {
    [CODINGS_IDENTITY] = { STR_INIT("identity"), NULL, NULL },
    [CODINGS_GZIP]     = { STR_INIT("gzip"), deflate_reader_new, gzip_writer_new },
    [CODINGS_BR]       = { STR_INIT("br"), brotli_reader_new, brotli_writer_new },
    [CODINGS_ZSTD]     = { STR_INIT("zstd"), zstd_reader_new, zstd_writer_new },
    [CODINGS_DEFLATE]  = { STR_INIT("deflate"), deflate_reader_new, NULL },
};

struct str codings_name(enum codings_id id)
{
    return codings[id].name;
}

bool codings_named(struct str name, enum codings_id *out)
{
    if (str_is_nocase(name, STR("x-gzip")))
        name = codings[CODINGS_GZIP].name;
    for (unsigned id = 0; id < CODINGS_COUNT; id++) {
        if (!str_is_nocase(name, codings[id].name))
            continue;
        *out = (enum codings_id)id;
        return true;
    }
    return false;
}

struct coding *codings_reader(enum codings_id id)
{
    return codings[id].reader ? codings[id].reader() : NULL;
}

struct coding *codings_writer(enum codings_id id)
{
    return codings[id].writer ? codings[id].writer() : NULL;
}

/* --- what a client accepts ---------------------------------------------------------------------------- */

/* "0.5" -> 500; what is no weight counts as none said: 1. */
static int read_weight(struct str text)
{
    int weight = 0, unit = WEIGHT_ONE;

    if (text.len == 0 || text.len > 5 || (text.at[0] != '0' && text.at[0] != '1') ||
        (text.len > 1 && text.at[1] != '.'))
        return WEIGHT_ONE;
    for (size_t i = 0; i < text.len; i++) {
        if (i == 1)
            continue;
        if (text.at[i] < '0' || text.at[i] > '9')
            return WEIGHT_ONE;
        weight += (text.at[i] - '0') * unit;
        unit /= 10;
    }
    return weight < WEIGHT_ONE ? weight : WEIGHT_ONE;
}

static int weight_of(struct str parameters)
{
    struct str parameter;

    while (str_next(&parameters, ';', &parameter)) {
        parameter = str_trim(parameter);
        if (parameter.len >= 2 && (parameter.at[0] | 0x20) == 'q' && parameter.at[1] == '=')
            return read_weight(str_from(parameter, 2));
    }
    return WEIGHT_ONE;
}

struct weights {
    int of[CODINGS_COUNT];
    int others; /* "*" */
};

static void read_list(struct str list, struct weights *weights)
{
    struct str      element;
    enum codings_id id;

    while (str_next(&list, ',', &element)) {
        size_t     end    = str_find(element, ';');
        struct str name   = str_trim(str_make(element.at, end));
        int        weight = weight_of(str_from(element, end));

        if (str_is(name, STR("*")))
            weights->others = weight;
        else if (codings_named(name, &id))
            weights->of[id] = weight;
    }
}

static void read_weights(const struct request *request, struct weights *weights)
{
    weights->others = WEIGHT_UNSAID;
    for (unsigned id = 0; id < CODINGS_COUNT; id++)
        weights->of[id] = WEIGHT_UNSAID;
    for (unsigned i = 0; i < request->field_count; i++)
        if (request->fields[i].id == FIELD_ACCEPT_ENCODING)
            read_list(request->fields[i].value, weights);
    for (unsigned id = CODINGS_IDENTITY + 1; id < CODINGS_COUNT; id++)
        if (weights->of[id] == WEIGHT_UNSAID)
            weights->of[id] = weights->others;
    if (weights->of[CODINGS_IDENTITY] == WEIGHT_UNSAID && weights->others == 0)
        weights->of[CODINGS_IDENTITY] = 0;
}

struct codings_choice codings_choose(const struct request *request, const enum codings_id *offers,
                                     unsigned offer_count)
{
    struct codings_choice choice = { CODINGS_IDENTITY, false };
    struct weights        weights;
    int                   best = 0;

    if (!request_field(request, FIELD_ACCEPT_ENCODING))
        return choice;
    read_weights(request, &weights);
    for (unsigned i = 0; i < offer_count; i++) {
        if (weights.of[offers[i]] <= best)
            continue;
        best      = weights.of[offers[i]];
        choice.id = offers[i];
    }
    choice.forced = weights.of[CODINGS_IDENTITY] == 0;
    if (weights.of[CODINGS_IDENTITY] > best)
        choice.id = CODINGS_IDENTITY;
    return choice;
}

unsigned codings_order(const struct request *request, const enum codings_id *offers,
                       unsigned offer_count, enum codings_id *out)
{
    struct weights weights;
    unsigned       count = 0;

    if (!request_field(request, FIELD_ACCEPT_ENCODING))
        return 0;
    read_weights(request, &weights);
    for (unsigned i = 0; i < offer_count; i++) {
        int      weight = weights.of[offers[i]];
        unsigned at     = count;

        if (weight <= 0 || weight < weights.of[CODINGS_IDENTITY])
            continue;
        for (; at > 0 && weights.of[out[at - 1]] < weight; at--)
            out[at] = out[at - 1];
        out[at] = offers[i];
        count++;
    }
    return count;
}

/* --- what becomes smaller ------------------------------------------------------------------------------- */

struct str codings_bare_type(struct str media_type)
{
    return str_trim(str_make(media_type.at, str_find(media_type, ';')));
}

static bool starts_with(struct str text, struct str with)
{
    return text.len >= with.len && str_is_nocase(str_make(text.at, with.len), with);
}

static bool ends_with(struct str text, struct str with)
{
    return text.len >= with.len && str_is_nocase(str_from(text, text.len - with.len), with);
}

bool codings_help(struct str media_type)
{
    static const struct str TYPES[] = {
        STR_INIT("application/json"),
        STR_INIT("application/javascript"),
        STR_INIT("application/xml"),
        STR_INIT("application/wasm"),
        STR_INIT("application/x-ndjson"),
        STR_INIT("application/x-www-form-urlencoded"),
        STR_INIT("application/graphql"),
        STR_INIT("application/rtf"),
        STR_INIT("application/sql"),
        STR_INIT("application/x-javascript"),
        STR_INIT("application/yaml"),
        STR_INIT("application/vnd.ms-fontobject"),
        STR_INIT("font/otf"),
        STR_INIT("font/ttf"),
        STR_INIT("image/bmp"),
        STR_INIT("image/x-icon"),
        STR_INIT("image/vnd.microsoft.icon"),
    };
    struct str type = codings_bare_type(media_type);

    if (starts_with(type, STR("text/")))
        return !str_is_nocase(type, STR("text/event-stream"));
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++)
        if (str_is_nocase(type, TYPES[i]))
            return true;
    return ends_with(type, STR("+json")) || ends_with(type, STR("+xml"));
}
