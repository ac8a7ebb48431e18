"""From exec to the first answer."""
import time

import measure
import report


def once(start):
    with start() as server:
        measure.fetch(server.port, "/")
        return (time.monotonic_ns() - server.started_ns) / 1e6


def run(options):
    measure.server_binary(options)
    starts = [("bare loop", measure.start_loop), ("srv", lambda: measure.start_srv(options))]
    for name in options.peers.split(","):
        if name:
            starts.append((name, measure.PEERS[name]))
    times = {name: [] for name, _ in starts}
    for _ in range(options.turns):
        for name, start in starts:
            times[name].append(once(start))
    result = report.Result("Start to first answer", [
        "From the exec of the server to the last byte of its first answer; the port is read from what the",
        "server prints, looked at every half millisecond. %d starts of each, in turns." % options.turns])
    result.table("ms", ["server", "min", "median"],
                 [[name] + report.low_and_median(took, "%.1f") for name, took in times.items()])
    return result
