"""One row of PostgreSQL by its key as JSON: CPU of the server for each request, beside the peers; and
twenty statements at once in one request."""
import json
import os
import statistics
import sys

import measure
import report

sys.path.insert(0, os.path.join(measure.ROOT, "tests", "support"))

ROW = "/rows/123"
CONNECTIONS = 64
COLUMNS = ["server", "us min", "us median", "ratio of min", "ratio of median", "user", "requests/s"]

HOW = [
    "CPU time of the server alone (not of PostgreSQL) for each GET of one row by its primary key as JSON.",
    "The server on one CPU; PostgreSQL and `wrk -t1` on the other. The servers take turns. Fastify with",
    "node-postgres (named statement, 20 connections, packages fetched for the run); nginx with Lua and a",
    "client on cosockets as pgmoon is one (`bench/peers/nginx_postgres.lua`, simple protocol). No TLS.",
]

SETUP = """create table items (id integer primary key, title text not null, body text not null);
insert into items select i, 'Item ' || i, repeat('text of item ' || i || ' ', 5) from generate_series(1, 1000) i"""


def ask_ms(server, count):
    body = measure.fetch(server.port, "/parallel/%d" % count).partition(b"\r\n\r\n")[2]
    return json.loads(body)["ms"]


def parallel_rows(server):
    rows = []
    for count in (1, 20):
        took = sorted(ask_ms(server, count) for _ in range(9))
        rows.append(["%d" % count, "%.1f" % took[0], "%.1f" % statistics.median(took)])
    return rows


def rows_of(turns, base):
    yard = [turn.us for turn in turns[base]]
    rows = []
    for server, took in turns.items():
        us = [turn.us for turn in took]
        rows.append([server.name] + report.low_and_median(us) + [
            "%.2f" % (min(us) / min(yard)), "%.2f" % (statistics.median(us) / statistics.median(yard)),
            "%.0f %%" % (100 * statistics.median(turn.user_share for turn in took)),
            "%.0f" % statistics.median(turn.rate for turn in took)])
    return rows


def start_postgres():
    from services import Postgres
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {measure.cpus()[1]})
    try:
        return Postgres(auth="trust", ssl="off", max_connections=200, shared_buffers="64MB").__enter__()
    finally:
        os.sched_setaffinity(0, every)


def run(options):
    result = report.Result("One row of PostgreSQL by its key", HOW + [
        "%d turns of %g s for each server, %d connections." % (
            options.turns, options.seconds, options.connections or CONNECTIONS)])
    pg, servers = start_postgres(), []
    try:
        pg.sql(SETUP)
        os.environ["BENCH_POSTGRES_URL"] = pg.url
        servers.append(measure.start_srv(options, app="postgres.lua"))
        for name in (options.peers or "").split(","):
            if name == "fastify":
                servers.append(measure.start_fastify())
            elif name == "nginx":
                servers.append(measure.start_nginx("nginx_postgres.conf", "nginx + Lua", POSTGRES=str(pg.port)))
            elif name:
                raise measure.Failed("no peer %r; there are fastify, nginx" % name)
        turns = measure.take_turns(servers, ROW, options, options.connections or CONNECTIONS)
        result.table("GET %s" % ROW, COLUMNS, rows_of(turns, servers[0]))
        result.table("Statements of 20 ms at once in one request (ms)", ["statements", "min", "median"],
                     parallel_rows(servers[0]))
    finally:
        for server in servers:
            server.stop()
        pg.close()
    return result
