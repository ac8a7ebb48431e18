"""Redis that dies, hangs and comes back under load; two servers that share a bus, a cache and a timer
through one Redis."""
import itertools
import json
import os
import sys
import tempfile
import threading
import time
import unittest

from srv_process import PATIENCE, Srv, wait_until, write_app
from websocket_client import WebSocket

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
from services import Redis  # noqa: E402  (its folder is found above)

APP = """
local srv = require "srv"
local app = srv.app()
local r = srv.redis(nil, { timeout = "500ms" })
local stats = require "srv.db.redis".stats

app:get("/echo/:tag", function(req) return { tag = assert(r:echo(req.params.tag)) } end)
app:get("/stats", function() return stats() end)

app:get("/cached/:key", function(req)
  return { v = assert(srv.cache:get_or_compute(req.params.key, "1m", function() return srv.worker.pid end)) }
end)
app:post("/cache/:key", function(req)
  assert(srv.cache:set(req.params.key, req:text()))
  return { ok = true }
end)
app:get("/cache/:key", function(req) return { v = srv.cache:get(req.params.key) or "nothing" } end)
app:post("/count/:key", function(req) return { n = assert(srv.cache:incr(req.params.key)) } end)

app:get("/next/:topic", function(req)
  local sub = assert(srv.bus.subscribe(req.params.topic))
  local first = assert(sub:receive "20s")
  local second = sub:receive "300ms"
  return { first = first, second = second or "nothing" }
end)
app:post("/publish/:topic", function(req)
  assert(srv.bus.publish(req.params.topic, req:text()))
  return { ok = true }
end)
app:get("/bus", function() return srv.bus.stats() end)

if srv.env.TIMER then
  app:every("200ms", function()
    local runs = srv.redis()
    runs:rpush("runs", srv.worker.pid)
    if (runs:incr "running") > 1 then runs:set("overlapped", 1) end
    srv.sleep "50ms"
    runs:decr "running"
  end)
end
return app
"""

# Nothing but sockets: what they subscribe to is heard by that alone.
ROOM = """
local srv = require "srv"
local app = srv.app()
app:ws("/room", {
  open = function(ws)
    ws:subscribe "room"
    ws:send "in"
  end,
  message = function(ws, message) ws:publish("room", { said = message }) end,
})
return app
"""


class Load(threading.Thread):
    """Requests in a row, each with a tag of its own: who gets another's has been mixed up."""

    def __init__(self, srv, name):
        super().__init__(daemon=True)
        self.srv, self.label, self.ending = srv, name, threading.Event()
        self.answers, self.wrong = [], []

    def run(self):
        number = 0
        while not self.ending.is_set():
            number += 1
            tag = "%s-%d" % (self.label, number)
            began = time.monotonic()
            status, _, body = self.srv.get("/echo/" + tag)
            self.answers.append((began, time.monotonic() - began, status))
            if status == 200 and json.loads(body)["tag"] != tag or status not in (200, 503):
                self.wrong.append((tag, status, body))

    def count(self, status):
        return sum(1 for _, _, seen in list(self.answers) if seen == status)


def load_on(srv, threads=4):
    loads = [Load(srv, "t%d" % i) for i in range(threads)]
    for load in loads:
        load.start()
    return loads


def end(loads):
    for load in loads:
        load.ending.set()
    for load in loads:
        load.join(PATIENCE)


class RedisTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="srv-redis-")
        self.app = write_app(self.folder.name, {"app.lua": APP})
        self.numbers = itertools.count()  # of what is published
        self.redis = Redis().__enter__()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(self.redis.close)

    def start(self, **more):
        srv = Srv(self.app, "--no-watch", env={"REDIS_URL": self.redis.url, **more.pop("env", {})}, **more)
        self.addCleanup(srv.kill)
        return srv

    def json(self, srv, path, method="GET", body=None):
        status, _, answer = srv.request(method, path, body)
        self.assertEqual(200, status, answer)
        return json.loads(answer)

    def answers(self, srv):
        return srv.get("/echo/x")[0] == 200

    def test_killed_and_started_again_under_load(self):
        srv = self.start()
        loads = load_on(srv)
        wait_until(lambda: all(load.count(200) > 20 for load in loads), "answers")
        self.redis.kill()
        killed = time.monotonic()
        wait_until(lambda: all(load.count(503) > 20 for load in loads), "503 while Redis is away")
        self.redis.start()
        started = time.monotonic()
        wait_until(lambda: all(load.answers[-1][2] == 200 for load in loads), "answers again")
        took = time.monotonic() - started
        end(loads)
        self.assertEqual([], [wrong for load in loads for wrong in load.wrong])
        # Once it is known that nobody listens, nobody waits. Measured generously: the machine is shared.
        late = [a for load in loads for a in load.answers if a[0] > killed + 0.5 and a[2] == 503 and a[1] > 0.4]
        self.assertEqual([], late)
        self.assertLess(took, 5 if PATIENCE <= 30 else 15)
        stats = self.json(srv, "/stats")
        self.assertEqual(0, stats["pending"])
        self.assertLessEqual(stats["connections"], 2)
        self.assertEqual(0, srv.stop())

    def test_one_that_hangs_times_out_and_is_not_waited_for(self):
        srv = self.start()
        self.assertTrue(self.answers(srv))
        loads = load_on(srv)
        self.redis.pause()
        try:
            wait_until(lambda: all(load.count(503) > 20 for load in loads), "503 while Redis hangs")
        finally:
            self.redis.resume()
        wait_until(lambda: all(load.answers[-1][2] == 200 for load in loads), "answers again")
        end(loads)
        self.assertEqual([], [wrong for load in loads for wrong in load.wrong])
        slow = [a for load in loads for a in load.answers if a[1] > 0.45 and a[2] == 503]
        self.assertLessEqual(len(slow), 3 * len(loads))
        self.assertEqual(0, self.json(srv, "/stats")["pending"])

    def test_a_server_starts_and_caches_without_redis(self):
        self.redis.kill()
        srv = self.start()
        self.assertEqual(503, srv.get("/echo/x")[0])
        first = self.json(srv, "/cached/a")["v"]
        self.assertEqual(first, self.json(srv, "/cached/a")["v"])
        self.redis.start()
        wait_until(lambda: self.answers(srv), "answers")
        wait_until(lambda: self.json(srv, "/cached/b") and self.redis.ask("EXISTS", "srv:cache:b") == "1",
                   "the cache in Redis")
        self.assertEqual(0, srv.stop())

    def test_passwords_databases_unix_sockets_and_names(self):
        with Redis("--requirepass", "se:cret") as redis:
            places = ["redis://:se%%3acret@localhost:%d/3" % redis.port,
                      "redis://default:se%%3acret@127.0.0.1:%d" % redis.port,
                      "redis+unix://:se%%3acret@%s?db=3" % redis.path]
            for url in places:
                srv = self.start(env={"REDIS_URL": url})
                self.json(srv, "/count/n", "POST")
                self.assertTrue(self.answers(srv))
                self.assertEqual(0, srv.stop())
            self.assertEqual("2", redis.ask("-a", "se:cret", "--no-auth-warning", "-n", "3", "GET", "srv:cache:n"))
            srv = self.start(env={"REDIS_URL": "redis://:wrong@127.0.0.1:%d" % redis.port})
            self.assertEqual(503, srv.get("/echo/x")[0])
            srv.wait_line("WRONGPASS")
        srv = self.start(env={"REDIS_URL": "unix:" + self.redis.path})
        self.assertTrue(self.answers(srv))

    def test_a_new_generation_goes_on_with_the_same_connections(self):
        srv = Srv(self.app, env={"REDIS_URL": self.redis.url}, workers=2)
        self.addCleanup(srv.kill)
        self.bus_is_up(srv)
        self.assertTrue(self.answers(srv))
        thread, result = self.hear(srv, "topic")
        write_app(self.folder.name, {"app.lua": APP + "-- edited\n"})
        srv.wait_line("generation|reload")
        self.bus_is_up(srv)
        self.assertTrue(self.answers(srv))
        self.publish_until_heard(srv, "topic", "both", thread)
        self.heard_once("both", result())
        self.assertEqual(0, srv.stop())

    def bus_is_up(self, srv):
        return wait_until(lambda: self.json(srv, "/bus").get("up") is not None and
                          any(self.json(srv, "/bus")["up"] for _ in range(8)), "the bus")

    def hear(self, srv, topic):
        """Awaits two messages on TOPIC; the returned function gives what came."""
        got = {}
        thread = threading.Thread(target=lambda: got.update(self.json(srv, "/next/" + topic)), daemon=True)
        thread.start()

        def result():
            thread.join(PATIENCE)
            return got
        return thread, result

    def publish_until_heard(self, srv, topic, text, thread):
        """Each time another text, for a late first one and the next may both be heard; none may come twice."""
        while thread.is_alive():
            self.json(srv, "/publish/" + topic, "POST", "%s %d" % (text, next(self.numbers)))
            thread.join(0.6)  # longer than a hearer waits for a second message

    def heard_once(self, text, heard):
        self.assertRegex(heard["first"], r"^%s \d+$" % text)
        self.assertNotEqual(heard["first"], heard["second"])

    def test_two_servers_share_bus_and_cache(self):
        one, two = self.start(workers=2), self.start()
        self.json(one, "/cache/k", "POST", "from one")
        self.assertEqual("from one", self.json(two, "/cache/k")["v"])
        self.json(one, "/count/n", "POST")
        self.assertEqual(2, self.json(two, "/count/n", "POST")["n"])
        self.assertEqual(self.json(one, "/cached/c"), self.json(two, "/cached/c"))
        self.bus_is_up(one)
        self.bus_is_up(two)
        for speaker, hearer in ((one, two), (two, one), (one, one)):
            thread, result = self.hear(hearer, "topic")
            self.publish_until_heard(speaker, "topic", "hello", thread)
            self.heard_once("hello", result())
        self.assertEqual(0, one.stop())

    def test_the_bus_of_one_server_goes_on_without_redis(self):
        srv = self.start(workers=2)
        self.bus_is_up(srv)
        self.redis.kill()
        thread, result = self.hear(srv, "topic")
        self.publish_until_heard(srv, "topic", "local", thread)
        self.heard_once("local", result())
        self.redis.start()
        self.bus_is_up(srv)
        other = self.start()
        self.bus_is_up(other)
        thread, result = self.hear(srv, "topic")
        self.publish_until_heard(other, "topic", "far", thread)
        self.heard_once("far", result())

    def test_sockets_of_two_servers_share_a_topic(self):
        self.app = write_app(os.path.join(self.folder.name, "room"), {"app.lua": ROOM})
        here, there = (WebSocket(self.start(), "/room") for _ in range(2))
        for socket in (here, there):
            self.assertEqual("in", socket.receive())
        said = threading.Event()

        def say_until_heard():
            while not said.wait(0.1):
                here.send("hello")

        speaker = threading.Thread(target=say_until_heard, daemon=True)
        speaker.start()
        self.assertEqual('{"said":"hello"}', there.receive())
        said.set()
        speaker.join()
        there.send("and back")
        self.assertEqual('{"said":"and back"}', here.receive())  # and none of its own before

    def test_one_timer_of_two_servers_runs_and_outlives_either(self):
        one = self.start(env={"TIMER": "1"})
        two = self.start(env={"TIMER": "1"}, workers=2)
        wait_until(lambda: int(self.redis.ask("LLEN", "runs")) > 1, "runs")
        began, before = time.monotonic(), int(self.redis.ask("LLEN", "runs"))
        wait_until(lambda: int(self.redis.ask("LLEN", "runs")) > before + 5, "more runs")
        runs = int(self.redis.ask("LLEN", "runs")) - before
        self.assertLessEqual(runs, (time.monotonic() - began) / 0.18 + 2)
        self.assertEqual("", self.redis.ask("GET", "overlapped"))
        self.assertEqual(0, one.stop())
        before = int(self.redis.ask("LLEN", "runs"))
        wait_until(lambda: int(self.redis.ask("LLEN", "runs")) > before + 2, "runs on the other server")
        self.assertIsNotNone(two)


if __name__ == "__main__":
    unittest.main()
