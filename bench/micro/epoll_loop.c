/* The yardstick: what the kernel alone costs. One thread, level-triggered epoll, and for whatever
 * arrives on a connection one read and one write of the same bytes; nothing is parsed. The ends of
 * heads are counted, so that a client that pipelines gets its answers, all in the one write. No
 * request may lie across two reads: what a client writes at once comes at once over loopback.
 *
 *     epoll_loop PORT [ANSWER_FILE]        PORT 0 takes a free one; prints "listening on ..." */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS_MAX = 256, ANSWER_BYTES_MAX = 64 * 1024, ANSWERS_MAX = 256 };

static char   answers[ANSWERS_MAX * ANSWER_BYTES_MAX]; /* as many as are ever asked for at once */
static char   answer[ANSWER_BYTES_MAX] = "HTTP/1.1 200 OK\r\n"
                                         "Content-Type: text/plain; charset=utf-8\r\n"
                                         "Content-Length: 5\r\n"
                                         "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n"
                                         "hello";
static size_t answer_len;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void load_answer(const char *path)
{
    FILE *file = fopen(path, "rb");

    if (!file)
        die(path);
    answer_len = fread(answer, 1, sizeof(answer), file);
    fclose(file);
}

static int listen_on(int port)
{
    struct sockaddr_in at   = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
    socklen_t          size = sizeof(at);
    int                one  = 1;
    int                fd   = socket(AF_INET, SOCK_STREAM, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 1024) != 0)
        die("listen");
    getsockname(fd, (struct sockaddr *)&at, &size);
    printf("listening on http://127.0.0.1:%d\n", ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll_ctl");
}

static void take_connection(int epoll, int listener)
{
    int fd  = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    int one = 1;

    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    watch(epoll, fd);
}

static void repeat_answer(void)
{
    for (int i = 0; i < ANSWERS_MAX; i++)
        memcpy(answers + i * answer_len, answer, answer_len);
}

static size_t count_requests(const char *at, size_t len)
{
    const char *end   = at + len;
    size_t      count = 0;

    while (count < ANSWERS_MAX && (at = memmem(at, (size_t)(end - at), "\r\n\r\n", 4))) {
        at += 4;
        count++;
    }
    return count;
}

static void answer_all(int fd)
{
    static char request[16 * 1024];
    ssize_t     len = read(fd, request, sizeof(request));
    size_t      bytes;

    if (len <= 0) {
        close(fd);
        return;
    }
    bytes = count_requests(request, (size_t)len) * answer_len;
    if (write(fd, answers, bytes) != (ssize_t)bytes)
        close(fd);
}

int main(int argc, char **argv)
{
    struct epoll_event events[EVENTS_MAX];
    int                epoll = epoll_create1(0), listener;

    if (argc < 2) {
        fputs("usage: epoll_loop PORT [ANSWER_FILE]\n", stderr);
        return 2;
    }
    answer_len = strlen(answer);
    if (argc > 2)
        load_answer(argv[2]);
    repeat_answer();
    listener = listen_on(atoi(argv[1]));
    watch(epoll, listener);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS_MAX, -1);

        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener)
                take_connection(epoll, listener);
            else
                answer_all(events[i].data.fd);
        }
    }
}
