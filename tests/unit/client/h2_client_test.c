/* Streams against a server session of the library's own, or against frames of the test's. */
#include "client/h2_client.h"

#include <stdlib.h>

#include <nghttp2/nghttp2.h>

#include "base/compiler.h"
#include "base/err.h"
#include "http/message.h"
#include "support/check.h"

enum { CALLS_MAX = 8, WINDOW = 64 * 1024 };

/* --- the client's side --------------------------------------------------------------------------------- */

struct call {
    struct h2_client_stream stream;
    char                    fields[4096]; /* "name=value;", heads and trailers */
    char                    body[512 * 1024];
    size_t                  body_len;
    unsigned                heads, ends, faults, rooms;
    enum h2_client_fault    fault;
    bool                    keeps; /* what comes is not taken */
};

static struct h2_client *client;
static struct call       calls[CALLS_MAX];

static struct call *call_of(struct h2_client_stream *stream)
{
    return container_of(stream, struct call, stream);
}

static void on_field(struct h2_client_stream *stream, struct str name, struct str value)
{
    char  *fields = call_of(stream)->fields;
    size_t len    = strlen(fields);

    snprintf(fields + len, sizeof(calls[0].fields) - len, "%.*s=%.*s;", STR_ARG(name),
             STR_ARG(value));
}

static void on_head(struct h2_client_stream *stream)
{
    call_of(stream)->heads++;
}

static void on_data(struct h2_client_stream *stream, struct str piece)
{
    struct call *call = call_of(stream);

    CHECK(call->body_len + piece.len <= sizeof(call->body));
    memcpy(call->body + call->body_len, piece.at, piece.len);
    call->body_len += piece.len;
    if (!call->keeps)
        h2_client_take(stream, piece.len);
}

static void on_room(struct h2_client_stream *stream)
{
    call_of(stream)->rooms++;
}

static void on_end(struct h2_client_stream *stream)
{
    call_of(stream)->ends++;
}

static void on_fault(struct h2_client_stream *stream, enum h2_client_fault fault)
{
    call_of(stream)->faults++;
    call_of(stream)->fault = fault;
}

static const struct h2_client_events EVENTS = { on_field, on_head, on_data,
                                                on_room,  on_end,  on_fault };

/* --- the server's ---------------------------------------------------------------------------------------- */

/* What the server has of a stream, and what it will do with it. */
struct served {
    int32_t id;
    size_t  got; /* bytes of its body */
    bool    ended, was_reset;
    size_t  to_send; /* of its answer's body */
};

static nghttp2_session *server;
static struct served    served[CALLS_MAX];
static unsigned         served_count;
static void (*on_request)(struct served *request); /* when it has ended */
static unsigned window_updates;

static struct served *served_of(int32_t id)
{
    for (unsigned i = 0; i < served_count; i++)
        if (served[i].id == id)
            return &served[i];
    return NULL;
}

static int on_server_begin(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    CHECK(served_count < CALLS_MAX);
    served[served_count++] = (struct served){ .id = frame->hd.stream_id };
    return 0;
}

static int on_server_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                          size_t len, void *arg)
{
    served_of(id)->got += len;
    return 0;
}

static int on_server_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct served *request = served_of(frame->hd.stream_id);

    if (frame->hd.type == NGHTTP2_WINDOW_UPDATE && frame->hd.stream_id)
        window_updates++;
    if (frame->hd.type == NGHTTP2_RST_STREAM && request)
        request->was_reset = true;
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        request->ended = true;
        if (on_request)
            on_request(request);
    }
    return 0;
}

static ssize_t send_zeros(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
                          uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct served *request = source->ptr;
    size_t         len     = request->to_send < room ? request->to_send : room;

    memset(to, '0', len);
    request->to_send -= len;
    if (!request->to_send)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)len;
}

