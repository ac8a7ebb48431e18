/* Programs that are not ours on the other side: openssl, and Python's ssl. */
#include "support/tls_pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/wait.h>

#include "net/tls_session.h"

extern char **environ;

static struct tls_server *server;
static struct tls_client *client;

static char ca_path[] = "/tmp/tls_foreign.ca.XXXXXX", own_path[] = "/tmp/tls_foreign.own.XXXXXX";
static uint16_t port;

static void write_temp(char *path, const struct tls_made *from, bool with_key)
{
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    CHECK(write(fd, from->cert.at, from->cert.len) == (ssize_t)from->cert.len);
    if (with_key)
        CHECK(write(fd, from->key.at, from->key.len) == (ssize_t)from->key.len);
    close(fd);
}

static int listen_somewhere(void)
{
    struct sockaddr_in at  = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t          len = sizeof(at);
    int                fd  = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    CHECK(bind(fd, (struct sockaddr *)&at, len) == 0 && listen(fd, 4) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    port = ntohs(at.sin_port);
    return fd;
}

/* Runs SCRIPT by the shell, with the port and both files as $1, $2, $3. Its output goes to *OUT. */
static pid_t start(const char *script, int *out)
{
    char  port_text[8];
    char *argv[] = { "sh", "-c", (char *)script, "sh", port_text, ca_path, own_path, NULL };
    posix_spawn_file_actions_t actions;
    pid_t                      pid;
    int                        fds[2];

    snprintf(port_text, sizeof(port_text), "%u", port);
    CHECK(pipe2(fds, O_CLOEXEC) == 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    CHECK_INT(posix_spawnp(&pid, "sh", &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    *out = fds[0];
    return pid;
}

static bool can_run(const char *command)
{
    return system(command) == 0;
}

static void finish(pid_t pid, int out, char *said, size_t room)
{
    size_t  len = 0;
    ssize_t n;
    int     status;

    while (len + 1 < room && (n = read(out, said + len, room - 1 - len)) > 0)
        len += (size_t)n;
    said[len] = '\0';
    close(out);
    CHECK(waitpid(pid, &status, 0) == pid);
}

/* --- we are the server ---------------------------------------------------------------------------------- */

static int accept_one(int door)
{
    int fd = -1;

    for (int i = 0; i < 1000 && fd < 0; i++) {
        fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            usleep(10000);
    }
    CHECK(fd >= 0);
    return fd;
}

/* One connection of SCRIPT, which sends "hello": it is answered, and the end is said. Returns what the
 * script has written. */
static const char *serve(const char *script, bool ask_cert)
{
    static const char *const ALPN[] = { "h2", "http/1.1", NULL };
    static char              said[65536];
    struct tls_identity      own;
    int                      door, out;
    pid_t                    pid;

    pair_start();
    own    = identity(&made);
    server = new_server(&(struct tls_server_options){
        .identities     = &own,
        .identity_count = 1,
        .alpn           = ALPN,
        .client_certs   = ask_cert ? TLS_CLIENT_CERTS_REQUIRED : TLS_CLIENT_CERTS_NONE,
        .client_ca      = pem(&authority.cert),
    });
    door   = listen_somewhere();
    pid    = start(script, &out);
    end_open(&ours, accept_one(door));
    close(door);
    CHECK_INT(tls_accept(&ours.stream, server, STR_NONE), 0);
    RUN_UNTIL(is_decided(&ours));
    CHECK_STR(tls_fault(&ours.stream), "");
    RUN_UNTIL(ours.got.len >= 5);
    CHECK(memcmp(ours.got.at, "hello", 5) == 0);
    CHECK_INT(end_send(&ours, "you too\n"), 8);
    stream_shut(&ours.stream);
    RUN_UNTIL(ours.last == STREAM_FIN || ours.last == STREAM_FAIL);
    finish(pid, out, said, sizeof(said));
    return said;
}

static void end_test(void)
{
    pair_close();
    tls_server_close(server);
    tls_client_close(client);
    server = NULL;
    client = NULL;
    pair_end();
}

TEST(openssl_speaks_with_our_server)
{
    const char *said;

    if (!can_run("openssl version >/dev/null 2>&1"))
        SKIP("there is no openssl");
    said = serve("echo hello | timeout 10 openssl s_client -connect 127.0.0.1:$1 -CAfile $2 "
                 "-servername a.example -verify_hostname a.example -alpn h2 -ign_eof 2>&1",
                 false);
    CHECK(strstr(said, "Verify return code: 0 (ok)"));
    CHECK(strstr(said, "ALPN protocol: h2"));
    CHECK(strstr(said, "X25519"));
    CHECK(strstr(said, "you too"));
    CHECK_STR(tls_info(&ours.stream)->alpn, "h2");
    end_test();
}

TEST(openssl_shows_our_server_its_certificate)
{
    if (!can_run("openssl version >/dev/null 2>&1"))
        SKIP("there is no openssl");
    serve("echo hello | timeout 10 openssl s_client -connect 127.0.0.1:$1 -CAfile $2 "
          "-cert $3 -key $3 -ign_eof 2>&1",
          true);
    CHECK_STR(tls_info(&ours.stream)->peer_subject, "CN=a.example");
    end_test();
}

TEST(python_speaks_with_our_server)
{
    static const char SCRIPT[] =
        "exec timeout 10 python3 -c '\n"
        "import socket, ssl, sys\n"
        "context = ssl.create_default_context(cafile=sys.argv[2])\n"
        "context.set_alpn_protocols([\"http/1.1\"])\n"
        "plain = socket.create_connection((\"127.0.0.1\", int(sys.argv[1])))\n"
        "peer = context.wrap_socket(plain, server_hostname=\"a.example\")\n"
        "peer.sendall(b\"hello\")\n"
        "print(peer.recv(100), peer.recv(100), peer.selected_alpn_protocol())\n"
        "peer.unwrap().close()\n"
        "' \"$@\"";
    const char *said;

    if (!can_run("python3 -c 'import ssl' >/dev/null 2>&1"))
        SKIP("there is no python3");
    said = serve(SCRIPT, false); /* once: a check looks at what it is given twice */
    CHECK_STR(said, "b'you too\\n' b'' http/1.1\n");
    CHECK(!ours.stream.cut);
    end_test();
}

/* --- we are the client -------------------------------------------------------------------------------- */

/* Waits until somebody listens on `port`. */
static int dial(void)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port   = htons(port),
                              .sin_addr   = { htonl(INADDR_LOOPBACK) } };

    for (int i = 0; i < 1000; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
            return fd;
        close(fd);
        usleep(10000);
    }
    return -1;
}

TEST(our_client_speaks_with_openssl)
{
    static char said[65536];
    int         out, fd;
    pid_t       pid;

    if (!can_run("openssl version >/dev/null 2>&1"))
        SKIP("there is no openssl");
    pair_start();
    client = plain_client();
    fd     = listen_somewhere(); /* for a free port */
    close(fd);
    pid = start(
        "exec timeout 10 openssl s_server -accept 127.0.0.1:$1 -cert $3 -key $3 -rev -naccept 1 "
        "2>&1",
        &out);
    fd = dial();
    CHECK(fd >= 0);
    end_open(&theirs, fd);
    PAIR_OK(tls_connect(&theirs.stream, client, &(struct tls_target){ .name = STR("127.0.0.1") },
                        &pair_err));
    RUN_UNTIL(is_decided(&theirs));
    CHECK_STR(tls_fault(&theirs.stream), "");
    CHECK_INT(end_send(&theirs, "hello\n"), 6);
    RUN_UNTIL(theirs.got.len == 6);
    CHECK_MEM(theirs.got.at, theirs.got.len, "olleh\n", 6);
    stream_shut(&theirs.stream);
    end_close(&theirs);
    finish(pid, out, said, sizeof(said));
    end_test();
}

int main(void)
{
    int rc;

    pair_start();
    write_temp(ca_path, &authority, false);
    write_temp(own_path, &made, true);
    pair_end();
    rc = check_run();
    unlink(ca_path);
    unlink(own_path);
    forget_certs();
    return rc;
}
