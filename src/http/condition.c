#include "http/condition.h"

#include "base/clock.h"
#include "http/message.h"

static bool is_weak(struct str tag)
{
    return str_starts_with(tag, STR("W/"));
}

static struct str opaque_part(struct str tag)
{
    return is_weak(tag) ? str_from(tag, 2) : tag;
}

/* Cuts the next entity tag off *LIST; its quotes may hold commas. False: there is no more. */
static bool next_tag(struct str *list, struct str *tag)
{
    size_t at = 0, end;

    while (at < list->len && (list->at[at] == ' ' || list->at[at] == '\t' || list->at[at] == ','))
        at++;
    *list = str_from(*list, at);
    at    = is_weak(*list) ? 2 : 0;
    if (at >= list->len || list->at[at] != '"')
        return false;
    end = str_find(str_from(*list, at + 1), '"') + at + 2;
    if (end > list->len)
        return false;
    *tag  = str_make(list->at, end);
    *list = str_from(*list, end);
    return true;
}

bool condition_has_tag(struct str list, struct str tag, bool weakly)
{
    struct str listed;

    if (str_is(str_trim(list), STR("*"))) /* any representation, and there is one */
        return true;
    if (!weakly && is_weak(tag))
        return false;
    while (tag.len && next_tag(&list, &listed))
        if (str_is(opaque_part(listed), opaque_part(tag)) && (weakly || !is_weak(listed)))
            return true;
    return false;
}

/* A field may stand on several lines: any of them may name the tag. */
static bool names_tag(const struct request *request, enum field_id id, struct str tag, bool weakly)
{
    for (unsigned i = 0; i < request->field_count; i++)
        if (request->fields[i].id == id && condition_has_tag(request->fields[i].value, tag, weakly))
            return true;
    return false;
}

/* Whether what the client has is as new. False too for a date that is none: the field is ignored. */
static bool is_not_newer(const struct field *field, int64_t last_modified)
{
    int64_t since;

    return field && last_modified != CONDITION_NO_TIME &&
           clock_parse_http_date(field->value, &since) && last_modified <= since;
}

static bool is_newer(const struct field *field, int64_t last_modified)
{
    int64_t since;

    return field && last_modified != CONDITION_NO_TIME &&
           clock_parse_http_date(field->value, &since) && last_modified > since;
}

unsigned condition_status(const struct request              *request,
                          const struct condition_validators *validators)
{
    if (request_field(request, FIELD_IF_MATCH)) {
        if (!names_tag(request, FIELD_IF_MATCH, validators->etag, false))
            return 412;
    } else if (is_newer(request_field(request, FIELD_IF_UNMODIFIED_SINCE),
                        validators->last_modified)) {
        return 412;
    }
    if (request_field(request, FIELD_IF_NONE_MATCH))
        return names_tag(request, FIELD_IF_NONE_MATCH, validators->etag, true) ? 304 : 0;
    if (is_not_newer(request_field(request, FIELD_IF_MODIFIED_SINCE), validators->last_modified))
        return 304;
    return 0;
}
