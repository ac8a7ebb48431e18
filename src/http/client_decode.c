#include "http/client_decode.h"

#include "base/brotli.h"
#include "base/coding.h"
#include "base/deflate.h"
#include "http/h1_response.h"
#include "http/message.h"

struct coding *client_decode(const struct response *response)
{
    struct str coding = STR_NONE;

    for (unsigned i = 0; i < response->field_count; i++) {
        if (response->fields[i].id != FIELD_CONTENT_ENCODING)
            continue;
        if (coding.len)
            return NULL;
        coding = response->fields[i].value;
    }
    if (str_is_nocase(coding, STR("gzip")) || str_is_nocase(coding, STR("x-gzip")) ||
        str_is_nocase(coding, STR("deflate")))
        return deflate_reader_new();
    return str_is_nocase(coding, STR("br")) ? brotli_reader_new() : NULL;
}
