#include "base/log.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "support/check.h"

static char folder[64]; /* for log files */
static char path[128], moved[128];

static struct log *log_to(const char *file, int fd, enum log_format format)
{
    struct log_options options = { .path = file, .fd = fd, .format = format, .level = LOG_INFO };
    struct log        *log     = NULL;
    struct err         err;

    CHECK_INT(log_open(&log, &options, &err), 0);
    return log;
}

/* All of FILE as one string; the caller frees. */
static char *read_all(const char *file)
{
    FILE *in   = fopen(file, "r");
    char *text = NULL;
    long  size;

    CHECK(in);
    fseek(in, 0, SEEK_END);
    size = ftell(in);
    rewind(in);
    text = calloc((size_t)size + 1, 1);
    CHECK_INT(fread(text, 1, (size_t)size, in), size);
    fclose(in);
    return text;
}

/* The part behind pid of the only line in the log file; static memory. */
static const char *only_line(void)
{
    static char line[65536];
    char       *text = read_all(path), *rest = strstr(text, "\"pid\":");

    CHECK(rest);
    snprintf(line, sizeof(line), "%s", strchr(rest, ',') + 1);
    CHECK(strchr(line, '\n') == line + strlen(line) - 1);
    line[strlen(line) - 1] = '\0';
    free(text);
    return line;
}

#define CHECK_LINE(want, statement)                                                                \
    do {                                                                                           \
        struct log *the_log;                                                                       \
        unlink(path);                                                                              \
        the_log = log_to(path, -1, LOG_JSON);                                                      \
        statement;                                                                                 \
        log_close(the_log);                                                                        \
        CHECK_STR(only_line(), want);                                                              \
    } while (0)

/* --- what a line looks like ---------------------------------------------------------------------- */

TEST(a_line_has_pinos_fields)
{
    int64_t   before = clock_wall_ms();
    long long time;
    int       level, pid, end = 0;
    char     *text;

    CHECK_LINE("\"msg\":\"started\"}", log_info("started"));
    text = read_all(path);
    CHECK_INT(sscanf(text, "{\"level\":%d,\"time\":%lld,\"pid\":%d,\"msg\":\"started\"}\n%n",
                     &level, &time, &pid, &end),
              3);
    CHECK_INT(end, strlen(text));
    CHECK_INT(level, 30);
    CHECK_INT(pid, getpid());
    CHECK(time >= before && time <= clock_wall_ms());
    free(text);
}

TEST(fields_keep_their_kinds)
{
    const char *volatile nothing = NULL; /* volatile: else the compiler warns of it */

    CHECK_LINE("\"msg\":\"m\",\"s\":\"a\\\"b\",\"n\":-7,\"u\":18446744073709551615,\"z\":5,"
               "\"part\":\"ab\",\"d\":1.5,\"c\":\"x\",\"h\":\"0xff\",\"word\":\"yes\"}",
               log_warn("m", "s=%s n=%d u=%llu z=%zu part=%.*s d=%g c=%c h=%x word=yes", "a\"b", -7,
                        18446744073709551615ull, (size_t)5, 2, "abcd", 1.5, 'x', 255));
    CHECK_LINE("\"msg\":\"m\",\"s\":\"(null)\",\"l\":-1}",
               log_error("m", "s=%s l=%ld", nothing, -1L));
    CHECK_LINE("\"msg\":\"m\",\"nan\":\"nan\",\"inf\":\"-inf\"}",
               log_info("m", "nan=%f inf=%g", fabs(NAN), -INFINITY));
}

TEST(bytes_of_strangers_cannot_break_a_line)
{
    CHECK_LINE("\"msg\":\"m\",\"path\":\"/\\n{\\u0000\xef\xbf\xbd\"}",
               log_info("m", "path=%.*s", 5, "/\n{\0\xff"));
}

TEST(a_field_named_as_one_of_the_lines_own_is_renamed)
{
    CHECK_LINE("\"msg\":\"m\",\"level_\":\"x\",\"msg_\":\"y\",\"levels\":1}",
               log_info("m", "level=%s msg=%s levels=%d", "x", "y", 1));
}

