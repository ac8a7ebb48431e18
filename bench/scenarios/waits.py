"""Many requests that wait at once: how long all of them take, what they cost in memory."""
import selectors
import socket
import time

import measure
import report

WAIT_MS = 250  # apps/bench: GET /wait
ALL_WAIT_S = 3  # long enough for all requests to be sent, and for a look at the memory
SETTLE_S = 2    # memory is given back a second after a burst


def connect(port, count):
    return [socket.create_connection(("127.0.0.1", port), 5) for _ in range(count)]


def send(connections, path):
    request = b"GET %s HTTP/1.1\r\nHost: bench\r\n\r\n" % path.encode()
    for connection in connections:
        connection.sendall(request)


def receive(connections):
    selector = selectors.DefaultSelector()
    for connection in connections:
        selector.register(connection, selectors.EVENT_READ)
    left = len(connections)
    while left:
        for key, _ in selector.select():
            if not key.fileobj.recv(4096).startswith(b"HTTP/1.1 200 "):
                raise measure.Failed("not answered with 200")
            selector.unregister(key.fileobj)
            left -= 1


def seconds_for_all(connections):
    """From the first request to the last answer."""
    began = time.monotonic()
    send(connections, "/wait")
    receive(connections)
    return time.monotonic() - began


def mib(amount):
    return "%.1f" % (amount / 2**20)


def measure_one(options, count):
    """Of a server of its own: one that had a burst before has memory to spare."""
    with measure.start_srv(options, "--connections", str(count + 100)) as server:
        empty = server.memory()
        connections = connect(server.port, count)
        time.sleep(SETTLE_S)
        idle = server.memory()
        began = time.monotonic()
        send(connections, "/wait/%d" % ALL_WAIT_S)
        time.sleep(ALL_WAIT_S - 1)
        waiting = server.memory()
        if time.monotonic() - began > ALL_WAIT_S:
            raise measure.Failed("the requests were not sent within %d s" % ALL_WAIT_S)
        receive(connections)
        took = seconds_for_all(connections)
        for connection in connections:
            connection.close()
        time.sleep(SETTLE_S)
        return [count, "%.0f" % (took * 1000), mib(empty), mib(idle), mib(waiting), mib(server.memory()),
                "%.2f" % ((waiting - empty) / count / 1024)]


def run(options):
    counts = (10, 1000, 10000)
    measure.raise_descriptor_limit(max(counts) + 200)
    result = report.Result("Requests that wait at once", [
        "Handlers that sleep, a server for each line; one worker on one CPU, the client on another. The time",
        "is from the first of the requests sent to the last answer read, when each sleeps %d ms and the" % WAIT_MS,
        "connections are open. Memory as in idle.md: of the server alone, with the connections open and",
        "nothing asked yet, with all handlers asleep, and %d seconds after all have closed. KiB each is what" % SETTLE_S,
        "a sleeping handler and its connection cost together."])
    result.table("One worker",
                 ["at once", "ms for all", "MiB empty", "MiB connected", "MiB asleep", "MiB closed", "KiB each"],
                 [measure_one(options, count) for count in counts])
    return result
