"""CPU for each request on a warm keep-alive connection, beside a loop that only reads and writes."""
import statistics

import measure
import report

CASES = [("GET / (text)", "/"), ("GET /users/:id (JSON)", "/users/123")]
CONNECTIONS = 64


def rows_of(turns, yardstick):
    base = [turn.us for turn in turns[yardstick]]
    rows = []
    for server, took in turns.items():
        us = [turn.us for turn in took]
        rows.append([server.name] + report.low_and_median(us) + [
            "%.2f" % (min(us) / min(base)),
            "%.2f" % (statistics.median(us) / statistics.median(base)),
            "%.0f %%" % (100 * statistics.median(turn.user_share for turn in took)),
            "%.0f" % statistics.median(turn.rate for turn in took)])
    return rows


COLUMNS = ["server", "us min", "us median", "ratio of min", "ratio of median", "user", "requests/s"]

HOW = [
    "CPU time of the server (user and system, all of its processes and threads, by the scheduler's count)",
    "for each request. Server on one CPU, `wrk -t1` on another; the servers take turns, so that what the",
    "machine does besides hits all alike. The bare loop (`bench/micro/epoll_loop.c`) sends the same bytes",
    "as srv and parses nothing: one epoll_wait for a batch, one read and one write for each request.",
]


def run(options):
    connections = options.connections or CONNECTIONS
    result = report.Result("CPU for each request", HOW + [
        "%d turns of %g s for each server, %d connections." % (options.turns, options.seconds, connections)])
    peers = measure.start_peers(options)
    try:
        with measure.start_srv(options) as srv:
            for heading, path in CASES:
                with measure.start_loop(measure.fetch(srv.port, path)) as loop:
                    turns = measure.take_turns([loop, srv, *peers], path, options, connections)
                    result.table(heading, COLUMNS, rows_of(turns, loop))
    finally:
        for peer in peers:
            peer.stop()
    return result
