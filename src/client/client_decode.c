#include "client/client_decode.h"

#include "http/codings.h"
#include "http/h1_response.h"
#include "http/message.h"

struct coding *client_decode(const struct response *response)
{
    struct str      coding = STR_NONE;
    enum codings_id id;

    for (unsigned i = 0; i < response->field_count; i++) {
        if (response->fields[i].id != FIELD_CONTENT_ENCODING)
            continue;
        if (coding.len)
            return NULL;
        coding = response->fields[i].value;
    }
    return coding.len && codings_named(coding, &id) ? codings_reader(id) : NULL;
}