#define PAIR(name, value)                                                                          \
    {                                                                                              \
        (uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, sizeof(value) - 1, 0              \
    }

static void answer(struct served *request)
{
    nghttp2_nv            head[] = { PAIR(":status", "200"), PAIR("server", "test") };
    nghttp2_data_provider body   = { { .ptr = request }, send_zeros };

    nghttp2_submit_response(server, request->id, head, 2, request->to_send ? &body : NULL);
}

static void answer_large(struct served *request)
{
    request->to_send = 3 * WINDOW;
    answer(request);
}

static void answer_small(struct served *request)
{
    request->to_send = 5;
    answer(request);
}

/* --- between them ------------------------------------------------------------------------------------------ */

static void open_server(uint32_t streams)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_settings_entry     limit = { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams };

    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_server_begin);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_server_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_server_frame);
    nghttp2_session_server_new(&server, callbacks, NULL);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(server, 0, &limit, 1);
}

static void open_client(void)
{
    struct h2_client_options options = { .window = WINDOW };
    struct err               err;

    memset(calls, 0, sizeof(calls));
    memset(served, 0, sizeof(served));
    served_count = window_updates = 0;
    on_request                    = NULL;
    CHECK_INT(h2_client_open(&client, &options, &EVENTS, &err), 0);
}

static void open_both(void)
{
    open_client();
    open_server(100);
}

static void close_both(void)
{
    h2_client_close(client);
    nghttp2_session_del(server);
    server = NULL;
}

static bool to_server(size_t piece)
{
    char   bytes[64 * 1024];
    size_t len = h2_client_produce(client, bytes, piece);

    if (len)
        CHECK_INT(nghttp2_session_mem_recv(server, (uint8_t *)bytes, len), len);
    return len > 0;
}

static bool to_client(size_t piece)
{
    const uint8_t *bytes;
    ssize_t        len = nghttp2_session_mem_send(server, &bytes);

    for (ssize_t at = 0; at < len; at += (ssize_t)piece) {
        size_t now = (size_t)(len - at) < piece ? (size_t)(len - at) : piece;

        CHECK(h2_client_feed(client, (const char *)bytes + at, now));
    }
    return len > 0;
}

/* Until neither has anything to say. */
static void talk_in(size_t piece)
{
    bool more;

    do {
        more = to_server(piece);
        more |= to_client(piece);
    } while (more);
}

static void talk(void)
{
    talk_in(64 * 1024);
}

static bool ask(struct call *call, const char *method, struct str body, bool has_more)
{
    struct field fields[] = {
        { .name = STR(":method"), .value = str_of(method) },
        { .name = STR(":scheme"), .value = STR("http") },
        { .name = STR(":authority"), .value = STR("x.example") },
        { .name = STR(":path"), .value = STR("/a") },
    };
    struct h2_client_request request = { fields, 4, false, body, has_more };

    return h2_client_request(client, &call->stream, &request);
}

static bool get(struct call *call)
{
    return ask(call, "GET", STR_NONE, false);
}

/* --- requests and responses ---------------------------------------------------------------------------------- */

TEST(a_request_brings_head_body_and_end_in_pieces_of_any_size)
{
    for (size_t piece = 1; piece <= 4096; piece *= 16) {
        open_both();
        on_request = answer_small;
        CHECK(get(&calls[0]));
        talk_in(piece);
        CHECK_INT(calls[0].heads, 1);
        CHECK_INT(calls[0].stream.status, 200);
        CHECK_STR(calls[0].fields, "server=test;");
        CHECK_MEM(calls[0].body, calls[0].body_len, "00000", 5);
        CHECK_INT(calls[0].ends, 1);
        CHECK_INT(calls[0].faults, 0);
        CHECK_INT(h2_client_under_way(client), 0);
        close_both();
    }
}

TEST(before_the_servers_settings_there_is_room_for_one_request_and_then_for_as_many_as_it_allows)
{
    open_client();
    open_server(3);
    CHECK(!h2_client_is_ready(client));
    CHECK_INT(h2_client_room(client), 1);
    CHECK(get(&calls[0]));
    CHECK(!get(&calls[1]));
    talk();
    CHECK(h2_client_is_ready(client));
    CHECK_INT(h2_client_room(client), 2);
    CHECK(get(&calls[1]));
    CHECK(get(&calls[2]));
    CHECK(!get(&calls[3]));
    close_both();
}

