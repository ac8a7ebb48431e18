"""Many requests that wait at once: how long all of them take, what they cost in memory."""
import selectors
import socket
import time

import measure
import report

WAIT_MS = 250  # apps/bench: GET /wait
REQUEST = b"GET /wait HTTP/1.1\r\nHost: bench\r\n\r\n"


def connect(port, count):
    return [socket.create_connection(("127.0.0.1", port), 5) for _ in range(count)]


def answers(connections):
    """Seconds from the first request to the last answer."""
    selector = selectors.DefaultSelector()
    began = time.monotonic()
    for connection in connections:
        connection.sendall(REQUEST)
        selector.register(connection, selectors.EVENT_READ)
    left = len(connections)
    while left:
        for key, _ in selector.select():
            if not key.fileobj.recv(4096).startswith(b"HTTP/1.1 200 "):
                raise measure.Failed("not answered with 200")
            selector.unregister(key.fileobj)
            left -= 1
    return time.monotonic() - began


def measure_one(server, count):
    connections = connect(server.port, count)
    before = server.memory()
    took = answers(connections)
    during = server.memory()
    for connection in connections:
        connection.close()
    time.sleep(2)  # memory is given back a second after the burst
    return [count, "%.0f" % (took * 1000), "%.1f" % (before / 2**20), "%.1f" % (during / 2**20),
            "%.1f" % (server.memory() / 2**20)]


def run(options):
    counts = (10, 1000, 10000)
    measure.raise_descriptor_limit(max(counts) + 200)
    result = report.Result("Requests that wait at once", [
        "Each request's handler sleeps %d ms; one worker on one CPU, the client on another. From the" % WAIT_MS,
        "first request sent to the last answer read; connections were open before. Memory as in idle.md:",
        "with the connections open, right after the answers, and two seconds after all have closed."])
    with measure.start_srv(options, "--connections", str(max(counts) + 100)) as srv:
        rows = [measure_one(srv, count) for count in counts]
    result.table("One worker", ["at once", "ms for all", "MiB before", "MiB after", "MiB closed"], rows)
    return result
