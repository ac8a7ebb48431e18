#include "client/h2_client_state.h"

struct h2_client_stream *h2_client_state_find(struct h2_client *client, int32_t id)
{
    return id ? nghttp2_session_get_stream_user_data(client->session, id) : NULL;
}

void h2_client_state_forget(struct h2_client_stream *stream)
{
    struct h2_client *client = stream->client;

    nghttp2_session_set_stream_user_data(client->session, stream->id, NULL);
    list_remove(&stream->link);
    list_remove(&stream->room);
    buf_fini(&stream->out);
    stream->client = NULL;
    client->under_way--;
}

/* An answer that comes before the request is out is whole all the same; nobody wants the rest. */
void h2_client_state_end(struct h2_client_stream *stream)
{
    struct h2_client *client = stream->client;

    if (!stream->body_is_out)
        nghttp2_submit_rst_stream(client->session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
    h2_client_state_forget(stream);
    client->events->on_end(stream);
}

void h2_client_state_fail(struct h2_client_stream *stream, enum h2_client_fault fault,
                          const char *text)
{
    struct h2_client *client = stream->client;

    if (!stream->fault)
        stream->fault = text;
    h2_client_state_forget(stream);
    client->events->on_fault(stream, fault);
}
