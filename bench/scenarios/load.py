"""What a load generator costs: srv bench, wrk and autocannon in turns, each on one CPU, on the bare loop."""
import json
import os
import re
import resource
import statistics
import subprocess
import tempfile

import measure
import report

CONNECTIONS = 100
PIPELINING = [1, 10]

# wrk pipelines by a script that joins requests.
WRK_PIPELINED = """init = function()
  local one = {}
  for i = 1, %d do one[i] = wrk.format() end
  all = table.concat(one)
end
request = function() return all end
"""

HOW = [
    "The load has one CPU for itself, the target (`bench/micro/epoll_loop.c`, which answers without parsing) the",
    "other; the generators take turns. CPU is the generator's own, user and system, for each answer that it has",
    "counted: it says what a generator could do on a machine with nothing else to do, where requests/s say what",
    "this one has let it do. autocannon is npm's, with one thread.",
]


class Turn:
    """One run of COMMAND; COUNT reads (answers, seconds) from what it says."""

    def __init__(self, command, count):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=measure.pin_to(measure.cpus()[1]), timeout=120)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            raise measure.Failed("%s ended with %d:\n%s" % (command[0], done.returncode, done.stderr))
        answers, seconds = count(done.stdout)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.us = spent / answers * 1e6
        self.rate = answers / seconds


def srv_turn(options, url, connections, pipelining):
    def count(text):
        result = json.loads(text)
        if result["errors"] or result["non2xx"]:
            raise measure.Failed("srv bench met errors: %s" % result["faults"])
        return result["answered"], result["duration"]
    return Turn([measure.server_binary(options), "bench", "-j", "-n", "-c", str(connections), "-p", str(pipelining),
                 "-d", "%gs" % options.seconds, url], count)


def wrk_turn(options, url, connections, pipelining):
    def count(text):  # it may tell of timeouts: this machine has stood still for a while
        requests, rate = (float(re.search(form, text).group(1)) for form in (r"(\d+) requests in", r"Requests/sec: *([\d.]+)"))
        return requests, requests / rate
    command = ["wrk", "-t1", "-c%d" % connections, "-d%gs" % options.seconds, url]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        if pipelining > 1:
            script.write(WRK_PIPELINED % pipelining)
            script.flush()
            command[1:1] = ["-s", script.name]
        return Turn(command, count)


def autocannon_turn(options, url, connections, pipelining):
    folder = measure.node_packages("autocannon")

    def count(text):
        result = json.loads(text)
        return result["requests"]["total"], result["duration"]
    program = os.path.join(folder.name, "node_modules", "autocannon", "autocannon.js")
    return Turn(["node", program, "-j", "-n", "-c", str(connections), "-p", str(pipelining),
                 "-d", "%d" % max(1, round(options.seconds)), url], count)


GENERATORS = {"srv bench": srv_turn, "wrk": wrk_turn, "autocannon": autocannon_turn}


def take_turns(options, url, connections, pipelining):
    turns = {name: [] for name in GENERATORS}
    for number in range(options.turns + 1):
        for name, turn in GENERATORS.items():
            taken = turn(options, url, connections, pipelining)
            if number > 0:  # the first does not count
                turns[name].append(taken)
    return turns


def rows_of(turns):
    own_us = statistics.median(turn.us for turn in turns["srv bench"])
    own_rate = statistics.median(turn.rate for turn in turns["srv bench"])
    rows = []
    for name, taken in turns.items():
        us, rates = [turn.us for turn in taken], [turn.rate for turn in taken]
        rows.append([name] + report.low_and_median(us) + ["%.2f" % (statistics.median(us) / own_us)]
                    + ["%.0f" % max(rates), "%.0f" % statistics.median(rates), "%.2f" % (own_rate / statistics.median(rates))])
    return rows


COLUMNS = ["generator", "us min", "us median", "CPU beside ours", "requests/s max", "requests/s median", "ours are times"]


def run(options):
    connections = options.connections or CONNECTIONS
    result = report.Result("Load generators", HOW + [
        "%d turns of %g s for each, %d connections." % (options.turns, options.seconds, connections)])
    with measure.start_loop() as loop:
        url = "http://127.0.0.1:%d/" % loop.port
        for pipelining in PIPELINING:
            heading = "One request at a time" if pipelining == 1 else "%d requests under way on each connection" % pipelining
            result.table(heading, COLUMNS, rows_of(take_turns(options, url, connections, pipelining)))
    return result