TEST(a_hostname_is_named_when_there_is_one)
{
    struct log_options options = {
        .path = path, .format = LOG_JSON, .level = LOG_INFO, .hostname = "web\"1"
    };
    struct log *log;
    char       *text;

    unlink(path);
    CHECK_INT(log_open(&log, &options, NULL), 0);
    log_info("m");
    log_close(log);
    text = read_all(path);
    CHECK(strstr(text, ",\"hostname\":\"web\\\"1\",\"msg\":\"m\"}"));
    free(text);
}

TEST(lines_below_the_level_are_not_written)
{
    struct log *log;
    char       *text;

    unlink(path);
    log = log_to(path, -1, LOG_JSON);
    log_debug("no");
    log_set_level(log, LOG_DEBUG);
    log_debug("yes");
    log_set_level(log, LOG_OFF);
    log_fatal("no");
    CHECK(!log_wants(LOG_FATAL));
    log_close(log);
    text = read_all(path);
    CHECK(strstr(text, "\"yes\"") && !strstr(text, "\"no\""));
    free(text);
}

TEST(pretty_lines_are_for_people_and_safe_on_a_terminal)
{
    struct log *log;
    char       *text;

    unlink(path);
    log = log_to(path, -1, LOG_PRETTY);
    log_warn("request \x1b[2Jrefused", "peer=%s trace=%s after_ms=%d", "::1", "a\nb", 12);
    log_close(log);
    text = read_all(path);
    CHECK(strlen(text) > 13);
    CHECK_STR(text + 13, "WARN  request \\x1b[2Jrefused  peer=::1  trace=a\n    b  after_ms=12\n");
    free(text);
}

TEST(pretty_lines_break_where_the_texts_of_a_json_value_do)
{
    struct log_line line;
    struct log     *log;
    char           *text;

    unlink(path);
    log = log_to(path, -1, LOG_PRETTY);
    log_line_begin(&line, LOG_ERROR, STR("failed"));
    log_line_json(&line, STR("err"), STR("{\"stack\":\"a\\n\\tb \\\\n \\\"c\\u001b\"}"));
    log_line_end(&line);
    log_close(log);
    text = read_all(path);
    CHECK(strlen(text) > 13);
    CHECK_STR(text + 13, "ERROR failed  err={\"stack\":\"a\n      b \\\\n \\\"c\\u001b\"}\n");
    free(text);
}

TEST(long_values_are_cut_between_characters)
{
    size_t      size  = 2 * LOG_PAYLOAD_MAX;
    char       *large = malloc(size);
    const char *line;
    struct log *log;

    CHECK(large);
    for (size_t i = 0; i + 1 < size; i += 2)
        memcpy(large + i, "\xc3\xa9", 2);
    large[size - 1] = '\0';
    unlink(path);
    log = log_to(path, -1, LOG_JSON);
    log_info("m", "a=%s b=%s", large, "gone");
    log_close(log);
    line = only_line();
    CHECK(strlen(line) > LOG_PAYLOAD_MAX - 100 && strlen(line) < LOG_PAYLOAD_MAX + 100);
    CHECK(strstr(line, "\xc3\xa9\xe2\x80\xa6\"}"));
    CHECK(!strstr(line, "\xef\xbf\xbd"));
    free(large);
}

static void write_line_of_json(struct str json)
{
    struct log_line line;

    log_line_begin(&line, LOG_INFO, STR("m"));
    log_line_json(&line, STR("big"), json);
    log_line_text(&line, STR("t"), STR("x"));
    log_line_end(&line);
}

TEST(json_fields_stand_as_they_are_or_not_at_all)
{
    char *large = calloc(LOG_PAYLOAD_MAX + 1, 1);

    CHECK(large);
    memset(large, '1', LOG_PAYLOAD_MAX);
    CHECK_LINE("\"msg\":\"m\",\"big\":{\"a\":[1,null]},\"t\":\"x\"}",
               write_line_of_json(STR("{\"a\":[1,null]}")));
    CHECK_LINE("\"msg\":\"m\",\"big\":\"(too large)\",\"t\":\"x\"}",
               write_line_of_json(str_of(large)));
    free(large);
}

