#include "server/access_log.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/exchange.h"
#include "net/addr.h"
#include "support/check.h"

static char path[] = "/tmp/srv-access-log-test-XXXXXX";

static struct addr     peer;
static struct exchange ex;

/* GET /news?page=2, answered with 312 bytes and 200 after 1.5 ms at least. */
static void finished_request(void)
{
    peer = (struct addr){ .family = AF_INET, .port = 40112 };
    inet_pton(AF_INET, "127.0.0.1", &peer.at.v4);
    ex                       = (struct exchange){ .peer          = &peer,
                                                  .answer_status = 200,
                                                  .answer_state  = ANSWER_ENDED,
                                                  .sent_bytes    = 312,
                                                  .started_ns    = clock_mono_ns() - 1500000 };
    ex.request.method        = STR("GET");
    ex.request.target        = STR("/news?page=2");
    ex.request.version_major = 1;
    ex.request.version_minor = 1;
}

/* The line that EX makes, without what differs from run to run; static memory. */
static const char *line_of(struct str id, enum log_format format)
{
    static char        text[16384];
    struct log_options options = {
        .path = path, .format = format, .level = LOG_INFO, .threadless = true
    };
    struct log *log = NULL;
    FILE       *file;

    CHECK_INT(truncate(path, 0), 0);
    CHECK_INT(log_open(&log, &options, NULL), 0);
    access_log_write(&ex, id);
    log_close(log);
    file = fopen(path, "r");
    CHECK(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* The part behind the pid. Its responseTime goes to *MS and is taken out. */
static const char *json_of(struct str id, double *ms)
{
    char *line = strstr(line_of(id, LOG_JSON), "\"pid\":"), *time, *behind;

    CHECK(line);
    line = strchr(line, ',') + 1;
    time = strstr(line, "\"responseTime\":");
    CHECK(time);
    time += strlen("\"responseTime\":");
    *ms = strtod(time, &behind);
    memmove(time, behind, strlen(behind) + 1);
    return line;
}

TEST(a_finished_request_has_pino_https_fields)
{
    double ms;

    finished_request();
    CHECK_STR(json_of(STR("k7"), &ms),
              "\"reqId\":\"k7\",\"req\":{\"id\":\"k7\",\"method\":\"GET\",\"url\":\"/news?page=2\","
              "\"protocol\":\"HTTP/1.1\",\"remoteAddress\":\"127.0.0.1\",\"remotePort\":40112},"
              "\"res\":{\"statusCode\":200,\"contentLength\":312},\"responseTime\":,"
              "\"msg\":\"request completed\"}\n");
    CHECK(ms >= 1.5 && ms < 10000);
}

TEST(a_request_without_id_or_peer_leaves_them_out)
{
    double ms;

    finished_request();
    ex.peer = NULL;
    CHECK_STR(json_of(STR_NONE, &ms),
              "\"req\":{\"method\":\"GET\",\"url\":\"/news?page=2\",\"protocol\":\"HTTP/1.1\"},"
              "\"res\":{\"statusCode\":200,\"contentLength\":312},\"responseTime\":,"
              "\"msg\":\"request completed\"}\n");
}

TEST(the_protocol_is_said_as_the_request_says_it)
{
    double ms;

    finished_request();
    ex.request.version_minor = 0;
    CHECK(strstr(json_of(STR_NONE, &ms), "\"protocol\":\"HTTP/1.0\","));
    ex.request.version_major = 2;
    CHECK(strstr(json_of(STR_NONE, &ms), "\"protocol\":\"HTTP/2\","));
}

TEST(a_peer_on_a_unix_socket_has_no_port)
{
    double ms;

    finished_request();
    peer = (struct addr){ .family = AF_UNIX };
    CHECK(strstr(json_of(STR_NONE, &ms), "\"remoteAddress\":\"unix\"},\"res\""));
}

TEST(a_failed_answer_is_named_so)
{
    double ms;

    finished_request();
    ex.answer_status = 503;
    CHECK(strstr(json_of(STR_NONE, &ms), "\"statusCode\":503,"));
    CHECK(strstr(json_of(STR_NONE, &ms), "\"msg\":\"request errored\""));
}

TEST(a_client_that_left_before_the_answer_is_499_and_aborted)
{
    double      ms;
    const char *line;

    finished_request();
    ex.answer_status = 0;
    ex.answer_state  = ANSWER_OPEN;
    ex.sent_bytes    = 0;
    line             = json_of(STR_NONE, &ms);
    CHECK(strstr(line, "\"statusCode\":499,\"contentLength\":0}"));
    CHECK(strstr(line, "\"msg\":\"request aborted\""));
}

TEST(a_hostile_url_stays_inside_its_string)
{
    double ms;

    finished_request();
    ex.request.target = STR("/\"},\"res\":{\n\x1b\xff");
    CHECK(strstr(json_of(STR_NONE, &ms),
                 "\"url\":\"/\\\"},\\\"res\\\":{\\n\\u001b\xef\xbf\xbd\",\"protocol"));
}

TEST(a_long_url_and_a_long_id_are_cut)
{
    static char large[2 * ACCESS_LOG_URL_MAX];
    double      ms;
    const char *line;

    memset(large, 'a', sizeof(large));
    finished_request();
    ex.request.target = str_make(large, sizeof(large));
    line              = json_of(str_make(large, sizeof(large)), &ms);
    CHECK(strlen(line) > ACCESS_LOG_URL_MAX);
    CHECK(strlen(line) < ACCESS_LOG_URL_MAX + 2 * ACCESS_LOG_ID_MAX + 300);
    CHECK(strstr(line, "aaa\xe2\x80\xa6\",\"protocol\""));
}

TEST(pretty_lines_show_method_url_status_time_and_size)
{
    char        want[64];
    const char *line;
    double      ms;
    int         end = 0;

    finished_request();
    line = line_of(STR("k7"), LOG_PRETTY) + 13;
    CHECK_INT(sscanf(line, "GET /news?page=2 200 %lf ms 312 B  reqId=k7\n%n", &ms, &end), 1);
    CHECK_INT(end, strlen(line));
    snprintf(want, sizeof(want), " %.3f ms ", ms);
    CHECK(strstr(line, want));
    ex.answer_state = ANSWER_ABORTED;
    CHECK(strstr(line_of(STR_NONE, LOG_PRETTY), " 312 B aborted\n"));
}

TEST(a_log_that_wants_no_information_gets_none)
{
    struct log_options options = { .path = path, .level = LOG_WARN, .threadless = true };
    struct log        *log     = NULL;
    struct stat        file;

    CHECK_INT(truncate(path, 0), 0);
    CHECK_INT(log_open(&log, &options, NULL), 0);
    finished_request();
    access_log_write(&ex, STR("k7"));
    log_close(log);
    access_log_write(&ex, STR("k7")); /* and one that is not there gets none either */
    CHECK_INT(stat(path, &file), 0);
    CHECK_INT(file.st_size, 0);
}

int main(void)
{
    int fd = mkstemp(path), status;

    if (fd < 0)
        return 1;
    close(fd);
    status = check_run();
    unlink(path);
    return status;
}
