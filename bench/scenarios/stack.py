"""The typical stack of an API: CPU for each request, beside the same in Express and in Fastify."""
import json
import os
import statistics

import measure
import report

CONNECTIONS = 64

# As a browser asks from a page of another origin.
BROWSER = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Accept": "application/json, text/plain, */*",
    "Accept-Language": "en-US,en;q=0.5",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Origin": "https://app.example",
    "Referer": "https://app.example/articles",
    "Sec-Fetch-Dest": "empty",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Site": "cross-site",
}

ARTICLE = {
    "title": "What a request costs", "slug": "what-a-request-costs", "url": "https://news.example/articles/cost",
    "email": "ann@example.com", "pages": 12, "draft": False, "state": "draft", "tags": ["http", "lua", "servers"],
    "author": {"name": "Ann Example", "role": "editor"}, "published": "2026-11-30",
}

CASES = [
    measure.Request("/articles/42?page=2&sort=title", fields=BROWSER),
    measure.Request("/articles", "POST", dict(BROWSER, **{"Content-Type": "application/json"}),
                    json.dumps(ARTICLE, separators=(",", ":"))),
]

COLUMNS = ["server", "us min", "us median", "of Fastify", "of Express", "of bare loop", "user", "requests/s"]

EXPRESS = ["express", "helmet", "compression", "cors", "pino", "pino-http", "joi"]
FASTIFY = ["fastify", "@fastify/helmet", "@fastify/compress", "@fastify/cors", "@fastify/formbody", "pino"]

HOW = [
    "CPU time of the server for each request of the typical stack: helmet, CORS, compression, JSON and",
    "urlencoded bodies, an access log, validation. One process or worker each, on one CPU; `wrk -t1` on the",
    "other; the servers take turns. Requests are a browser's from another origin: a GET with a path parameter",
    "and two of the query, checked and converted, answered with %d bytes of JSON; and a POST of a JSON body of",
    "ten fields (%d bytes; email, URL, slugs, date, an object ...), checked and answered with 201. No answer is",
    "long enough to be compressed: all three begin at 1 KiB. The ratios are of the lowest turns,",
    "which what else the machine does disturbs least (Node more than srv).",
    "",
    "- srv (`apps/bench/stack.lua`): `srv.helmet()`, `srv.cors()`, `srv.compress()`, schemas of params, query and",
    "  body; JSON and forms are read by the core. The access log is on, into /dev/null: one line a request.",
    "- Express (`bench/peers/stack_express.js`): helmet, cors, compression, express.json, express.urlencoded,",
    "  pino-http, each with its defaults; Joi. One line a request.",
    "- Fastify (`bench/peers/stack_fastify.js`): @fastify/helmet, cors, compress, formbody with their defaults;",
    "  JSON Schema for params, query, body and (so that it writes JSON faster) answers. Its own logger: two lines",
    "  a request.",
    "",
    "Both of Node write their log through pino's buffer (`sync: false`) into /dev/null, with NODE_ENV=production and",
    "packages fetched for the run: %s.",
    "The bare loop sends the same bytes as srv and parses nothing.",
]


def start_srv(options):
    app = os.path.join(measure.ROOT, "apps", "bench", "stack.lua")
    return measure.start_at_port("srv", [
        measure.server_binary(options), app, "--port", "PORT", "--workers", "1", "--no-watch",
        "--log-file", "/dev/null"])


def versions(names):
    """As they were fetched: "express 5.1.0, ..."."""
    found = []
    for name in names:
        with open(os.path.join(os.environ["BENCH_NODE_MODULES"], "node_modules", name, "package.json")) as file:
            found.append("%s %s" % (name, json.load(file)["version"]))
    return ", ".join(found)


def rows_of(turns):
    least = {server.name: min(turn.us for turn in took) for server, took in turns.items()}
    rows = []
    for server, took in turns.items():
        rows.append([server.name] + report.low_and_median([turn.us for turn in took]) + [
            "%.3f" % (least[server.name] / least[other]) for other in ("Fastify", "Express", "bare loop")] + [
            "%.0f %%" % (100 * statistics.median(turn.user_share for turn in took)),
            "%.0f" % statistics.median(turn.rate for turn in took)])
    return rows


def body_of(answer):
    return answer.partition(b"\r\n\r\n")[2]


def check_alike(servers, case):
    """They answer the same, or the comparison means nothing."""
    answers = {server.name: json.loads(body_of(measure.fetch(server.port, case))) for server in servers}
    first = next(iter(answers.values()))
    for name, answer in answers.items():
        if answer != first:
            raise measure.Failed("%s: %s answers %r, others %r" % (case, name, answer, first))


def run(options):
    servers = []
    packages = sorted(set(EXPRESS + FASTIFY))
    try:
        servers.append(start_srv(options))
        servers.append(measure.start_npm("Fastify", "stack_fastify.js", *packages))
        servers.append(measure.start_npm("Express", "stack_express.js", *packages))
        bytes_out = len(body_of(measure.fetch(servers[0].port, CASES[0])))
        how = "\n".join(HOW) % (bytes_out, len(CASES[1].body), versions(packages))
        connections = options.connections or CONNECTIONS
        result = report.Result("The typical stack of an API", [how, "", "%d turns of %g s for each server, %d connections." % (
            options.turns, options.seconds, connections)])
        for case in CASES:
            check_alike(servers, case)
            with measure.start_loop(measure.fetch(servers[0].port, case)) as loop:
                turns = measure.take_turns([loop, *servers], case, options, connections)
                result.table(str(case), COLUMNS, rows_of(turns))
    finally:
        for server in servers:
            server.stop()
    return result