/* --- threads ----------------------------------------------------------------------------------------- */

enum { THREADS = 4, LINES = 20000 };

struct producer {
    pthread_t   thread;
    struct log *log; /* NULL: it shares */
    int         number;
};

static void *log_many(void *arg)
{
    struct producer *producer = arg;

    if (producer->log)
        log_attach(producer->log);
    for (int i = 0; i < LINES; i++)
        log_info("line", "thread=%d i=%d", producer->number, i);
    log_detach();
    return NULL;
}

/* Counts the lines of each thread, which must be whole and in order, and the dropped ones. */
static long count_lines(char *text)
{
    int  last[THREADS] = { -1, -1, -1, -1 };
    long written = 0, dropped = 0, n;

    for (char *line, *rest = text; (line = strsep(&rest, "\n")) && *line;) {
        char *fields = strstr(line, "\"msg\":");
        int   thread, i;

        CHECK(line[0] == '{' && line[strlen(line) - 1] == '}' && fields);
        if (sscanf(fields, "\"msg\":\"line\",\"thread\":%d,\"i\":%d}", &thread, &i) == 2) {
            CHECK(thread >= 0 && thread < THREADS && i > last[thread]);
            last[thread] = i;
            written++;
        } else {
            CHECK_INT(sscanf(fields, "\"msg\":\"log lines dropped\",\"dropped\":%ld}", &n), 1);
            dropped += n;
        }
    }
    CHECK(written > 0);
    return written + dropped;
}