TEST(streams_end_in_the_order_of_their_answers)
{
    open_both();
    talk();
    for (int i = 0; i < 3; i++)
        CHECK(get(&calls[i]));
    talk();
    answer(&served[2]);
    answer(&served[0]);
    talk();
    CHECK_INT(calls[0].ends, 1);
    CHECK_INT(calls[1].ends, 0);
    CHECK_INT(calls[2].ends, 1);
    CHECK_INT(h2_client_under_way(client), 1);
    close_both();
}

TEST(interim_responses_are_passed_over_and_trailers_come_behind_the_head)
{
    nghttp2_nv            early[] = { PAIR(":status", "103"), PAIR("link", "</a>") };
    nghttp2_nv            head[]  = { PAIR(":status", "201") };
    nghttp2_nv            trailer = PAIR("digest", "7");
    nghttp2_data_provider body;

    open_both();
    CHECK(get(&calls[0]));
    talk();
    served[0].to_send = 2;
    body              = (nghttp2_data_provider){ { .ptr = &served[0] }, send_zeros };
    nghttp2_submit_headers(server, 0, served[0].id, NULL, early, 2, NULL);
    talk();
    CHECK_INT(calls[0].heads, 0);
    nghttp2_submit_headers(server, 0, served[0].id, NULL, head, 1, NULL);
    nghttp2_submit_data(server, 0, served[0].id, &body);
    talk();
    nghttp2_submit_trailer(server, served[0].id, &trailer, 1);
    talk();
    CHECK_INT(calls[0].stream.status, 201);
    CHECK_INT(calls[0].heads, 1);
    CHECK_STR(calls[0].fields, "digest=7;");
    close_both();
}

TEST(interim_responses_without_end_end_the_stream)
{
    nghttp2_nv early[] = { PAIR(":status", "100") };

    open_both();
    CHECK(get(&calls[0]));
    talk();
    for (int i = 0; i <= H2_CLIENT_INTERIM_MAX && calls[0].faults == 0; i++) {
        nghttp2_submit_headers(server, 0, served[0].id, NULL, early, 1, NULL);
        talk();
    }
    CHECK_INT(calls[0].faults, 1);
    CHECK_INT(calls[0].fault, H2_CLIENT_BROKEN);
    CHECK(served[0].was_reset);
    close_both();
}

TEST(a_status_below_a_hundred_is_malformed)
{
    nghttp2_nv head[] = { PAIR(":status", "099") };

    open_both();
    CHECK(get(&calls[0]));
    talk();
    nghttp2_submit_headers(server, NGHTTP2_FLAG_END_STREAM, served[0].id, NULL, head, 1, NULL);
    talk();
    CHECK_INT(calls[0].heads + calls[0].ends, 0);
    CHECK_INT(calls[0].faults, 1);
    CHECK_INT(calls[0].fault, H2_CLIENT_BROKEN);
    CHECK_STR(calls[0].stream.fault, "the status is malformed");
    close_both();
}

TEST(a_head_is_bounded)
{
    static nghttp2_nv head[H2_CLIENT_FIELDS_MAX + 1] = { PAIR(":status", "200") };

    for (int i = 1; i <= H2_CLIENT_FIELDS_MAX; i++)
        head[i] = (nghttp2_nv)PAIR("x", "v");
    open_both();
    CHECK(get(&calls[0]));
    talk();
    nghttp2_submit_response(server, served[0].id, head, H2_CLIENT_FIELDS_MAX + 1, NULL);
    talk();
    CHECK_INT(calls[0].heads, 0);
    CHECK_INT(calls[0].faults, 1);
    CHECK_STR(calls[0].stream.fault, "the response's head is too large");
    CHECK(served[0].was_reset);
    CHECK(get(&calls[1])); /* the connection goes on */
    close_both();
}

/* --- bodies ------------------------------------------------------------------------------------------------------- */

TEST(who_takes_nothing_stops_the_server_at_the_window_and_other_streams_go_on)
{
    open_both();
    on_request     = answer_large;
    calls[0].keeps = true;
    CHECK(get(&calls[0]));
    talk();
    CHECK_INT(calls[0].body_len, WINDOW);
    CHECK(get(&calls[1]));
    talk();
    CHECK_INT(calls[1].body_len, 3 * WINDOW);
    CHECK_INT(calls[1].ends, 1);
    CHECK_INT(calls[0].body_len, WINDOW);
    h2_client_take(&calls[0].stream, WINDOW);
    talk();
    CHECK_INT(calls[0].body_len, 2 * WINDOW);
    close_both();
}

