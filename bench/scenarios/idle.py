"""Memory of idle keep-alive connections: what the server's private pages grow by."""
import socket
import time

import measure
import report

CONNECTIONS = 8000
SETTLE_SECONDS = 20


def open_idle(port, count):
    """COUNT connections that were answered once and are kept."""
    connections = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", port), 5)
        connections.append(connection)
        if not measure.request(connection, "/").startswith(b"HTTP/1.1 200 "):
            raise measure.Failed("not answered with 200")
    return connections


def settled(server):
    """The memory once it has not changed for a second: buffers are given back after a while."""
    end = time.monotonic() + SETTLE_SECONDS
    before, since = server.memory(), time.monotonic()
    while time.monotonic() < end and time.monotonic() - since < 1:
        time.sleep(0.1)
        now = server.memory()
        if now != before:
            before, since = now, time.monotonic()
    return before


def measure_one(server, count):
    for connection in open_idle(server.port, 64):
        connection.close()
    empty = settled(server)
    connections = open_idle(server.port, count)
    full = settled(server)
    for connection in connections:
        connection.close()
    closed = settled(server)
    return [server.name, "%.1f" % (empty / 2**20), "%.1f" % (full / 2**20),
            "%.1f" % (closed / 2**20), "%.0f" % ((full - empty) / count)]


def run(options):
    count = options.connections or CONNECTIONS
    measure.raise_descriptor_limit(count + 200)
    result = report.Result("Memory of idle connections", [
        "Anonymous pages of the server's processes (`/proc/PID/smaps_rollup`) with no connection, with",
        "%d keep-alive connections that were answered once, and after they have closed. What the kernel" % count,
        "keeps for a socket is not in it; pages that are only partly used are."])
    rows = []
    peers = measure.start_peers(options)
    try:
        with measure.start_srv(options, "--connections", str(count + 100)) as srv:
            for server in [srv, *peers]:
                rows.append(measure_one(server, count))
    finally:
        for peer in peers:
            peer.stop()
    result.table("%d connections" % count,
                 ["server", "MiB empty", "MiB full", "MiB closed", "bytes a connection"], rows)
    return result