static void run_producers(bool attach)
{
    struct producer producers[THREADS];
    struct log     *log;
    char           *text;

    unlink(path);
    log = log_to(path, -1, LOG_JSON);
    for (int i = 0; i < THREADS; i++) {
        producers[i].number = i;
        producers[i].log    = attach ? log : NULL;
        CHECK_INT(pthread_create(&producers[i].thread, NULL, log_many, &producers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(producers[i].thread, NULL);
    log_close(log);
    text = read_all(path);
    CHECK_INT(count_lines(text), THREADS * LINES);
    free(text);
}

TEST(lines_of_several_threads_are_written_or_counted)
{
    run_producers(true);
}

TEST(threads_without_a_ring_share_one)
{
    run_producers(false);
}

TEST(flush_waits_for_what_was_logged)
{
    struct log *log;
    char       *text;

    unlink(path);
    log = log_to(path, -1, LOG_JSON);
    for (int i = 0; i < 20; i++) {
        char want[32];

        log_info("line", "i=%d", i);
        CHECK(log_flush(log, 20000));
        snprintf(want, sizeof(want), "\"i\":%d}", i);
        text = read_all(path);
        CHECK(strstr(text, want));
        free(text);
    }
    log_close(log);
}

TEST(a_sleeping_log_is_woken_by_the_first_line)
{
    int           ends[2];
    struct pollfd readable;
    struct log   *log;

    CHECK_INT(pipe(ends), 0);
    log      = log_to(NULL, ends[1], LOG_JSON);
    readable = (struct pollfd){ .fd = ends[0], .events = POLLIN };
    for (int i = 0; i < 3; i++) {
        char bytes[512];

        CHECK_INT(poll(&readable, 1, 500), 0); /* long enough for the thread to fall asleep */
        log_info("wake");
        CHECK_INT(poll(&readable, 1, 5000), 1);
        CHECK(read(ends[0], bytes, sizeof(bytes)) > 0);
    }
    log_close(log);
    close(ends[0]);
    close(ends[1]);
}

TEST(without_a_thread_a_line_is_written_at_once)
{
    struct log_options options = {
        .path = path, .format = LOG_JSON, .level = LOG_INFO, .threadless = true
    };
    struct log *log;

    unlink(path);
    CHECK_INT(log_open(&log, &options, NULL), 0);
    log_info("now");
    CHECK_STR(only_line(), "\"msg\":\"now\"}");
    CHECK(log_flush(log, 0));
    log_close(log);
}

/* --- when the world is bad ----------------------------------------------------------------------- */

static char *read_pipe(int fd)
{
    size_t  len = 0, room = 1 << 24;
    char   *text = malloc(room);
    ssize_t n;

    while ((n = read(fd, text + len, room - len - 1)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return text;
}

static void *read_pipe_thread(void *arg)
{
    return read_pipe(*(int *)arg);
}

TEST(a_reader_that_does_not_read_costs_lines_but_no_time)
{
    int         ends[2];
    struct log *log;
    uint64_t    before;
    pthread_t   reader;
    void       *text;

    CHECK_INT(pipe(ends), 0);
    log = log_to(NULL, ends[1], LOG_JSON);
    log_attach(log);
    before = clock_thread_cpu_ns();
    for (int i = 0; i < LINES; i++)
        log_info("line", "thread=%d i=%d", 0, i);
    CHECK(clock_thread_cpu_ns() - before < 2000000000);
    CHECK_INT(pthread_create(&reader, NULL, read_pipe_thread, &ends[0]), 0);
    CHECK(log_flush(log, 20000));
    log_info("line", "thread=%d i=%d", 0, LINES); /* the dropped ones are told with the next line */
    log_close(log);
    close(ends[1]);
    pthread_join(reader, &text);
    close(ends[0]);
    CHECK(strstr(text, "log lines dropped"));
    free(text);
}

TEST(closing_does_not_wait_for_a_reader_longer_than_promised)
{
    int         ends[2];
    struct log *log;
    uint64_t    before, took_ms;

    CHECK_INT(pipe(ends), 0);
    log = log_to(NULL, ends[1], LOG_JSON);
    for (int i = 0; i < LINES; i++)
        log_info("line", "i=%d", i);
    before = clock_mono_ns();
    log_close(log);
    took_ms = (clock_mono_ns() - before) / 1000000;
    CHECK(took_ms >= LOG_CLOSE_WAIT_MS && took_ms < LOG_CLOSE_WAIT_MS + 20000);
    close(ends[0]); /* the thread's write fails with EPIPE: it ends and frees what it holds */
}

TEST(closing_gives_up_a_reader_of_a_descriptor_that_does_not_block)
{
    int         ends[2];
    struct log *log;

    CHECK_INT(pipe2(ends, O_NONBLOCK), 0);
    log = log_to(NULL, ends[1], LOG_JSON);
    for (int i = 0; i < LINES; i++)
        log_info("line", "i=%d", i);
    log_close(log);
    close(ends[0]);
    close(ends[1]);
}

/* A file size limit stands for a full disk: writes fail, later they work again. */
TEST(after_a_full_disk_lines_are_whole_again_and_the_lost_are_told)
{
    struct rlimit before, small;
    struct log   *log;
    char         *text, *last = NULL;
    int           i = 0;

    unlink(path);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    log            = log_to(path, -1, LOG_JSON);
    small          = before;
    small.rlim_cur = 5000;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (; i < 500; i++)
        log_info("line", "thread=%d i=%d", 0, i);
    CHECK(log_flush(log, 20000));
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
    log_info("line", "thread=%d i=%d", 0, i++);
    log_close(log);
    text = read_all(path);
    CHECK(strstr(text, "log lines dropped"));
    /* One line was cut where the disk was full: take it out, all others are whole. */
    for (char *line = text; *line; line = strchr(line, '\n') + 1) {
        if (strcspn(line, "}") > strcspn(line, "\n"))
            last = line;
    }
    CHECK(last);
    memmove(last, strchr(last, '\n') + 1, strlen(strchr(last, '\n') + 1) + 1);
    CHECK_INT(count_lines(text), i);
    free(text);
}

TEST(a_log_that_can_never_be_written_harms_nobody)
{
    struct log *log = log_to("/dev/full", -1, LOG_JSON);
    uint64_t    before;

    for (int i = 0; i < 1000; i++)
        log_info("line", "i=%d", i);
    CHECK(log_flush(log, 20000));
    before = clock_mono_ns();
    log_close(log);
    CHECK(clock_mono_ns() - before < 1000000000);
}

/* --- rotation -------------------------------------------------------------------------------------- */

TEST(reopening_goes_on_in_a_new_file)
{
    struct log *log;
    char       *text;

    unlink(path);
    log = log_to(path, -1, LOG_JSON);
    log_info("one");
    CHECK(log_flush(log, 20000));
    CHECK_INT(rename(path, moved), 0);
    log_info("two"); /* still to the old file: nobody has said anything */
    CHECK(log_flush(log, 20000));
    log_reopen(log);
    log_info("three");
    log_close(log);
    text = read_all(moved);
    CHECK(strstr(text, "\"one\"") && strstr(text, "\"two\"") && !strstr(text, "\"three\""));
    free(text);
    text = read_all(path);
    CHECK(strstr(text, "\"three\"") && !strstr(text, "\"two\""));
    free(text);
}

TEST(a_file_that_cannot_be_opened_anew_leaves_the_old_one)
{
    char        inner[96], file[128], aside[128];
    struct log *log;
    char       *text;

    snprintf(inner, sizeof(inner), "%s/sub", folder);
    snprintf(file, sizeof(file), "%s/sub/log", folder);
    snprintf(aside, sizeof(aside), "%s/sub-moved", folder);
    CHECK_INT(mkdir(inner, 0700), 0);
    log = log_to(file, -1, LOG_JSON);
    CHECK_INT(rename(inner, aside), 0);
    log_reopen(log);
    log_info("goes on");
    log_close(log);
    snprintf(file, sizeof(file), "%s/sub-moved/log", folder);
    text = read_all(file);
    CHECK(strstr(text, "\"log file not reopened\"") && strstr(text, "\"goes on\""));
    free(text);
    unlink(file);
    rmdir(aside);
}

TEST(a_log_file_that_cannot_be_opened_says_which)
{
    struct log_options options = { .path = "/nonexistent/log", .level = LOG_INFO };
    struct log        *log;
    struct err         err;

    CHECK_INT(log_open(&log, &options, &err), ERR_NOT_FOUND);
    CHECK_STR(err.text, "log file /nonexistent/log: No such file or directory");
}

/* --- without a log ------------------------------------------------------------------------------------ */

TEST(without_a_log_warnings_go_to_standard_error)
{
    int   old = dup(STDERR_FILENO), file;
    char *text;

    file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    log_info("not this");
    log_warn("but this", "n=%d", 1);
    CHECK(log_reserve(NULL, LOG_FATAL, 0, 8) == NULL);
    CHECK(dup2(old, STDERR_FILENO) >= 0);
    close(file);
    close(old);
    text = read_all(path);
    CHECK_STR(text, "srv: WARN  but this  n=1\n");
    free(text);
}

TEST(names_of_levels_and_formats_are_known)
{
    enum log_level  level;
    enum log_format format;

    CHECK(log_level_of_name(STR("warn"), &level) && level == LOG_WARN);
    CHECK(log_level_of_name(STR("off"), &level) && level == LOG_OFF);
    CHECK(!log_level_of_name(STR("warning"), &level));
    CHECK_STR(log_level_name(LOG_TRACE), "trace");
    CHECK(log_format_of_name(STR("pretty"), &format) && format == LOG_PRETTY);
    CHECK(!log_format_of_name(STR(""), &format));
}

int main(void)
{
    int status;

    signal(SIGPIPE, SIG_IGN);
    snprintf(folder, sizeof(folder), "/tmp/srv-log-test-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof(path), "%s/log", folder);
    snprintf(moved, sizeof(moved), "%s/log.1", folder);
    status = check_run();
    unlink(path);
    unlink(moved);
    rmdir(folder);
    return status;
}
