"""A PostgreSQL server that dies, hangs and comes back under load: requests meanwhile fail fast, everything
recovers by itself, nothing leaks, and no answer ever reaches another's question."""
import json
import os
import sys
import tempfile
import threading
import time
import unittest

from srv_process import ROOT, Srv, run_to_end, wait_until, write_app

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from services import Postgres  # pylint: disable=wrong-import-position

APP = """
local srv = require "srv"
local db = srv.db("postgres://overridden", { pool = 8, queue = 200, timeout = "1s", migrations = false })
local app = srv.app {}

app:get("/echo/:tag", function(req)
  local tag, err = db:value("select $1::text", req.params.tag)
  if not tag then return nil, err end
  return { tag = tag }
end)

app:get("/tx/:tag", function(req)
  return db:tx(function(tx)
    local tag, err = tx:value("select $1::text", req.params.tag)
    if not tag then return nil, err end
    return { tag = tag }
  end)
end)

app:get("/slow/:tag", function(req)
  local tag, err = db:value("select $1::text from pg_sleep(0.05)", req.params.tag)
  if not tag then return nil, err end
  return { tag = tag }
end)

app:get("/copy/:tag", function(req)
  local lines, err = db:copy_out "copy (select g from generate_series(1, 5000) g) to stdout"
  local text
  if lines then text, err = lines:all() end
  if not text then return nil, err end
  return { tag = req.params.tag }
end)

app:get("/hang", function() return db:query "select pg_sleep(30)" end)
app:get("/stats", function() return require "srv.core.pg".stats() end)
return app
"""


class Load:
    """Clients that ask for ever, each request with a tag of its own, and note what came when."""

    def __init__(self, srv, paths=("/echo/", "/tx/", "/slow/", "/copy/"), clients=8):
        self.srv, self.answers, self.wrong, self.running = srv, [], [], True
        self.threads = [threading.Thread(target=self.ask, args=(i, paths[i % len(paths)]), daemon=True)
                        for i in range(clients)]
        for thread in self.threads:
            thread.start()

    def ask(self, client, path):
        number = 0
        while self.running:
            number += 1
            tag = "c%dn%d" % (client, number)
            begun = time.monotonic()
            try:
                status, _, body = self.srv.get(path + tag)
            except OSError as problem:
                self.wrong.append((tag, problem))
                return
            self.answers.append((status, begun, time.monotonic()))
            if status == 200 and json.loads(body) != {"tag": tag}:
                self.wrong.append((tag, body))
            if status not in (200, 503):
                self.wrong.append((status, body))

    def since(self, moment):
        return [answer for answer in list(self.answers) if answer[1] >= moment]

    def stop(self):
        self.running = False
        for thread in self.threads:
            thread.join(30)


class PostgresTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        write_app(self.folder.name, {"app.lua": APP})
        self.pg = Postgres().__enter__()
        self.addCleanup(self.pg.close)

    def server(self, **kwargs):
        return Srv(self.folder.name, env={"DATABASE_URL": self.pg.url}, **kwargs)

    def stats(self, srv):
        return json.loads(srv.get("/stats")[2])

    def assert_at_rest(self, srv):
        """No call waits, nothing is leased: as before the trouble."""
        wait_until(lambda: all(self.stats(srv)[name] == 0 for name in ("leased", "waiting", "in_flight", "connecting")),
                   "counters back at rest: %s" % self.stats(srv))
        self.assertLessEqual(self.stats(srv)["open"], 8)

    def succeeds_again(self, load, since):
        wait_until(lambda: any(status == 200 for status, _, _ in load.since(since)), "answers of 200 again")

    def test_killed_and_started_again_under_load(self):
        with self.server() as srv:
            load = Load(srv)
            for _ in range(3):
                self.succeeds_again(load, time.monotonic())
                self.pg.kill()
                dead = time.monotonic()
                wait_until(lambda: len([a for a in load.since(dead) if a[0] == 503]) > 100, "requests that fail")
                failed = [end - begun for status, begun, end in load.since(dead) if status == 503]
                self.assertLess(sorted(failed)[len(failed) * 9 // 10], 0.5, "they fail fast")
                self.pg.start()
                back = time.monotonic()
                self.succeeds_again(load, back)
                self.assertLess(time.monotonic() - back, 5, "it recovers by itself")
            load.stop()
            self.assertEqual(load.wrong, [])
            self.assert_at_rest(srv)
            self.assertEqual(srv.stop(), 0)

    def test_a_start_waits_for_a_database_that_comes_later(self):
        write_app(self.folder.name, {
            "app.lua": APP.replace(", migrations = false", ""),
            "migrations/001_seen.sql": "create table seen (n int);",
        })
        self.pg.stop()
        starts_later = threading.Thread(target=lambda: (time.sleep(2), self.pg.start()))
        starts_later.start()
        with self.server(workers=2) as srv:  # listens, so it has waited
            self.assertIn("the start waits for a database", srv.output)
            self.assertEqual(srv.get("/echo/a")[0], 200)
        starts_later.join()

    def test_a_wrong_name_of_a_database_is_told_at_once(self):
        write_app(self.folder.name, {
            "app.lua": APP.replace(", migrations = false", ""),
            "migrations/001_seen.sql": "create table seen (n int);",
        })
        began = time.monotonic()
        status, output = run_to_end(self.folder.name, env={"DATABASE_URL": self.pg.url + "_none"})
        self.assertEqual(status, 1)
        self.assertIn("does not exist", output)
        self.assertLess(time.monotonic() - began, 15)

    def test_a_server_that_hangs_makes_timeouts_and_then_refusals(self):
        with self.server() as srv:
            load = Load(srv)
            self.succeeds_again(load, time.monotonic())
            self.pg.pause()
            hung = time.monotonic()
            try:
                wait_until(lambda: len([a for a in load.since(hung + 4) if a[0] == 503]) > 100, "refusals at once")
                self.assertLess(max(end - begun for _, begun, end in load.since(hung)), 6, "nobody hangs")
            finally:
                self.pg.resume()
            self.succeeds_again(load, time.monotonic())
            load.stop()
            self.assertEqual(load.wrong, [])
            self.assert_at_rest(srv)

    def test_a_client_that_goes_takes_its_statement_with_it(self):
        with self.server() as srv:
            self.assertEqual(srv.get("/echo/a")[0], 200)
            active = "select count(*) from pg_stat_activity where query like 'select pg_sleep(30)%' and state = 'active'"
            with srv.connect() as client:
                client.sendall(b"GET /hang HTTP/1.1\r\nHost: x\r\n\r\n")
                wait_until(lambda: self.pg.sql(active) == "1", "the statement runs")
            wait_until(lambda: self.pg.sql(active) == "0", "the statement has been stopped")
            self.assertEqual(srv.get("/echo/b")[0], 200)

    def test_workers_share_the_budget_of_the_process(self):
        with self.server(workers=3) as srv:
            load = Load(srv, paths=("/tx/", "/slow/"), clients=24)
            self.succeeds_again(load, time.monotonic())
            most = 0
            for _ in range(20):
                most = max(most, int(self.pg.sql("select count(*) from pg_stat_activity where application_name = 'srv'")))
                time.sleep(0.02)
            load.stop()
            self.assertLessEqual(most, 8)
            self.assertEqual(load.wrong, [])


if __name__ == "__main__":
    unittest.main()