TEST(who_takes_all_as_it_comes_need_not_say_so)
{
    struct h2_client_options options = { .window = WINDOW, .takes_all = true };
    struct err               err;

    open_both();
    h2_client_close(client);
    CHECK_INT(h2_client_open(&client, &options, &EVENTS, &err), 0);
    on_request     = answer_large;
    calls[0].keeps = true;
    CHECK(get(&calls[0]));
    talk();
    CHECK_INT(calls[0].body_len, 3 * WINDOW);
    CHECK_INT(calls[0].ends, 1);
    close_both();
}

TEST(a_whole_body_goes_out_with_the_head_and_again_as_the_server_makes_room)
{
    static char body[300 * 1024];

    open_both();
    on_request = answer_small;
    CHECK(ask(&calls[0], "POST", str_make(body, sizeof(body)), false));
    talk();
    CHECK_INT(served[0].got, sizeof(body));
    CHECK_INT(calls[0].ends, 1);
    close_both();
}

TEST(a_streamed_body_is_bounded_and_tells_how_it_goes_on)
{
    static char piece[H2_CLIENT_OUT_BYTES_MAX + 1000];

    open_both();
    on_request = answer_small;
    CHECK(ask(&calls[0], "POST", STR_NONE, true));
    talk();
    calls[0].rooms = 0;
    CHECK_INT(h2_client_write(&calls[0].stream, str_make(piece, sizeof(piece))),
              H2_CLIENT_OUT_BYTES_MAX);
    CHECK_INT(h2_client_write(&calls[0].stream, str_make(piece, 1)), 0);
    CHECK_INT(calls[0].rooms, 0);
    talk();
    CHECK(calls[0].rooms > 0);
    CHECK_INT(served[0].got, H2_CLIENT_OUT_BYTES_MAX);
    CHECK_INT(h2_client_write(&calls[0].stream, str_make(piece, 1000)), 1000);
    h2_client_end_body(&calls[0].stream);
    CHECK(!h2_client_is_sent(&calls[0].stream));
    calls[0].rooms = 0;
    while (!calls[0].rooms) /* all of it is out */
        CHECK(to_server(64 * 1024));
    CHECK(h2_client_is_sent(&calls[0].stream));
    talk();
    CHECK_INT(served[0].got, H2_CLIENT_OUT_BYTES_MAX + 1000);
    CHECK_INT(calls[0].ends, 1);
    close_both();
}

TEST(an_answer_before_the_end_of_the_request_is_whole_and_the_rest_is_given_up)
{
    open_both();
    CHECK(ask(&calls[0], "POST", STR_NONE, true));
    talk();
    answer_small(&served[0]);
    talk();
    CHECK_INT(calls[0].ends, 1);
    CHECK(served[0].was_reset);
    CHECK_INT(h2_client_under_way(client), 0);
    close_both();
}

/* --- faults ----------------------------------------------------------------------------------------------------------- */

TEST(a_cancelled_stream_is_reset_and_what_still_comes_of_it_meets_nobody)
{
    open_both();
    on_request = answer_large;
    CHECK(get(&calls[0]));
    to_server(64 * 1024);
    h2_client_cancel(&calls[0].stream);
    h2_client_cancel(&calls[0].stream);
    memset(&calls[0], 0xff, sizeof(calls[0])); /* its memory is another's */
    talk();
    CHECK(served[0].was_reset);
    CHECK_INT(h2_client_under_way(client), 0);
    close_both();
}

TEST(a_stream_cancelled_before_it_left_is_never_seen)
{
    open_both();
    talk();
    CHECK(ask(&calls[0], "POST", STR("body"), false));
    h2_client_cancel(&calls[0].stream);
    talk();
    CHECK_INT(served_count, 0);
    CHECK_INT(calls[0].faults, 0);
    close_both();
}

