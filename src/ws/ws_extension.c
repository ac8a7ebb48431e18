#include "ws/ws_extension.h"

#include "http/chars.h"

/* What a parameter is called and says; a quoted value is what its quotes hold. */
struct param {
    struct str name;
    struct str value;
    bool       has_value;
};

/* --- the grammar ------------------------------------------------------------------------------------ */

static void skip_blanks(struct str *rest)
{
    while (rest->len && (rest->at[0] == ' ' || rest->at[0] == '\t'))
        *rest = str_from(*rest, 1);
}

static bool take_byte(struct str *rest, char byte)
{
    skip_blanks(rest);
    if (!rest->len || rest->at[0] != byte)
        return false;
    *rest = str_from(*rest, 1);
    return true;
}

static bool take_token(struct str *rest, struct str *token)
{
    skip_blanks(rest);
    if (!rest->len)
        return false;
    *token = str_make(rest->at,
                      (size_t)(chars_skip(rest->at, rest->at + rest->len, CHARS_TOKEN) - rest->at));
    *rest  = str_from(*rest, token->len);
    return token->len > 0;
}

/* What is quoted must be a token too, so an escape has nothing to escape: it is refused, where the
 * grammar would let it stand before a character that needs none. */
static bool take_value(struct str *rest, struct str *value)
{
    if (!take_byte(rest, '"'))
        return take_token(rest, value);
    return take_token(rest, value) && rest->len && rest->at[0] == '"' && take_byte(rest, '"');
}

/* ";" was read. */
static bool take_param(struct str *rest, struct param *param)
{
    *param = (struct param){ 0 };
    if (!take_token(rest, &param->name))
        return false;
    param->has_value = take_byte(rest, '=');
    return !param->has_value || take_value(rest, &param->value);
}

/* --- permessage-deflate ------------------------------------------------------------------------------ */

static bool set_flag(bool *flag, const struct param *param)
{
    bool is_new = !*flag && !param->has_value;

    *flag = true;
    return is_new;
}

/* A number without a zero in front. */
static bool set_bits(bool *given, unsigned *bits, const struct param *param)
{
    uint64_t value;

    if (*given)
        return false;
    *given = true;
    if (!param->has_value)
        return true;
    if (param->value.at[0] == '0' || !str_to_u64(param->value, WS_BITS_MAX, &value) ||
        value < WS_BITS_MIN)
        return false;
    *bits = (unsigned)value;
    return true;
}

static bool apply_param(struct ws_pmd *pmd, const struct param *param)
{
    if (str_is_nocase(param->name, STR("server_no_context_takeover")))
        return set_flag(&pmd->server_alone, param);
    if (str_is_nocase(param->name, STR("client_no_context_takeover")))
        return set_flag(&pmd->client_alone, param);
    if (str_is_nocase(param->name, STR("server_max_window_bits")))
        return param->has_value && set_bits(&pmd->server_bits_given, &pmd->server_bits, param);
    if (str_is_nocase(param->name, STR("client_max_window_bits")))
        return set_bits(&pmd->client_bits_given, &pmd->client_bits, param);
    return false;
}

/* --- the list ------------------------------------------------------------------------------------------ */

/* Empty elements count for nothing (RFC 9110, 5.6.1.2). */
static void skip_commas(struct str *rest)
{
    while (take_byte(rest, ','))
        continue;
    skip_blanks(rest);
}

enum ws_extension ws_extension_next(struct str *rest, struct ws_pmd *out)
{
    struct str   name;
    struct param param;

    skip_commas(rest);
    if (!rest->len)
        return WS_EXTENSION_NONE;
    if (!take_token(rest, &name))
        return WS_EXTENSION_BAD;
    *out            = (struct ws_pmd){ 0 };
    out->is_deflate = str_is_nocase(name, STR("permessage-deflate"));
    out->is_sound   = true;
    while (take_byte(rest, ';')) {
        if (!take_param(rest, &param))
            return WS_EXTENSION_BAD;
        if (out->is_deflate)
            out->is_sound = apply_param(out, &param) && out->is_sound;
    }
    skip_blanks(rest);
    return !rest->len || rest->at[0] == ',' ? WS_EXTENSION_ONE : WS_EXTENSION_BAD;
}
