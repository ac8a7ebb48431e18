"""Counters in /metrics return to their start: after clients that leave, and databases that are killed and come
back under load, no task, connection, call or descriptor is left over."""
import os
import re
import socket
import sys
import tempfile
import threading
import time
import unittest

from srv_process import Srv, wait_until, write_app

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
from services import Postgres, Redis  # noqa: E402  (its folder is found above)

APP = """
local srv = require "srv"
local app = srv.app { timeout = "5s" }
app:use(srv.metrics())
local db = srv.db(nil, { pool = 8, queue = 20, timeout = "2s", migrations = false })
local redis = srv.redis(nil, { timeout = "1s" })
local hanging = srv.env.HANGING

app:get("/db", function() return { v = assert(db:value "select 1 from pg_sleep(0.05)") } end)
app:get("/tx", function()
  return { v = assert(db:tx(function(tx)
    assert(tx:value "select 1")
    srv.sleep "50ms"
    return assert(tx:value "select 2")
  end)) }
end)
app:get("/redis", function() return { v = assert(redis:incr "n") } end)
app:get("/upstream", function() return assert(srv.http.get(hanging, { timeout = "1s", retries = 0 })) end)
app:get("/long", function()
  local a = srv.all(function() return assert(db:value "select pg_sleep(1)") end, function() srv.sleep "1s" return 1 end)
  return { a = a }
end)
return app
"""

PATHS = ["/db", "/tx", "/redis", "/upstream", "/long"]

# What is zero when nobody asks for anything; the scrape itself is a connection and a task.
AT_REST = {
    "srv_tasks": 1, "srv_http_connections": 1, "srv_postgres_leased": 0, "srv_postgres_waiting": 0,
    "srv_postgres_in_flight": 0, "srv_redis_pending": 0, "srv_http_client_waiting": 0, "srv_pool_queued": 0,
}


def numbers(srv):
    """{ family: sum over labels }."""
    found = {}
    for line in srv.get("/metrics")[2].decode().splitlines():
        if not line.startswith("#"):
            name, value = re.sub(r"\{.*\}", "", line).rsplit(" ", 1)
            found[name] = found.get(name, 0) + float(value)
    return found


def left_over(srv):
    now = numbers(srv)
    return {name: now[name] for name, most in AT_REST.items() if now[name] > most}


class Hanging:
    """A server that accepts and never answers."""

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d/" % self.listener.getsockname()[1]
        self.held = []
        threading.Thread(target=self.hold, daemon=True).start()
        return self

    def hold(self):
        try:
            while True:
                self.held.append(self.listener.accept()[0])
        except OSError:
            pass

    def __exit__(self, *_):
        self.listener.close()
        for client in self.held:
            client.close()


class Load:
    """Clients that ask again and again; every other one leaves before the answer."""

    def __init__(self, srv, clients):
        self.srv, self.over, self.statuses = srv, threading.Event(), {}
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(clients)]

    def run(self, number):
        path, turn = PATHS[number % len(PATHS)], 0
        while not self.over.is_set():
            turn += 1
            if (number + turn) % 2:
                with self.srv.connect() as client:
                    client.sendall(("GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % path).encode())
                    time.sleep(0.01)
            else:
                status = self.srv.get(path)[0]
                self.statuses[(path, status)] = self.statuses.get((path, status), 0) + 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


class Counters(unittest.TestCase):
    def answered(self, load, path, count):
        wait_until(lambda: load.statuses.get((path, 200), 0) >= count, "answers of " + path)

    def test_counters_return_to_their_start(self):
        with Postgres() as pg, Redis() as redis, Hanging() as hanging, tempfile.TemporaryDirectory() as folder:
            write_app(folder, {"app.lua": APP})
            with Srv(folder, "--no-access-log", workers=2,
                     env={"DATABASE_URL": pg.url, "REDIS_URL": redis.url, "HANGING": hanging.url}) as srv:
                for path in ("/db", "/redis"):
                    for _ in range(8):
                        self.assertEqual(srv.get(path)[0], 200)
                wait_until(lambda: not left_over(srv), "a quiet start: %s" % left_over(srv))
                fds = numbers(srv)["process_open_fds"]
                with Load(srv, 15) as load:
                    self.answered(load, "/db", 5)
                    pg.kill()
                    redis.kill()
                    wait_until(lambda: load.statuses.get(("/db", 503), 0) >= 5, "503s of a database that is gone")
                    wait_until(lambda: load.statuses.get(("/redis", 503), 0) >= 5, "503s of Redis")
                    pg.start()
                    redis.start()
                    for path in ("/db", "/tx", "/redis"):
                        self.answered(load, path, load.statuses.get((path, 200), 0) + 5)
                wait_until(lambda: not left_over(srv), "all at rest: %s" % left_over(srv))
                # Connections to the databases are kept; those of both workers may be more than at the start.
                wait_until(lambda: numbers(srv)["process_open_fds"] <= fds + 16, "descriptors: %s" % numbers(srv)["process_open_fds"])
                self.assertEqual(srv.stop(), 0, srv.output[-3000:])


if __name__ == "__main__":
    unittest.main()
