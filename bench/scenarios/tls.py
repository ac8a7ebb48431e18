"""What TLS costs: CPU of a request on a warm connection, of a handshake, memory of a connection that waits."""
import os
import socket
import ssl
import statistics
import subprocess

import measure
import report
from scenarios.idle import settled

CONNECTIONS = 64
IDLE = 10000
HANDSHAKES = 200  # for each second of a turn
CASES = [("GET / (text)", "/"), ("GET /users/:id (JSON)", "/users/123")]

HOW = [
    "CPU time of the server (user and system, all of its processes and threads, by the scheduler's count).",
    "Server on one CPU, the clients (`wrk -t1`, Python's ssl) on another; plain and TLS take turns. HTTP/1.1,",
    "TLS 1.2 or 1.3 as the library has it, ChaCha20-Poly1305, x25519; the certificate is ECDSA on P-256, or RSA of",
    "2,048 bits. A handshake is counted from connect to close, and one that is taken up again comes with a ticket.",
]


def make_certificates(folder, options):
    """{ kind: (certificate, key) }"""
    binary = measure.server_binary(options)
    subprocess.run([binary, "cert", "--dev", "--out", folder], check=True, stdout=subprocess.DEVNULL)
    rsa = os.path.join(folder, "rsa.pem"), os.path.join(folder, "rsa.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "30",
                    "-out", rsa[0], "-keyout", rsa[1]], check=True, stderr=subprocess.DEVNULL)
    return {"ECDSA": (os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")), "RSA": rsa}


def start_tls(options, pair, name, *flags):
    server = measure.start_srv(options, "--cert", pair[0], "--key", pair[1], *flags)
    server.name = name
    return server


# --- requests -------------------------------------------------------------------------------------------

def measure_requests(result, options, pair):
    connections = options.connections or CONNECTIONS
    with measure.start_srv(options) as plain, start_tls(options, pair, "srv, TLS") as secure:
        for heading, path in CASES:
            turns = measure.take_turns([plain, secure], path, options, connections)
            base, rows = [turn.us for turn in turns[plain]], []
            for server, took in turns.items():
                us = [turn.us for turn in took]
                rows.append([server.name, *report.low_and_median(us), "%.2f" % (min(us) / min(base)),
                             "%.2f" % (statistics.median(us) / statistics.median(base)),
                             "%.0f" % statistics.median(turn.rate for turn in took)])
            result.table("%s, %d connections" % (heading, connections),
                         ["server", "us min", "us median", "ratio of min", "ratio of median", "requests/s"], rows)


# --- handshakes -----------------------------------------------------------------------------------------

def client():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def handshake(server, context, session=None):
    """One connection, its handshake and its end; the session."""
    with socket.create_connection(("127.0.0.1", server.port), 5) as plain:
        with context.wrap_socket(plain, server_hostname="localhost", session=session) as secure:
            if session and not secure.session_reused:
                raise measure.Failed("the session was not taken up again")
            if not session:
                measure.request(secure, "/")  # a ticket of TLS 1.3 comes behind the handshake
            return secure.session


def handshake_us(server, count, context, session=None):
    before = server.cpu_ns()
    for _ in range(count):
        with socket.create_connection(("127.0.0.1", server.port), 5) as plain:
            context.wrap_socket(plain, server_hostname="localhost", session=session).close()
    return (server.cpu_ns() - before) / count / 1000


def measure_handshakes(result, options, pairs):
    both, rows, count = measure.cpus(), [], max(1, round(HANDSHAKES * options.seconds))
    for kind, pair in pairs.items():
        with start_tls(options, pair, kind) as server:
            os.sched_setaffinity(0, {both[1]})
            context, full, again = client(), [], []
            session = handshake(server, context)
            handshake(server, context, session)
            for turn in range(options.turns):
                measure.tell("handshakes, %s, turn %d of %d" % (kind, turn + 1, options.turns))
                full.append(handshake_us(server, count, context))
                again.append(handshake_us(server, count, context, session))
            os.sched_setaffinity(0, set(both))
            rows.append([kind, *report.low_and_median(full, "%.0f"), *report.low_and_median(again, "%.0f"),
                         "%.2f" % (statistics.median(again) / statistics.median(full))])
    result.table("A handshake, %d in a turn" % count,
                 ["certificate", "full us min", "median", "resumed us min", "median", "ratio of median"], rows)


# --- connections that wait --------------------------------------------------------------------------------

def open_idle(server, count):
    """COUNT connections that were answered once; of our end only the sockets are kept."""
    context, kept = client(), []
    session = None
    for _ in range(count):
        plain = socket.create_connection(("127.0.0.1", server.port), 5)
        # Else the request waits in the kernel for the answer to our last word of the handshake: 40 ms each time.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        secure = context.wrap_socket(plain, server_hostname="localhost", session=session)
        if not measure.request(secure, "/").startswith(b"HTTP/1.1 200 "):
            raise measure.Failed("not answered with 200")
        session = session or secure.session
        kept.append(socket.socket(fileno=secure.detach()))
    return kept


def measure_idle(result, options, pair):
    count = IDLE
    measure.raise_descriptor_limit(count + 200)
    with start_tls(options, pair, "srv, TLS", "--connections", str(count + 100), "--keep-alive-timeout", "10m") as server:
        for connection in open_idle(server, 64):
            connection.close()
        empty = settled(server)
        measure.tell("%d connections that wait" % count)
        kept = open_idle(server, count)
        full = settled(server)
        for connection in kept:
            connection.close()
        closed = settled(server)
    result.table("%d connections that wait" % count,
                 ["server", "MiB empty", "MiB full", "MiB closed", "bytes a connection"],
                 [[server.name, "%.1f" % (empty / 2**20), "%.1f" % (full / 2**20), "%.1f" % (closed / 2**20),
                   "%.0f" % ((full - empty) / count)]])


def run(options):
    result = report.Result("What TLS costs", HOW + [
        "%d turns of %g s for each server. Memory: anonymous pages of the server's processes." %
        (options.turns, options.seconds)])
    with measure.temporary_folder() as folder:
        pairs = make_certificates(folder, options)
        measure_requests(result, options, pairs["ECDSA"])
        measure_handshakes(result, options, pairs)
        measure_idle(result, options, pairs["ECDSA"])
    return result