TEST(a_refused_stream_was_not_seen_and_one_that_was_reset_may_have_been)
{
    open_both();
    talk();
    CHECK(get(&calls[0]));
    CHECK(get(&calls[1]));
    talk();
    nghttp2_submit_rst_stream(server, 0, served[0].id, NGHTTP2_REFUSED_STREAM);
    nghttp2_submit_rst_stream(server, 0, served[1].id, NGHTTP2_INTERNAL_ERROR);
    talk();
    CHECK_INT(calls[0].faults, 1);
    CHECK_INT(calls[0].fault, H2_CLIENT_UNSEEN);
    CHECK_INT(calls[1].fault, H2_CLIENT_RESET);
    CHECK_STR(calls[1].stream.fault, "the server gave up the stream: INTERNAL_ERROR");
    close_both();
}

TEST(behind_goaway_what_the_server_took_is_answered_and_what_it_did_not_was_not_seen)
{
    open_both();
    talk();
    CHECK(get(&calls[0]));
    talk();
    CHECK(get(&calls[1]));
    nghttp2_submit_goaway(server, 0, served[0].id, NGHTTP2_NO_ERROR, NULL, 0);
    to_client(64 * 1024);
    CHECK(h2_client_is_leaving(client));
    CHECK_INT(h2_client_room(client), 0);
    answer_small(&served[0]);
    talk();
    CHECK_INT(calls[0].ends, 1);
    CHECK_INT(calls[1].faults, 1);
    CHECK_INT(calls[1].fault, H2_CLIENT_UNSEEN);
    CHECK(h2_client_is_over(client));
    CHECK(!h2_client_why(client));
    close_both();
}

TEST(a_response_that_is_shorter_than_it_says_is_broken)
{
    nghttp2_nv            head[] = { PAIR(":status", "200"), PAIR("content-length", "9") };
    nghttp2_data_provider body;

    open_both();
    CHECK(get(&calls[0]));
    talk();
    served[0].to_send = 5;
    body              = (nghttp2_data_provider){ { .ptr = &served[0] }, send_zeros };
    nghttp2_submit_response(server, served[0].id, head, 2, &body);
    talk();
    CHECK_INT(calls[0].ends, 0);
    CHECK_INT(calls[0].faults, 1);
    CHECK_INT(calls[0].fault, H2_CLIENT_BROKEN);
    CHECK(calls[0].stream.fault != NULL);
    close_both();
}

TEST(a_lost_connection_tells_what_had_left_from_what_had_not)
{
    open_both();
    talk();
    CHECK(get(&calls[0]));
    talk();
    CHECK(get(&calls[1]));
    h2_client_lose(client);
    CHECK_INT(calls[0].fault, H2_CLIENT_LOST);
    CHECK_INT(calls[1].fault, H2_CLIENT_UNSEEN);
    CHECK_INT(h2_client_room(client), 0);
    CHECK(!h2_client_feed(client, "", 0));
    close_both();
}

TEST(a_server_of_http_1_is_known_as_such)
{
    static const char ANSWER[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    char              bytes[4096];

    open_client();
    CHECK(get(&calls[0]));
    while (h2_client_produce(client, bytes, sizeof(bytes)))
        continue;
    h2_client_feed(client, ANSWER, sizeof(ANSWER) - 1);
    while (h2_client_produce(client, bytes, sizeof(bytes)))
        continue;
    CHECK(h2_client_is_over(client));
    CHECK(!h2_client_is_ready(client));
    CHECK_STR(h2_client_why(client), "the server does not speak HTTP/2");
    h2_client_lose(client);
    CHECK_INT(calls[0].faults, 1);
    close_both();
}

TEST(a_server_that_breaks_the_protocol_is_told_so_and_the_connection_is_over)
{
    static const char WINDOW_OF_NOTHING[] = "\0\0\4\10\0\0\0\0\0\0\0\0"; /* WINDOW_UPDATE by 0 */
    char              bytes[4096];
    size_t            len;

    open_both();
    talk();
    h2_client_feed(client, WINDOW_OF_NOTHING, 13);
    len = h2_client_produce(client, bytes, sizeof(bytes));
    CHECK(len >= 17);
    CHECK_INT(bytes[3], NGHTTP2_GOAWAY);
    CHECK(h2_client_is_over(client));
    CHECK(h2_client_why(client) != NULL);
    close_both();
}

int main(void)
{
    return check_run();
}
